"""``ronda reproduce``: a tiny claim end to end, and what cannot be asked."""

import json
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner

from ronda.bench.reproduction import evidence
from ronda.bench.reproduction.claims import Claim, Rule
from ronda.cli.app import cli
from ronda.cli.commands.studies import reproduce

SUITE = """
about = "Two policies on two nodes."
instances = ["two-nodes.json"]
policies = ["fifo", "srtf"]
change.restart_s = [0, 5]
"""
MARKS = "<!-- reproduction: by hand -->\n<!-- end of reproduction -->\n"


def claim(name, **fields):
    """Return a claim about srtf against fifo."""
    usual = {"system": "tiny", "what": "w", "published": "1×", "source": "p", "sure": "artifact"}
    return Claim(name=name, **usual | fields)


@pytest.fixture
def tiny(folder, monkeypatch):
    """Claims of a suite in the folder, one that takes long, and one of a command."""
    (folder / "s.toml").write_text(SUITE)
    ours = {"policy": "srtf", "restart_s": "0"}
    of_suite = {"suite": "s.toml", "ours": ours, "against": {"policy": "fifo"}, "shows": "times"}
    found = (
        claim("times", **of_suite, rule=Rule(least=1.0)),
        claim("most", **of_suite | {"ours": {"policy": "srtf"}, "each": ("restart_s",)}),
        claim("long", **of_suite, minutes=11.0, rule=Rule(most=0.5)),
        claim("asleep", command="sleep earth-2020-09", metric="mean_sleeping_nodes"),
        claim("never", unknowable="nothing is public"),
    )
    monkeypatch.setattr(reproduce, "claims", lambda: found)
    monkeypatch.setattr(reproduce, "LAST", folder / "last.json")
    return folder


@pytest.fixture
def in_process(monkeypatch, runs_here):
    """Carry out the commands of claims in this process; one test starts real ones."""

    def carry_out(command, **_):
        done = CliRunner().invoke(cli, command[3:], prog_name="ronda")
        return CompletedProcess(command, done.exit_code, done.stdout_bytes)

    monkeypatch.setattr(evidence.subprocess, "run", carry_out)


def fields(done):
    """Return the claims of the last line by name."""
    assert done.exit_code == 0, done.output
    return {c["name"]: c for c in json.loads(done.stdout.splitlines()[-1])["claims"]}


def test_figures_come_from_runs_and_are_kept(tiny, ronda):
    """The suite runs once for its claims, the long one only by name; then nothing runs again."""
    made = ronda("reproduce", "--out", "r", "--record", "last.json", "--json")
    found = fields(made)
    results = next((tiny / "r").glob("*/results.jsonl"))
    runs = [json.loads(line) for line in results.read_text().splitlines()]
    jct = {(r["policy"], r["variant"].get("restart_s")): r["mean_jct_s"] for r in runs}
    times = {k: jct["fifo", k] / jct["srtf", k] for k in (0.0, 5.0)}
    assert found["times"]["value"] == pytest.approx(times[0.0])
    assert found["most"]["value"] == pytest.approx(max(times.values()))
    assert found["times"]["sizes"] == "oracle / none"
    assert found["times"]["verdict"] == "met"
    assert found["asleep"]["value"] == pytest.approx(20.49, abs=0.001)
    assert (found["long"]["verdict"], found["never"]["verdict"]) == ("unknown", "can't be known")
    assert "value" not in found["long"]
    assert len(runs) == 4
    again = fields(ronda("reproduce", "long", "--out", "r", "--json"))
    assert again["long"]["value"] == found["times"]["value"]
    assert again["long"]["verdict"] == "missed"
    assert len(results.read_text().splitlines()) == 4
    (tiny / "r").rename(tiny / "gone")
    assert fields(ronda("reproduce", "--list", "--json"))["most"] == found["most"]
    short = ronda("reproduce", "--list").stdout.splitlines()
    assert [line.split()[0] for line in short[3:8]] == ["times", "most", "long", "asleep", "never"]
    assert "against" in ronda("reproduce", "--list", "tiny").stdout
    assert not (tiny / "r").exists()


def test_a_page_gets_the_tables(tiny, ronda, in_process):
    """Between the marks, of all claims, whatever was asked; one without marks is told first."""
    (tiny / "page.md").write_text(MARKS)
    done = ronda("reproduce", "times", "--out", "r", "--into", "page.md")
    assert done.exit_code == 0, done.output
    page = (tiny / "page.md").read_text()
    assert "### tiny" in page
    assert all(f"| {name} |" in page for name in ("times", "most", "long", "asleep", "never"))
    (tiny / "bare.md").write_text("nothing")
    done = ronda("reproduce", "times", "--out", "r2", "--into", "bare.md")
    assert done.exit_code == 2
    assert "bare.md: found 0 places for reproduction" in done.stderr
    assert not (tiny / "r2").exists()


def test_an_unknown_system_is_told_with_those_that_there_are(folder, ronda):
    """In one line, exit code 2, and nothing is made."""
    done = ronda("reproduce", "powerflop")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert 'found "powerflop"' in done.stderr
    assert '"powerflow", "ones", "hfta", "helios", "hermes"' in done.stderr
    assert not (folder / "reproduce-out").exists()


def test_a_command_that_fails_is_told(tiny, ronda, in_process):
    """With its name and exit code."""
    (tiny / "s.toml").write_text("instances = 3")
    done = ronda("reproduce", "times", "--out", "r")
    assert done.exit_code == 1
    assert "times: ronda compare s.toml ended with 2" in done.stderr


def test_a_file_called_like_a_packaged_suite_is_not_meant(folder, ronda, in_process):
    """The claims are of the packaged one."""
    (folder / "hfta.toml").write_text("nothing")
    found = fields(ronda("reproduce", "hfta-a100", "--json"))
    assert found["hfta-a100"]["verdict"] == "met"
    assert found["hfta-a100"]["value"] == pytest.approx(11.46, abs=0.01)
