"""A log as it happened: its schedule is written, checked, and shown beside policies."""

import json

import pytest
from msgspec.structs import replace

from ronda.instances.files import json as files

LOG = "id,at,begin,end,gpus\n" + "\n".join(f"j{k},{k},{k},{k + 30},2" for k in range(30))
CONVERT = "instances convert table log.csv --map id=id,submit=at,start=begin,end=end,gpus=gpus"


@pytest.fixture
def log(folder):
    """A folder with a log: from 29 s on 30 jobs have 2 GPUs each."""
    (folder / "log.csv").write_text(LOG)
    return folder


def test_convert_writes_the_schedule_of_a_log(log, ronda):
    """It is a schedule of the instance, and keeps its rules where the cluster is large enough."""
    words = "--nodes 8 --schedule ran.json.zst --out made.json.zst"
    done = ronda(*CONVERT.split(), *words.split())
    assert done.exit_code == 0, done.output
    assert "ran.json.zst: the schedule of the log" in done.stderr
    assert "30 runs are on any nodes with room at that moment" in done.stderr
    made = files.read(log / "ran.json.zst")
    assert (made.policy, made.end_s) == ("recorded", 59.0)
    assert ronda("instances", "check", "made.json.zst", "ran.json.zst").exit_code == 0


def test_many_violations_are_told_by_rule(log, ronda):
    """30 jobs did less than their work, and 4 nodes of 2 GPUs are too few."""
    words = "--nodes 4 --gpus-per-node 2 --schedule ran.json --out made.json --json"
    done = ronda(*CONVERT.split(), *words.split())
    assert json.loads(done.stdout)["recorded"][-1].startswith("26 runs start when too few GPUs")
    made = files.read(log / "made.json")
    jobs = tuple(replace(job, truth=replace(job.truth, work=60.0)) for job in made.jobs)
    files.write(replace(made, jobs=jobs), log / "long.json")
    done = ronda("instances", "check", "long.json", "ran.json")
    assert done.exit_code == 1
    rows = [line.split()[:2] for line in done.stdout.splitlines()]
    assert ["work", "30"] in rows
    assert ["capacity", "4"] in rows
    assert "34 violations of 2 rules" in done.stdout
    assert "job j0: did 30 of 60" in done.stdout
    found = json.loads(ronda("instances", "check", "long.json", "ran.json", "--json").stdout)
    assert (found["counts"], len(found["violations"])) == ({"work": 30, "capacity": 4}, 34)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--nodes 8 --schedule ran.txt", "ran.txt"),
        ("--nodes 8 --schedule log.csv", "log.csv"),
    ],
)
def test_a_schedule_that_cannot_be_written(log, ronda, words, said):
    """It is refused in one line, and nothing is written."""
    done = ronda(*CONVERT.split(), *words.split(), "--out", "made.json")
    assert (done.exit_code, (log / "made.json").exists()) == (2, False)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_table_without_starts_has_no_schedule(log, ronda):
    """The run time alone does not tell when a job ran."""
    words = CONVERT.replace("start=begin,end=end", "duration=end").split()
    done = ronda(*words, "--nodes", 8, "--schedule", "ran.json", "--out", "made.json")
    assert (done.exit_code, (log / "made.json").exists()) == (2, False)
    assert "--schedule: found no job with a start" in done.stderr
