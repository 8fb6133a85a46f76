"""Race to idle by hand."""

import msgspec
import pytest

from ronda.horizon.driver import run
from ronda.instances.budget import Budget, StepSeries
from ronda.instances.check.checker import check


def test_energy_by_hand(two_nodes):
    """Shortest first: b on both nodes until 50 s, then c and a on node 0 while node 1 sleeps.

    b 8 GPUs x 60 W x 50 s = 24,000 J, hosts 2 x 100 W x 50 s = 10,000 J. From 50 to 150 s: host
    10,000 J, a 2 x 60 W x 100 s = 12,000 J, c 60 W x 10 s = 600 J, idle GPUs (400 - 200 - 10) s x
    10 W = 1,900 J, node 1 asleep 5 W x 100 s = 500 J. In all 59,000 J.
    """
    schedule = run(two_nodes, "race-to-idle")
    assert {job.id: job.end_s for job in schedule.jobs} == {"a": 150.0, "b": 50.0, "c": 60.0}
    assert sum(msgspec.structs.astuple(schedule.energy)) == pytest.approx(59000.0)
    assert schedule.sleeps == ((1, 50.0, 150.0),)
    assert check(two_nodes, schedule) == []


def test_a_node_is_woken_when_it_is_needed(make_instance):
    """Node 1 sleeps from the start: the job of 500 s begins there after the 100 s of waking."""
    instance = make_instance([("a", 0.0, 4, 700.0), ("b", 500.0, 4, 10.0)], nodes=2)
    schedule = run(instance, "race-to-idle")
    assert {job.id: job.end_s for job in schedule.jobs} == {"a": 700.0, "b": 610.0}
    assert schedule.sleeps == ((1, 0.0, 500.0), (1, 610.0, 700.0))


def test_sleeping_nodes_leave_watts_for_jobs(make_instance):
    """An awake node draws 400 W, 10 W asleep; a job of 4 GPUs adds 800 W.

    1,250 W: with both nodes awake 800 W are gone, and 450 W are not enough; with one asleep
    410 + 800 = 1,210 W are. Both jobs run one after the other.
    """
    cap = Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(1250.0,)))
    jobs = [("a", 0.0, 4, 100.0), ("b", 0.0, 4, 100.0)]
    instance = make_instance(jobs, nodes=2, budget=cap)
    schedule = run(instance, "race-to-idle")
    assert [job.end_s for job in schedule.jobs] == [100.0, 200.0]
    assert check(instance, schedule) == []
