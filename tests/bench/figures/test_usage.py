"""GPUs and watts over time, and the lanes of the Gantt chart."""

import msgspec
import numpy as np
import pytest

from arrays import Told, array, instance
from ronda.bench.figures.gantt import bars
from ronda.horizon.driver import run
from ronda.instances.files.packaged import load
from ronda.instances.outcome.usage import queue_of, usage_of


def test_gpus_and_watts_by_hand(two_nodes, by_hand):
    """Idle: 2 x (100 + 4 x 10) = 280 W; each busy GPU adds 60 - 10 = 50 W."""
    found = usage_of(two_nodes, by_hand)
    assert found.time_s.tolist() == [0, 100, 150, 160]
    assert found.gpus.tolist() == [2, 8, 1, 0]
    assert found.watts.tolist() == [280 + 100, 280 + 400, 280 + 50, 280 + 50]


def test_a_pausing_job_draws_idle_power(two_nodes, by_hand):
    """Job a pauses until 20: its GPUs are held from 0 on, its watts count from 20 on."""
    (first, *others) = by_hand.jobs
    segment = msgspec.structs.replace(first.segments[0], resume_s=20.0)
    paused = msgspec.structs.replace(first, segments=(segment,))
    found = usage_of(two_nodes, msgspec.structs.replace(by_hand, jobs=(paused, *others)))
    assert found.time_s.tolist()[:3] == [0, 20, 100]
    assert found.gpus.tolist()[:2] == [2, 2]
    assert found.watts.tolist()[:2] == [280, 380]


def test_a_sleeping_node_draws_its_sleeping_power(two_nodes, by_hand):
    """Node 1 asleep from 0 to 90 saves 100 + 40 - 5 = 135 W."""
    asleep = msgspec.structs.replace(by_hand, sleeps=((1, 0.0, 90.0),))
    found = usage_of(two_nodes, asleep)
    assert found.watts[0] == 380 - 135
    assert found.watts[found.time_s.tolist().index(90.0)] == 380


@pytest.mark.parametrize(
    ("name", "policy"),
    [("probe-wake", "race-to-idle"), ("energy-hand", "race-to-idle"), ("philly-faults", "fifo")],
)
def test_integral_of_the_watts_is_the_energy_of_the_driver(name, policy):
    """The driver's own meter and the picture agree, asleep, awake, waking and out of service."""
    made = load(name)
    schedule = run(made, policy)
    found = usage_of(made, schedule)
    joules = float(np.sum(np.diff(found.time_s) * found.watts[:-1]))
    assert joules == pytest.approx(schedule.energy.total_j, rel=1e-9)


def test_a_node_that_wakes_draws_more_until_it_is_awake(two_nodes, by_hand):
    """Node 1 asleep until 20 draws 300 W on top of its idle power for 30 s more."""
    (group,) = two_nodes.cluster.node_groups
    dear = msgspec.structs.replace(group, wake_w=300.0, wake_s=30.0)
    cluster = msgspec.structs.replace(two_nodes.cluster, node_groups=(dear,))
    asleep = msgspec.structs.replace(by_hand, sleeps=((1, 0.0, 20.0),))
    found = usage_of(msgspec.structs.replace(two_nodes, cluster=cluster), asleep)
    assert found.time_s.tolist()[:4] == [0, 20, 50, 100]
    assert found.watts.tolist()[:3] == [380 - 135, 380 + 300, 380]


def test_a_job_that_draws_more_than_its_profile_says(two_nodes, by_hand):
    """Job a draws twice 2 x 60 W: 120 W more than above."""
    a, *others = two_nodes.jobs
    hot = msgspec.structs.replace(a, truth=msgspec.structs.replace(a.truth, power=2.0))
    found = usage_of(msgspec.structs.replace(two_nodes, jobs=(hot, *others)), by_hand)
    assert found.watts.tolist() == [380 + 120, 280 + 400, 280 + 50, 280 + 50]


def test_the_queue_by_hand(by_hand):
    """B waits from 0, c from 10; both run, one after the other, from 100 on."""
    time_s, jobs = queue_of(by_hand)
    assert time_s.tolist() == [0, 10, 100, 150, 160]
    assert jobs.tolist() == [1, 2, 1, 0, 0]


def test_lanes_by_hand(two_nodes, by_hand):
    """Every bar starts at the lowest free GPU of its node."""
    found = [
        (b.job, b.node, b.lane, b.lanes, b.segment.option.gpus) for b in bars(two_nodes, by_hand)
    ]
    assert found == [("a", 0, 0, 2, 2), ("b", 0, 0, 4, 8), ("b", 1, 0, 4, 8), ("c", 0, 0, 1, 1)]


def test_an_array_is_one_bar():
    """Two jobs share a GPU until one ends; the other goes on alone."""
    made = instance([4, 8], gpus=1)
    schedule = run(made, Told(lambda r: r.held or array(r, ["j0", "j1"], "fused", 0, "a")))
    assert [(b.jobs, b.lanes) for b in bars(made, schedule)] == [(2, 1), (1, 1)]
    assert usage_of(made, schedule).gpus.max() == 1.0
