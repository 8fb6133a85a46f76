"""The faces of Blox's policies: an order of jobs, and the GPUs that they are launched on."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from ronda.hosts.adapters import Blox

ROUNDS = Path(__file__).parents[2] / "data" / "blox" / "rounds.json"


def state(jobs, held=None):
    """Return job and cluster state of two nodes of four GPUs; `held` is the job of each GPU."""
    held = held or {}
    frame = pd.DataFrame(
        [
            {"GPU_ID": g, "Node_ID": g // 4, "JOB_IDS": held.get(g), "IN_USE": g in held}
            for g in range(8)
        ]
    )
    return SimpleNamespace(active_jobs=jobs), SimpleNamespace(gpu_df=frame)


def job(gpus, iterations=1000.0, served=0.0, **fields):
    """Return a job of half a second an iteration."""
    usual = {"job_iteration_time": 0.5, "job_total_iteration": iterations, "is_running": False}
    metrics = {"tracked_metrics": {"attained_service": served}}
    return {"num_GPUs": gpus, "job_priority": 0, "submit_time": 0.0} | usual | metrics | fields


def launched(policy, jobs, held=None):
    """Return what to suspend and launch, and the job of each GPU afterwards."""
    now = state(jobs, held)
    schedule = policy.schedule(*now)
    assert {name for name, _ in schedule["job_order"]} == set(jobs)
    suspended, starts = policy.place(*now, schedule)
    after = {g: j for g, j in (held or {}).items() if j in jobs and j not in suspended}
    for name, gpus in starts.items():
        assert len(gpus) == jobs[name]["num_GPUs"]
        assert not set(gpus) & after.keys()
        after |= dict.fromkeys(gpus, name)
    return suspended, starts, after


@pytest.mark.parametrize("policy", ["srtf", "prices"])
def test_the_shortest_job_runs_first_and_long_ones_make_way(policy):
    """Seven GPUs are held by a long job; one that needs two for a moment passes it."""
    scheduler = Blox(policy)
    long = {1: job(8, 1e6)}
    _, starts, held = launched(scheduler, long)
    assert sorted(starts[1]) == list(range(8))
    both = long | {2: job(2, 10.0)}
    suspended, starts, held = launched(scheduler, both, held)
    assert suspended == [1]
    assert set(starts) == {2}
    assert len({g // 4 for g in starts[2]}) == 1
    suspended, starts, _ = launched(scheduler, long, {g: j for g, j in held.items() if j != 2})
    assert (suspended, set(starts)) == ([], {1})


def test_rounds_of_the_host_are_answered():
    """Recorded in Blox's simulator, under this face: each round it did what had been said."""
    policy, decided = Blox("prices"), None
    for each in json.loads(ROUNDS.read_text())["rounds"]:
        jobs = {int(name): row for name, row in each["active_jobs"].items()}
        frame = pd.DataFrame(each["gpu_df"])
        now = SimpleNamespace(active_jobs=jobs), SimpleNamespace(gpu_df=frame, time=each["time"])
        holds = frame.dropna().groupby("JOB_IDS").size().to_dict()
        assert decided is None or {j: n for j, n in holds.items() if j in decided} == holds
        suspended, starts = policy.place(*now, policy.schedule(*now))
        assert not set(starts) & set(holds) - set(suspended)
        decided = {j: jobs[j]["num_GPUs"] for j in holds if j not in suspended}
        decided |= {j: len(gpus) for j, gpus in starts.items()}
        assert sum(decided.values()) <= len(frame)
        assert all(jobs[j]["num_GPUs"] == n for j, n in decided.items())
        seen = {state.job.id: state for state in policy._host.host.round().jobs}
        for job, row in jobs.items():
            state = seen[str(job)]
            assert state.job.submit_s == row["submit_time"]
            assert state.done_at(each["time"]) == pytest.approx(row["job_executed_iteration"])


def test_iterations_that_were_counted_are_more_than_seconds():
    """300 s at half a second an iteration would be 600; it did 450, or 400 by its own count."""
    for fields, done in (
        ({"job_executed_iteration": 450.0}, 450.0),
        ({"tracked_metrics": {"attained_service": 300.0, "iter_num": 400}}, 400.0),
        ({}, 600.0),
    ):
        scheduler = Blox("fifo")
        launched(scheduler, {1: job(4, 1e6, served=300.0, **fields)})
        (only,) = scheduler._host.host.round().running
        assert only.done == done


def test_nodes_come_and_go():
    """What runs on a node that stays goes on; a job of one that is gone starts elsewhere."""
    scheduler = Blox("prices")
    jobs = {1: job(4, 1e6), 2: job(4, 1e6)}
    _, _, held = launched(scheduler, jobs)
    now = state(jobs, held)
    frame = now[1].gpu_df
    now[1].gpu_df = pd.concat(
        [
            frame[frame["Node_ID"] == 1],
            frame[frame["Node_ID"] == 0].assign(Node_ID=2, GPU_ID=range(8, 12), JOB_IDS=None),
        ]
    )
    stays, moves = held[4], held[0]
    suspended, starts = scheduler.place(*now, scheduler.schedule(*now))
    assert (suspended, stays in starts) == ([], False)
    assert sorted(starts[moves]) == [8, 9, 10, 11]


def test_what_runs_goes_on_untouched():
    """Nothing to suspend or launch; the order says so, too."""
    scheduler = Blox("fifo")
    jobs = {1: job(4), 2: job(4), 3: job(8)}
    _, starts, held = launched(scheduler, jobs)
    assert set(starts) == {1, 2}
    assert launched(scheduler, jobs, held)[:2] == ([], {})
    order = [name for name, _ in scheduler.schedule(*state(jobs, held))["job_order"]]
    assert order[-1] == 3


def test_progress_is_what_blox_says():
    """The job that has had nearly all of its service is the shorter one."""
    jobs = {1: job(8, 1000.0), 2: job(8, 2000.0, served=990.0)}
    _, starts, _ = launched(Blox("srtf"), jobs)
    assert set(starts) == {2}
