"""A dry pass beside the pass that then acts: the same commands, again and again."""

import time

import pytest

from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import Diary
from ronda.hosts.slurm.tools import SlurmTools
from ronda.solvers.registry import policy


@pytest.fixture
def act(settled_toy, tmp_path, monkeypatch):
    """A function that decides without acting, then acts, and returns the commands of both."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, settled_toy.env[name])
    scope = Scope(min_run_s=0.0, restart_s=1.0, lease_s=20)
    made = policy("prices")
    drive = SlurmController(SlurmTools(), made, scope, Diary(tmp_path), interval_s=2.0)

    def act():
        dry = drive.once(act=False)
        done = drive.once(act=True)
        assert not dry.answers
        assert [command.line for command in dry.due] == [command.line for command in done.due]
        assert [answer.status for _, answer in done.answers] == [0] * len(done.due)
        return [command.line for command in done.due]

    return act


def test_a_resize_takes_two_passes_and_no_wait(toy, act):
    """It is stopped, and starts on four GPUs before Slurm would start it by itself on one.

    Until then it is no job that waits for a begin time of its owner's. 60 minutes on one GPU are
    60 / 3.5 = 17.1 on four.
    """
    comment = "ronda:gpus=1:1/2:1.9/4:3.5"
    job = toy.submit("--gres=gpu:1", "--time=60", "--requeue", f"--comment={comment}")
    toy.wait(lambda: toy.job(job)["job_state"] == "RUNNING")
    assert act() == [f"scontrol requeue incomplete {job}"]
    asked = time.monotonic()
    time.sleep(3.1)  # Slurm counts in whole seconds, from the end of the run
    line = act()[-1]
    assert line.startswith(f"scontrol update JobId={job} Gres=gpu:4 TimeLimit=18 ReqNodeList=n")
    assert line.endswith(" StartTime=now")
    toy.wait(lambda: toy.job(job)["job_state"] == "RUNNING")
    assert time.monotonic() - asked < 6.0
    assert toy.job(job)["gres_detail"][0].startswith("gpu:a100:4")
    assert act() == []
