"""What a round has, by numbers: GPUs per pool, and watts with and without sleeping nodes."""

import numpy as np
import pytest

from ronda.formulations.options.build import build
from ronda.formulations.options.table import options
from ronda.formulations.watts import outermost_w
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round
from ronda.solvers.greedy.counted import Counted, charge, uses


def cluster(*, sleep_w=10.0, racks=(), in_racks=(None, None)):
    """Return two nodes of 4 GPUs at 50 W idle, hosts at 200 W: 400 W a node, awake and idle."""
    groups = tuple(
        NodeGroup(
            name=f"g{i}",
            count=1,
            gpus_per_node=4,
            gpu_type="V100",
            host_idle_w=200.0,
            sleep_w=sleep_w,
            rack=rack,
        )
        for i, rack in enumerate(in_racks)
    )
    gpu = GpuType(name="V100", memory_gib=32, idle_w=50.0)
    return Cluster(gpu_types=(gpu,), node_groups=groups, racks=racks)


def make_round(*gpus, where=None, **fields):
    """Return a round of waiting rigid jobs that draw 250 W a GPU."""
    profile = Profile(
        name="rigid", throughput={"V100": Rigid()}, power={"V100": PowerCurve(a_w=250.0)}
    )
    states = tuple(
        JobState(
            job=Job(id=f"j{i}", submit_s=0, profile="rigid", gpus=n, estimate=Estimate(work=100)),
            since_s=0,
        )
        for i, n in enumerate(gpus)
    )
    return Round(cluster=where or cluster(), profiles={"rigid": profile}, waiting=states, **fields)


def test_gpus_alone_are_limited_without_a_power_limit():
    """Without cap and energy limit any watts are there; of 8 GPUs a job of 4 leaves 4, not 5."""
    round_ = make_round(1, 4)
    left = Counted.of(round_)
    assert (left.gpus, left.limited) == ([8], False)
    assert uses(round_, build(round_)).gpus.tolist() == [1, 4]
    assert left.take(0, 4, (1e9, 1e9))
    assert not left.take(0, 5, (0.0, 0.0))
    assert left.gpus == [4]


def test_watts_count_above_the_idle_cluster():
    """With no use in sleep, 2000 W leave 2000 - 2 x 400 = 1200 W; a GPU adds 250 - 50 = 200 W."""
    round_ = make_round(1, 4, where=cluster(sleep_w=400.0), power_cap_w=2000.0)
    left = Counted.of(round_)
    assert left.watts == [pytest.approx(1200.0), np.inf]
    assert uses(round_, build(round_)).watts.tolist() == [[200.0, 200.0], [800.0, 800.0]]
    assert not left.node_w[0].any()
    assert left.take(0, 4, (800.0, 800.0))
    assert not left.take(0, 1, (401.0, 0.0))
    assert left.take(0, 1, (400.0, 0.0))


def test_cap_and_energy_count_both():
    """3.6 MJ for an hour is 1000 W, below the cap of 2000 W: 1000 - 800 = 200 W are left."""
    no_sleep = cluster(sleep_w=400.0)
    round_ = make_round(1, where=no_sleep, power_cap_w=2000.0, energy_j=3.6e6, window_s=3600.0)
    left = Counted.of(round_)
    assert left.watts == [pytest.approx(1200.0), pytest.approx(200.0)]
    assert not left.take(0, 1, (0.0, 201.0))


def test_caps_of_racks_count_together():
    """Racks of 900 and 700 W hold both nodes of 400 W: 800 W are left; of a cap of 1200 W 400."""
    racks = (Rack(name="a", power_cap_w=900.0), Rack(name="b", power_cap_w=700.0))
    where = cluster(sleep_w=400.0, racks=racks, in_racks=("a", "b"))
    assert Counted.of(make_round(1, where=where)).watts[0] == pytest.approx(800.0)
    capped = make_round(1, where=where, power_cap_w=1200.0)
    assert Counted.of(capped).watts[0] == pytest.approx(400.0)


def test_sleeping_nodes_leave_more_watts():
    """Asleep the cluster draws 20 W; GPUs 1-4 wake one node (390 W more), 5-8 the other.

    Of 1980 W one GPU takes 200 + 390, the three beside it 600, the next node's 590: 200 are left.
    """
    left = Counted.of(make_round(1, 4, power_cap_w=2000.0))
    assert left.watts[0] == pytest.approx(2000.0 - 20.0)
    assert left.node_w[0].tolist() == [0.0] + [390.0] * 4 + [780.0] * 4
    again = left.rest()
    assert left.take(0, 1, (200.0, 0.0))
    assert left.take(0, 3, (600.0, 0.0))
    assert left.take(0, 1, (200.0, 0.0))
    assert left.watts[0] == pytest.approx(200.0)
    assert again.watts[0] == pytest.approx(1980.0)


def test_small_nodes_fill_first_if_they_save_least():
    """A node of 2 GPUs at 100 + 2 x 50 - 10 = 190 W, 95 each, before one of 4 at 390, 97.5 each."""
    gpu = GpuType(name="V100", memory_gib=32, idle_w=50.0)
    sizes = {"small": (2, 100.0), "large": (4, 200.0)}
    groups = tuple(
        NodeGroup(name=name, count=1, gpus_per_node=n, gpu_type="V100", host_idle_w=w, sleep_w=10.0)
        for name, (n, w) in sizes.items()
    )
    where = Cluster(gpu_types=(gpu,), node_groups=groups)
    left = Counted.of(make_round(1, where=where, power_cap_w=2000.0))
    assert left.node_w[0].tolist() == [0.0, 190.0, 190.0] + [580.0] * 4


def test_what_must_run_takes_what_is_not_there():
    """A job of 300 W on 200 W: nothing that draws more fits then, but what draws less does."""
    left = Counted([4], [200.0, np.inf], [np.zeros(5)])
    assert not left.take(0, 1, (300.0, 0.0), anyhow=True)
    assert (left.gpus, left.watts[0]) == ([3], -100.0)
    assert not left.take(0, 1, (1.0, 0.0))
    assert left.take(0, 1, (-50.0, 0.0))


def test_caps_of_racks_that_hold_all_nodes_add_up():
    """Two racks at 900 W and 700 W limit the whole to 1600 W; inner caps do not count twice."""
    inner = (
        Rack(name="row", power_cap_w=1800.0),
        Rack(name="a", power_cap_w=900.0),
        Rack(name="b", power_cap_w=700.0),
    )
    assert outermost_w(cluster(racks=inner, in_racks=("a", "b"))) == 1600.0
    nested = (Rack(name="row", power_cap_w=1500.0), Rack(name="a", parent="row"), Rack(name="b"))
    assert outermost_w(cluster(racks=nested, in_racks=("a", "b"))) is None
    both = (Rack(name="row", power_cap_w=1500.0), Rack(name="a", parent="row", power_cap_w=900.0))
    assert outermost_w(cluster(racks=both, in_racks=("a", "row"))) == 1500.0


def test_power_below_idle_is_no_credit():
    """A job that draws less than its GPUs idle does not let others draw more."""
    round_ = make_round(4, power_cap_w=2000.0)
    table = build(round_)
    table.power_w[:] = 100.0
    assert not uses(round_, table).watts.any()
    option = options(table, np.array([0]))[0]
    assert charge(round_, table.jobs[0], option) == (0.0, 0.0)
