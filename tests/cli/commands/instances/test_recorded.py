"""A log as it happened: its schedule is written, checked, and shown beside policies."""

import json

import pytest
from msgspec.structs import replace

from ronda.instances.files import json as files

LOG = "id,at,begin,end,gpus\n" + "\n".join(f"j{k},{k},{k},{k + 30},2" for k in range(30))
CONVERT = "instances convert table log.csv --map id=id,submit=at,start=begin,end=end,gpus=gpus"

SUITE = """\
about = "fifo and the log"
instances = ["made.json.zst"]
recorded = ["ran.json.zst"]
policies = ["srtf"]
[ratio]
to = { policy = "recorded" }
[table]
columns = ["mean_jct_s", "mean_jct_s/base"]
"""


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
    assert "runs on any nodes with room, as the log names none: 30" in done.stderr
    made = files.read(log / "ran.json.zst")
    assert (made.policy, made.end_s) == ("recorded", 59.0)
    assert ronda("instances", "check", "made.json.zst", "ran.json.zst").exit_code == 0


def test_many_violations_are_told_by_rule(log, ronda):
    """30 jobs did less than their work, and 4 nodes of 2 GPUs are too few."""
    words = "--nodes 4 --gpus-per-node 2 --schedule ran.json --out made.json --json"
    done = ronda(*CONVERT.split(), *words.split())
    assert "too few GPUs are free for them: 26," in json.loads(done.stdout)["recorded"][-1]
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


@pytest.fixture
def record(log, ronda):
    """The log as an instance and a schedule."""
    words = "--nodes 4 --gpus-per-node 2 --schedule ran.json.zst --out made.json.zst"
    assert ronda(*CONVERT.split(), *words.split()).exit_code == 0
    return log


def test_compare_shows_a_record_beside_policies(record, ronda):
    """Waits 0 and lasts 30 s, which breaks the capacity; a suite holds policies against it."""
    words = "compare made.json.zst --recorded ran.json.zst --policies fifo --out out --jobs 1"
    done = ronda(*words.split(), "--no-figures", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])
    (table,) = found["instances"]
    recorded, fifo = table["policies"]
    assert (recorded["policy"], recorded["mean_jct_s"], recorded["mean_queue_s"]) == (
        "recorded",
        30.0,
        0.0,
    )
    assert recorded["note"] == "rules broken: 4"
    assert not {"gap_mean_jct", "rounds", "median_solve_s"} & recorded.keys()
    assert fifo["mean_queue_s"] > 0
    (kept,) = (record / "out" / "runs").glob("*--recorded--*/schedule.json.zst")
    assert files.read(kept) == files.read(record / "ran.json.zst")
    again = ronda(*words.split(), "--no-figures")
    assert "2 of 2 runs are in out already" in again.stderr
    assert "recorded (rules broken: 4)" in again.stdout
    assert "recorded: it breaks rules of the instance: capacity 4" in again.stdout
    (record / "own.toml").write_text(SUITE)
    suite = "compare own.toml --policies fifo --time-limit 10 --out out --no-figures --json"
    done = ronda(*suite.split())
    assert "2 of 2 runs are in out already" in done.stderr
    rows = {row["policy"]: row for row in json.loads(done.stdout.splitlines()[-1])["rows"]}
    assert rows["recorded"]["mean_jct_s/base"] == 1.0
    assert rows["fifo"]["mean_jct_s/base"] == pytest.approx(fifo["mean_jct_s"] / 30)


def changed(path, **fields):
    """Write a schedule with other fields; a job's own stand under `job`."""
    found = files.read(path)
    if "job" in fields:
        fields["jobs"] = (replace(found.jobs[0], **fields.pop("job")), *found.jobs[1:])
    files.write(replace(found, **fields), path)


def twice(path):
    """Let the first job run twice at once."""
    (own,) = files.read(path).jobs[0].segments
    changed(path, job={"segments": (own, own)})


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: changed(path, fingerprint="0" * 16), "a schedule of another instance (log)"),
        (lambda path: changed(path, policy="fifo"), "a schedule of the policy 'fifo'"),
        (lambda path: changed(path, job={"id": "nobody"}), "nobody: the instance has no such job"),
        (twice, "overlap: job j0: segment 1 starts before the last one ends"),
        (lambda path: path.write_text("{"), "ran.json.zst"),
        (lambda path: path.unlink(), "ran.json.zst"),
    ],
)
def test_what_is_no_record_of_the_instance_is_refused(record, ronda, spoil, said):
    """One line names the file; nothing runs."""
    spoil(record / "ran.json.zst")
    words = "compare made.json.zst --recorded ran.json.zst --policies fifo --out out"
    done = ronda(*words.split())
    assert (done.exit_code, (record / "out").exists()) == (2, False)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_instance_is_no_record(record, ronda):
    """It is refused by its kind."""
    words = "compare made.json.zst --recorded made.json.zst --policies fifo --out out"
    done = ronda(*words.split())
    assert done.exit_code == 2
    assert "found the format 'ronda/instance/2'; expected a schedule of a log" in done.stderr
