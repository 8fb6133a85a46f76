"""Limits of a round: GPUs per pool, and watts with and without sleeping nodes."""

import numpy as np
import pytest

from ronda.formulations.allocation.limits import capped_w, limits
from ronda.formulations.options.build import build
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round


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
    """Without cap and energy limit there is one resource per pool."""
    round_ = make_round(1, 4)
    found = limits(round_, build(round_))
    assert found.names == ("gpus[default/V100]",)
    assert found.capacity.tolist() == [8.0]
    assert found.demand.tolist() == [[1.0, 4.0]]


def test_watts_count_above_the_idle_cluster():
    """With no use in sleep, 2000 W leave 2000 - 2 x 400 = 1200 W; a GPU adds 250 - 50 = 200 W."""
    round_ = make_round(1, 4, where=cluster(sleep_w=400.0), power_cap_w=2000.0)
    found = limits(round_, build(round_))
    assert found.names[-1] == "watts"
    assert found.capacity.tolist() == [8.0, 1200.0]
    assert found.demand[1].tolist() == [200.0, 800.0]
    assert not found.node_w


def test_the_tighter_of_cap_and_energy_counts():
    """3.6 MJ for an hour is 1000 W, below the cap of 2000 W: 1000 - 800 = 200 W are left."""
    no_sleep = cluster(sleep_w=400.0)
    round_ = make_round(1, where=no_sleep, power_cap_w=2000.0, energy_j=3.6e6, window_s=3600.0)
    assert limits(round_, build(round_)).capacity[-1] == pytest.approx(200.0)


def test_sleeping_nodes_leave_more_watts():
    """Asleep the cluster draws 20 W; GPUs 1-4 wake one node (390 W more), 5-8 the other."""
    round_ = make_round(1, 4, power_cap_w=2000.0)
    found = limits(round_, build(round_))
    assert found.capacity[-1] == 2000.0 - 20.0
    assert found.node_w[0].tolist() == [0.0] + [390.0] * 4 + [780.0] * 4


def test_caps_of_racks_that_hold_all_nodes_add_up():
    """Two racks at 900 W and 700 W limit the whole to 1600 W; inner caps do not count twice."""
    inner = (
        Rack(name="row", power_cap_w=1800.0),
        Rack(name="a", power_cap_w=900.0),
        Rack(name="b", power_cap_w=700.0),
    )
    assert capped_w(cluster(racks=inner, in_racks=("a", "b"))) == 1600.0
    nested = (Rack(name="row", power_cap_w=1500.0), Rack(name="a", parent="row"), Rack(name="b"))
    assert capped_w(cluster(racks=nested, in_racks=("a", "b"))) is None
    both = (Rack(name="row", power_cap_w=1500.0), Rack(name="a", parent="row", power_cap_w=900.0))
    assert capped_w(cluster(racks=both, in_racks=("a", "row"))) == 1500.0


def test_power_below_idle_is_no_credit():
    """A job that draws less than its GPUs idle does not let others draw more."""
    round_ = make_round(4, power_cap_w=2000.0)
    table = build(round_)
    table.power_w[:] = 100.0
    assert np.all(limits(round_, table).demand[1] == 0.0)
