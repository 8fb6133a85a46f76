"""What fails while ronda drives a real Slurm: no job is lost, and none runs twice at once."""

import time

import pytest

from lab.slurm.figures import figures, runs_of
from lab.slurm.run import Arm, run
from lab.slurm.workload import Submission
from tools.toy_slurm import missing

COMMENTS = ("ronda", "ronda:requeue", "ronda:gpus=1:1/2:1.9/4:3.5", "")


def kill_ronda(running):
    """Kill ronda, which is started again three seconds later."""
    running.stop_ronda(kill=True)
    time.sleep(3)
    running.start_ronda()


def kill_node(running):
    """Let a node die with what runs on it; it is noticed at once, and boots three seconds later."""
    running.toy.node_stop("n1")
    running.toy.run("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=dead")
    time.sleep(3)
    running.toy.node_start("n1")


def restart_slurmctld(running):
    """Stop slurmctld, which is started again three seconds later."""
    running.toy.stop_controller()
    time.sleep(3)
    running.toy.start_controller()


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_what_is_killed_in_mid_run_loses_nothing(tmp_path):
    """Twelve jobs of six seconds; what each run of a job has recorded tells what happened.

    They are 3 x 36 GPUs for six seconds, on 32: the queue outlasts what is killed.
    """
    jobs = [
        Submission(f"j{k}", "u", k / 2, (8, 16, 4, 8)[k % 4], 6.0, 2, COMMENTS[k % 4])
        for k in range(12)
    ]
    arm = Arm(policy="prices", words=("--min-run-s", "2", "--restart-s", "3"))
    run(tmp_path, arm, jobs, ((2, kill_ronda), (4, kill_node), (13, restart_slurmctld)))
    found = figures(tmp_path)
    assert found["jobs"] == 12
    assert not any(found[name] for name in ("incomplete", "twice_at_once", "lost_work_s"))
    assert found["node_failures"] >= 1
    assert found["starts_a_job"] > 1
    done = [runs_of(tmp_path / "jobs" / job.name)[-1].work_s for job in jobs]
    assert done == [6.0] * 12
    assert found["commands"] > 0
