"""The ski-rental rule for idle nodes, by hand."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.sleeping.standby import break_even_s, spare_of, stand_by
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
    """A GPU earns what 100 W cost: 300 s (190 + 4 × 100) W = 177 kJ; idling costs 180 W: 983 s.

    Without earnings only the 57 kJ of waking count, 317 s.
    """
    assert break_even_s(three_nodes(), 100.0) == pytest.approx([2950 / 3] * 3)
    assert break_even_s(three_nodes(), 0.0) == pytest.approx([950 / 3] * 3)


def test_a_node_that_saves_nothing_never_sleeps():
    """Asleep it would draw as much as idle."""
    group = msgspec.structs.replace(GROUP, sleep_w=190.0)
    assert np.isinf(break_even_s(three_nodes(group=group), 0.0)).all()


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
