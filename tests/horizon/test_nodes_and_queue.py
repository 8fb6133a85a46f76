"""What the state of a run is made of: nodes that sleep, wake up or are off; jobs in order."""

import pytest
from msgspec.structs import replace

from ronda.horizon.nodes import NodeStates
from ronda.horizon.queue import Queue
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Allocation, Job, JobState, Option


@pytest.fixture
def nodes():
    """Return two nodes of two GPUs that draw 100 + 2 × 50 W idle, 10 W asleep, 30 W more waking."""
    gpu = GpuType(name="A", memory_gib=40.0, idle_w=50.0)
    host = {"host_idle_w": 100.0, "sleep_w": 10.0, "wake_s": 60.0, "wake_w": 30.0}
    return NodeStates(uniform_cluster(gpu, 2, 2, **host).topology)


def test_a_sleep_and_a_wake_up(nodes):
    """Asleep from 0 to 100, awake at 160: 2 × 200 W, then 200 + 10 W, then 400 + 30 W."""
    nodes.sleep({1}, 0.0)
    assert (nodes.meter.watts, nodes.asleep) == (210.0, {1: 0.0})
    nodes.sleep(set(), 100.0)
    assert (nodes.meter.watts, nodes.sleeps, nodes.waking) == (
        400.0,
        [(1, 0.0, 100.0)],
        {1: (100, 160)},
    )
    assert (nodes.waking_w(), nodes.owed_j(120.0)) == (30.0, 30.0 * 40)
    # 100 s at 210 W, 60 s at 430 W, 40 s at 400 W
    assert nodes.used_j(200.0) == 21_000 + 25_800 + 16_000
    option = Option(pool=0, gpus=2, span="node", rate=1.0, power_w=0.0)
    first, second = (Allocation(option=option, placement=((n, 2),)) for n in (0, 1))
    assert [nodes.hold_from_s(a, 120.0) for a in (first, second)] == [120.0, 160.0]
    nodes.advance(160.0)
    assert nodes.waking == {}


def test_a_node_that_goes_off_while_it_wakes_up(nodes):
    """It draws nothing from 110 to 150; the wake-up that began at 100 is cut short."""
    nodes.sleep({1}, 0.0)
    nodes.sleep(set(), 100.0)
    nodes.go_off(1, 110.0)
    assert (nodes.meter.watts, nodes.waking, nodes.off) == (200.0, {}, {1: 110.0})
    assert nodes.out({}) == ((1, 2),)
    nodes.come_back(1, 150.0)
    nodes.close(200.0)
    # 100 s at 210 W, 10 s at 430 W, 40 s at 200 W, 50 s at 400 W
    assert nodes.used_j(200.0) == 21_000 + 4_300 + 8_000 + 20_000
    assert nodes.meter.watts == 400.0


def test_a_drained_node_keeps_what_is_held(nodes):
    """One of two GPUs is held: the other is out of service."""
    nodes.draining.add(0)
    option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=0.0)
    assert nodes.out({"a": Allocation(option=option, placement=((0, 1),))}) == ((0, 1),)


def test_jobs_stay_in_the_order_of_submission():
    """Whoever starts, stops or ends, both lists are in the order in which jobs came."""
    queue = Queue()
    states = {
        i: JobState(job=Job(id=i, submit_s=0.0, profile="p", gpus=1), since_s=0.0) for i in "abcd"
    }
    for place, (job_id, state) in enumerate(states.items()):
        queue.submit(job_id, place, state)
    option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=0.0)
    given = Allocation(option=option, placement=((0, 1),))
    for job_id in "dbc":
        queue.run(job_id, replace(states[job_id], allocation=given))
    assert ([*queue.waiting], [*queue.running]) == (["a"], ["b", "c", "d"])
    assert [*queue.held] == ["b", "c", "d"]
    queue.wait("c", states["c"])
    queue.wait("b", states["b"])
    assert ([*queue.waiting], [*queue.running]) == (["a", "b", "c"], ["d"])
    assert queue.held == {"d": given}
    queue.leave("b")
    queue.leave("d")
    assert ([*queue.waiting], [*queue.running]) == (["a", "c"], [])
