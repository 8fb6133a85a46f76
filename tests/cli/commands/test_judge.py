"""The command that judges a log: a real one of a small Slurm cluster, made ones, and bad input."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from made_logs import busy, logged, sacct
from ronda.cli.app import cli

DATA = Path(__file__).parents[2] / "data"
TOY, NODES = DATA / "slurm" / "toy.txt", DATA / "slurm" / "toy-nodes.json"
PODS = DATA / "alibaba_openb2023" / "openb_pod_list_default.csv.gz"


@pytest.fixture
def ronda(tmp_path, monkeypatch):
    """Run ``ronda judge`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0):
        done = CliRunner().invoke(cli, ["judge", *map(str, words)], prog_name="ronda")
        assert done.exit_code == code, done.output
        return done

    return call


def fields(done):
    """Return the JSON of the last line, and its first judgement."""
    found = json.loads(done.stdout.splitlines()[-1])
    return found, found["queues"][0]["judgement"]


def test_a_log_of_slurm_is_judged_with_its_nodes(ronda, tmp_path):
    """What is printed adds up to what was waited; picture and section are written."""
    words = (TOY, "--nodes", NODES, "--decisions", 1)
    done = ronda(*words, "--picture", "toy.png", "--out", "out")
    rows = [line.split() for line in done.stdout.splitlines()]
    cells = {" ".join(row[:-2]): float(row[-2]) for row in _causes(rows)}
    waited = cells.pop("waited")
    assert sum(cells.values()) == pytest.approx(waited, abs=0.004)
    assert "could have been spared; on what was known when it was decided" in done.stdout
    assert done.stdout.count("Not known: ") >= 3
    assert "Start job " in done.stdout
    assert (tmp_path / "toy.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "judgement.json").exists()


def _causes(rows):
    """Return the rows of the first table, without the last column: up to the per cent."""
    for row in rows:
        for k, cell in enumerate(row):
            if k > 1 and cell.replace(".", "").lstrip("-").isdigit() and row[k - 1][:1].isdigit():
                yield row[: k + 1]
                if row[0] == "waited":
                    return
                break


def test_what_the_log_does_wrong_is_its_largest_loss(ronda, tmp_path):
    """Order of first come, first served; delay of a slow cycle; hardly a loss of `milp`."""
    lost, jobs = {}, busy(8, 30, load=0.8)
    for name, policy, cadence in (
        ("fifo", "fifo", {}),
        ("slow", "fifo(backfill=easy)", {"period_s": 120, "on_event": False}),
        ("milp", "milp", {}),
    ):
        (tmp_path / name).write_text(sacct(*logged(jobs, policy, **cadence)))
        _, told = fields(ronda(name, "--cluster", "4x8", "--decisions", 0, "--trust", 0, "--json"))
        parts = (cause["wait_s"] for cause in told["causes"])
        assert sum(parts) == pytest.approx(told["waited_s"])
        assert told["hindsight"][0] >= told["same_knowledge"][0]
        lost[name] = {cause["name"]: cause["wait_s"] for cause in told["causes"]}
    assert lost["fifo"]["known order"] > 400 > lost["fifo"]["delay"]
    assert lost["slow"]["delay"] > 400 > lost["slow"]["known order"]
    assert lost["milp"]["delay"] + lost["milp"]["known order"] < 60


def test_a_sample_is_refused_with_its_reason(ronda, tmp_path):
    """At no time a tenth of the GPUs is in use, and jobs wait: others are missing."""
    done = ronda(PODS, "--reader", "openb", "--out", "out", code=2)
    assert done.stderr.count("\n") == 1
    assert "jobs waited more than 60 s: most of what ran is not in the log" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TOY, "--queue", "nope"), "found 'nope'; expected one of main"),
        ((TOY, "--nodes", TOY), "toy.txt"),
        ((TOY, "--nodes", NODES, "--cluster", "4x8"), "--slurm"),
        ((TOY, "--picture", "toy.jpg"), "a name that ends in .png"),
        (("half.json",), "half.json"),
        (("empty.txt",), "an empty file"),
        ((TOY, "--out", "own"), "a folder with files that ronda did not make"),
    ],
)
def test_bad_input_is_one_line(ronda, tmp_path, words, said):
    """With what was found and expected, and nothing is written."""
    (tmp_path / "half.json").write_text('{"jobs": [{"job_id": 1, ')
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    done = ronda(*words, "--decisions", 0, code=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
