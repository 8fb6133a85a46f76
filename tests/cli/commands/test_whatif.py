"""``ronda whatif``: table, fields, files, an instance, a job from a file."""

import json

import pytest
from msgspec.structs import replace

import ronda as library
from ronda.instances import generate
from ronda.questions.whatif import Gpus, PowerCap


@pytest.fixture
def round_file(tmp_path):
    """A round with a power cap, some of whose jobs run."""
    library.write(generate.round(12, severity="tight", seed=1), tmp_path / "round.json")
    return tmp_path / "round.json"


@pytest.fixture
def job_file(tmp_path, round_file):
    """A job that the round has not."""
    known = json.loads(round_file.read_text())["waiting"][0]["job"]
    new = {key: known[key] for key in known if key not in ("id", "submit_s")} | {"id": "new"}
    (tmp_path / "new.json").write_text(json.dumps(new))
    return tmp_path / "new.json"


def test_fields_are_those_of_the_library(ronda, round_file, job_file):
    """Each change alone and all together, in the order of the options; a new job's sizes."""
    words = ("--gpus", "a100:+8", "--power-cap", "1.1", "--job", job_file, "--json")
    done = ronda("whatif", round_file, *words)
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout.splitlines()[-1])
    round_ = library.read(round_file)
    found = library.whatif(round_, [Gpus("a100", 8), PowerCap(share=1.1)])
    assert fields["objective"] == found.objective
    assert fields["slack"] == found.slack
    names = ["+8 a100", "cap ×1.1", "with job new", "all together"]
    assert [each["change"] for each in fields["outcomes"]] == names
    for told, outcome in zip(fields["outcomes"], found.outcomes[:2], strict=False):
        assert told["found"] == outcome.found >= 0
        assert told["foretold"] == outcome.foretold
        assert [shift["job"] for shift in told["shifts"]] == [s.job for s in outcome.shifts]
    assert {size["gpus"] for size in fields["sizes"]["new"]} >= {1, 2}


def test_the_folder_holds_table_picture_round_and_plan(ronda, round_file, tmp_path):
    """The plan of all changes is one of the round with all changes; nothing is replaced unasked."""
    out = tmp_path / "out"
    words = ("whatif", round_file, "--gpus", "A100:+8", "--remove-node", 0, "--out", out)
    done = ronda(*words)
    assert done.exit_code == 0, done.output
    names = {
        "table.md",
        "table.tex",
        "table.csv",
        "whatif.png",
        "whatif.csv",
        "round.json",
        "plan.json",
    }
    assert {path.name for path in out.iterdir()} == names
    changed, plan = library.read(out / "round.json"), library.read(out / "plan.json")
    assert library.check(changed, plan) == []
    assert changed.cluster.topology.node_gpus[0] == 0
    kept = {path: path.read_bytes() for path in out.iterdir()}
    again = ronda(*words)
    assert (again.exit_code, "--force" in again.stderr) == (2, True)
    assert {path: path.read_bytes() for path in out.iterdir()} == kept
    assert ronda(*words, "--force").exit_code == 0


def test_the_table_says_who_gains_and_loses(ronda, round_file):
    """Half of the power: each job that loses stands with what it had and has."""
    shown = ronda("whatif", round_file, "--power-cap", "0.5").stdout
    (outcome,) = library.whatif(library.read(round_file), [PowerCap(share=0.5)]).outcomes
    worst = outcome.shifts[-1]
    (line,) = (line for line in shown.splitlines() if f" {worst.job} " in line)
    assert f"{worst.before.option.gpus} A100" in line
    assert f"{worst.gain:+.4g}" in line
    assert f"{outcome.found:+.4g}" in shown


def test_watts_or_a_share(ronda, round_file):
    """The same cap in watts, kilowatts and as a share."""
    cap_w = library.read(round_file).power_cap_w
    said = (f"{0.75 * cap_w}W", f"{0.75 * cap_w / 1e3}kw", "0.75")
    found = [
        json.loads(ronda("whatif", round_file, "--power-cap", text, "--json").stdout)["outcomes"][0]
        for text in said
    ]
    assert len({each["objective"] for each in found}) == 1
    assert found[0]["found"] < 0


def test_of_an_instance_a_decision(ronda):
    """The busiest one, or that of a time; another one of two jobs has ended by then."""
    fields = json.loads(ronda("whatif", "two-jobs", "--gpus", "GPU:+4", "--json").stdout)
    assert (fields["now_s"], fields["outcomes"][0]["found"] >= 0) == (0.0, True)
    at = ronda("whatif", "two-jobs", "--gpus", "GPU:+4", "--at", 50, "--json")
    assert json.loads(at.stdout)["now_s"] == 100


def test_a_cap_that_no_plan_keeps_is_said(ronda, round_file):
    """A job may not be stopped: the table is there, a line names the change, the code is 1."""
    round_ = library.read(round_file)
    first, *others = round_.running
    firm = replace(first, job=replace(first.job, preemptible=False))
    library.write(replace(round_, running=(firm, *others)), round_file)
    words = ("whatif", round_file, "--power-cap", "500W", "--gpus", "A100:+8")
    done = ronda(*words)
    assert done.exit_code == 1
    said = f"no plan keeps 500 W and job {first.job.id}, which may not be stopped"
    (line,) = (line for line in done.stderr.splitlines() if "warning: cap 500 W:" in line)
    assert said in line
    assert said in done.stdout  # in place of figures
    more, capped, both = json.loads(ronda(*words, "--json").stdout.splitlines()[-1])["outcomes"]
    for outcome in (capped, both):
        assert outcome["why"].startswith(said)
        assert [outcome[name] for name in ("objective", "found", "foretold")] == [None] * 3
    assert more["why"] == ""
    assert more["found"] >= 0
