"""A policy in a process of its own decides as in this one, and its crash costs one decision."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

import ronda
from ronda.instances import generate

FRAGILE = """
import os, signal, time
import ronda

class Fragile:
    def plan(self, round, *, deadline, seed, initial=None):
        if seed == 1 or round.now_s == 80.0:
            os.kill(os.getpid(), signal.SIGSEGV)
        if seed == 2:
            time.sleep(600)
        if seed == 3:
            raise ValueError("not now")
        return ronda.policy("fifo").plan(round, deadline=deadline, seed=seed, initial=initial)
"""


@pytest.fixture
def fragile(tmp_path):
    """Return a policy whose process dies, sleeps or refuses, by the seed."""
    path = tmp_path / "fragile.py"
    path.write_text(FRAGILE)
    return ronda.Isolated(f"{path}:Fragile")


ROUND = generate.round(12, severity="tight", seed=2)


@pytest.mark.parametrize("spec", ["prices", "milp(gap=1e-3)", "genetic(generations=5)", "tiresias"])
def test_plans_are_those_of_the_policy_itself(spec):
    """The same round, seed and plan before give the same plan."""
    round_ = generate.round(20, severity="tight", seed=1)
    isolated, before = ronda.Isolated(spec), None
    for seed in (3, 4):
        own = ronda.solve(round_, spec, seed=seed, initial=before)
        other = ronda.solve(round_, isolated, seed=seed, initial=before)
        assert (other.allocations, other.objective) == (own.allocations, own.objective)
        assert (other.policy, other.bound) == (own.policy, own.bound)
        before = own
    isolated.close()


def test_a_crash_costs_one_decision(fragile):
    """What runs keeps running, the reason names the signal, and the next round is decided."""
    plan = ronda.solve(ROUND, fragile, seed=1)
    assert str(plan.status) == "fallback"
    assert "its process died of SIGSEGV" in plan.record.message
    assert plan.allocations.items() >= ROUND.held.items()
    assert str(ronda.solve(ROUND, fragile).status) != "fallback"


def test_one_that_hangs_is_killed(fragile):
    """By half its limit and a second, well before the 600 s that it wants."""
    plan = ronda.solve(ROUND, fragile, seed=2, deadline=0.2)
    assert str(plan.status) == "fallback"
    assert "no answer" in plan.record.message
    assert str(ronda.solve(ROUND, fragile).status) != "fallback"


def test_what_a_policy_raises_is_told(fragile):
    """An exception travels as its words."""
    assert "ValueError: not now" in ronda.solve(ROUND, fragile, seed=3).record.message


def test_only_what_has_a_name_can_be_isolated():
    """An object cannot be made again in another process."""
    with pytest.raises(ronda.InputError, match="a Fifo object; expected the name of one"):
        ronda.Isolated(ronda.policy("fifo"))


def test_a_run_goes_on_after_a_crash(fragile):
    """The second of two decisions, at 80 s, is refused with the reason; all jobs end."""
    instance = ronda.load("two-jobs")
    schedule = ronda.run(instance, fragile)
    assert all(outcome.end_s is not None for outcome in schedule.jobs)
    assert ronda.check(instance, schedule) == []
    assert [(record.now_s, len(record.violations)) for record in schedule.rounds] == [
        (0.0, 0),
        (80.0, 1),
    ]
    assert "SIGSEGV" in schedule.rounds[1].violations[0]


def test_no_process_outlives_its_host():
    """A host that is killed in the middle of its life leaves nothing behind."""
    code = "import ronda, time; i = ronda.Isolated('fifo'); print(i._process._process.pid)\n"
    host = subprocess.Popen(
        [sys.executable, "-uc", code + "time.sleep(600)"], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    assert psutil.pid_exists(pid)
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    until = time.monotonic() + 60.0
    while psutil.pid_exists(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid)
