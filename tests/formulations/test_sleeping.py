"""The ski-rental rule for idle nodes, by hand."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.sleeping import SurplusNodes, break_even_s, spare_of, stand_by, standing
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.plan import Plan
from ronda.instances.round import Round

GROUP = NodeGroup(
    name="n",
    count=3,
    gpus_per_node=4,
    gpu_type="G",
    host_idle_w=150.0,
    sleep_w=10.0,
    wake_s=300.0,
)


def three_nodes(watts=1e6, *, asleep=(), group=GROUP, racks=()):
    """Return a round without jobs on three nodes: 190 W idle, 10 W asleep, 300 s to wake."""
    cluster = Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16, idle_w=10.0),),
        node_groups=(group,),
        racks=racks,
    )
    return Round(cluster=cluster, profiles={}, now_s=1000.0, power_cap_w=watts, asleep=asleep)


def sleeping(*nodes):
    """Return a plan that runs nothing and lets nodes sleep."""
    return Plan(policy="p", allocations={}, asleep=nodes)


def test_break_even_time():
    """Waking draws 190 W for 300 s, 57 kJ; idling costs 180 W more than sleep: 317 s."""
    assert break_even_s(three_nodes()) == pytest.approx([950 / 3] * 3)


def test_a_node_that_saves_nothing_never_sleeps():
    """Asleep it would draw as much as idle."""
    group = msgspec.structs.replace(GROUP, sleep_w=190.0)
    assert np.isinf(break_even_s(three_nodes(group=group))).all()


def test_nodes_that_do_not_pay_stand_by_for_the_break_even_time():
    """One of three nodes pays: the others stand by for 317 s from when that was so.

    Those that came last are needed again first; what sleeps neither pays nor stands by.
    """
    round_, pool = three_nodes(), "default/G"
    first = standing(round_, [1], None)
    assert (first.awake, first.since) == ((3,), {pool: [1000.0, 1000.0]})
    assert first.left_s == pytest.approx(950 / 3)
    before = Plan(policy="p", allocations={}, memory=SurplusNodes({pool: [600.0, 900.0]}).noted())
    one = standing(round_, [1], before)
    assert (one.awake, one.left_s) == ((2,), pytest.approx(950 / 3 - 100.0))
    assert standing(round_, [2], before).since == {pool: [600.0]}
    assert standing(round_, [2], before).left_s == 0.0
    asleep = standing(three_nodes(asleep=(2,)), [1], before)
    assert (asleep.awake, asleep.since) == ((1,), {pool: [600.0]})


def test_nodes_idle_until_then():
    """Of three idle nodes the one that has idled for 400 s sleeps."""
    limit_s = np.full(3, 300.0)
    since = {0: 600.0, 1: 800.0}
    assert stand_by(three_nodes(), sleeping(0, 1, 2), [0], since, limit_s) == (0,)


def test_power_is_for_nodes_that_idle_least():
    """30 W asleep leave room for one idle node, 180 W more, of 220 W: the latest."""
    limit_s = np.full(3, 300.0)
    since = {0: 990.0, 1: 800.0, 2: 995.0}
    round_ = three_nodes(220.0)
    assert spare_of(round_, sleeping(0, 1, 2)) == 190.0
    assert stand_by(round_, sleeping(0, 1, 2), [0], since, limit_s) == (0, 1)


def test_what_the_plan_waits_for_is_woken_first():
    """Two nodes must be awake: the one that is awake now, then one of those that sleep.

    Waking draws 20 W on top here: 30 + 180 + 200 W.
    """
    group = msgspec.structs.replace(GROUP, wake_w=20.0)
    round_ = three_nodes(410.0, asleep=(0, 1), group=group)
    assert stand_by(round_, sleeping(0, 1, 2), [2], {}, np.zeros(3)) == (1,)
    short = three_nodes(409.0, asleep=(0, 1), group=group)
    assert stand_by(short, sleeping(0, 1, 2), [2], {}, np.zeros(3)) == (0, 1)


def test_limits_of_racks_hold():
    """A rack of 590 W has room for all three nodes, one of 400 W for two, one of 389 W for one."""
    group = msgspec.structs.replace(GROUP, rack="r")
    for cap_w, asleep in ((590.0, ()), (400.0, (2,)), (389.0, (1, 2))):
        round_ = three_nodes(group=group, racks=(Rack(name="r", power_cap_w=cap_w),))
        found = stand_by(round_, sleeping(0, 1, 2), [3], {}, np.full(3, 1e9))
        assert found == asleep, cap_w
