"""Counts of a log: each job once, by its last run; each run once."""

from ronda.instances.traces.logs.runs import LogRun
from ronda.instances.traces.logs.tally import LogCount, count_log


def run(job, start_s=10.0, end_s=20.0, **more):
    """Return a run of a job on 360 GPUs of ann."""
    told = {"submit_s": 0.0, "user": "ann", "partition": "a", "state": "COMPLETED", "gpus": 360.0}
    told |= {"place": "x", "job": job, "start_s": start_s, "end_s": end_s, "kinds": ("k",)} | more
    return LogRun(**told)


def test_runs_and_jobs_are_counted_once():
    """A row that comes again is none; of two rows of a run the one that knows its end counts."""
    runs = [run("1"), run("1"), run("1", end_s=float("nan"), state="RUNNING"), run("2")]
    found = count_log([*runs, run("2", 30.0, 50.0, state="FAILED", partition="b")])
    assert found.whole == LogCount(jobs=2, runs=3, gpu_hours=4.0, users=1)


def test_a_job_has_the_labels_of_its_last_run():
    """In whatever order the rows come."""
    runs = [run("2", 30.0, 50.0, state="FAILED", partition="b"), run("2", state="NODE_FAIL")]
    found = count_log(runs)
    whole = LogCount(jobs=1, runs=2, gpu_hours=3.0, users=1)
    assert found.whole == whole
    assert found.by["partition"] == {"b": whole}
    assert found.by["final state"] == {"FAILED": whole}


def test_parts_tasks_and_who_never_started():
    """Parts of a heterogeneous job are one job; a row of waiting tasks is as many jobs."""
    nan = float("nan")
    runs = [
        *(run("12"), run("12", part=1, gpus=720.0)),
        run("7", nan, nan, tasks=(range(2, 4), range(9, 10)), state="PENDING", user="bob"),
    ]
    found = count_log(runs)
    assert found.whole == LogCount(jobs=4, runs=2, gpu_hours=3.0, users=2)
    assert found.by["final state"]["PENDING"] == LogCount(3, 0, 0.0, 1)


def test_an_empty_log():
    """Nothing is counted."""
    assert count_log([]).whole == LogCount(0, 0, 0.0, 0)
