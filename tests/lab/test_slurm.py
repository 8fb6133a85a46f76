"""The study on a real Slurm: its jobs, and what is read from a run that is made by hand."""

import json

import pytest

from lab.slurm.figures import figures
from lab.slurm.workload import LOADS, NODE_GPUS, NODES, workload


@pytest.mark.parametrize("load", LOADS)
def test_a_workload_offers_its_load(load):
    """The GPU-seconds over those that there are while jobs are submitted; limits are above."""
    count, offered, span_s = LOADS[load]
    jobs, history = workload(load, 1)
    work = sum(job.gpus * job.duration_s for job in jobs)
    assert len({job.name for job in jobs}) == len(jobs) == count
    assert work / (NODES * NODE_GPUS * span_s) == pytest.approx(offered, rel=0.01)
    assert all(60 * job.limit_min >= 1.1 * job.duration_s for job in jobs)
    assert (jobs, history) == workload(load, 1)
    assert jobs != workload(load, 2)[0]


def test_figures_tell_runs_that_overlap_from_runs_that_follow(tmp_path):
    """Job a: 2 s on 4 GPUs, stopped, 3 s later 1 s more; b ran twice at once, and lost 1 s of work.

    Waits are 1 s and 0 s, completions 7 s and 5 s. GPUs are held for 4 x 3 + 2 x (4 + 3) seconds
    of 32 x 7. n1 sleeps from 2 s until 4 s, when its boot of 10 s begins, of 4 x 7 node-seconds.
    """
    (tmp_path / "jobs").mkdir()
    (tmp_path / "slurm").mkdir()
    at = 1_000_000_000
    a = ["start 1 0-1 4 n1 0", "stop 3 0-1 4 n1 2", "start 6 1-2 4 n2 2", "end 7 1-2 4 n2 3"]
    b = ["start 0 0-1 2 n1 0", "start 2 1-2 2 n2 1", "work 4 0-1 2 n1 2", "end 5 1-2 2 n2 3"]
    for name, lines in (("a", a), ("b", b)):
        with (tmp_path / "jobs" / name).open("w") as file:
            for word, second, run, gpus, on, work in map(str.split, lines):
                at_us = 10**6 * (at + int(second))
                file.write(f"{word} {at_us} {run} {gpus} {on} {work}000000\n")
    jobs = [{"name": name, "submit_s": float(at)} for name in "ab"]
    (tmp_path / "submitted.json").write_text(json.dumps({"machine_load": 1.0, "jobs": jobs}))
    (tmp_path / "slurm" / "power.log").write_text(f"{at + 2} down n1\n{at + 14} up n1\n")
    found = figures(tmp_path)
    assert (found["incomplete"], found["twice_at_once"], found["ended_twice"]) == (0, 1, 0)
    assert found["lost_work_s"] == 1.0
    assert (found["mean_jct_s"], found["mean_wait_s"]) == (6.0, 0.5)
    assert found["held"] == pytest.approx((4 * 3 + 2 * 7) / (32 * 7))
    assert found["awake_node_h"] == pytest.approx((4 * 7 - 2) / 3600)
    assert found["starts_a_job"] == 2.0
