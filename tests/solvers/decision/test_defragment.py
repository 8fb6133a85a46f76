"""Running jobs move together only where the watts saved are worth the progress lost."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.build import build
from ronda.formulations.watts import idle_w, wakes
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import PowerCurve, rigid_profile
from ronda.instances.round import Round
from ronda.solvers.decision.realise import OVER, realise

CLUSTER = Cluster(
    gpu_types=(GpuType(name="v", memory_gib=16, idle_w=50),),
    node_groups=(
        NodeGroup(
            name="g",
            count=2,
            gpus_per_node=8,
            gpu_type="v",
            host_idle_w=100,
            sleep_w=20,
            wake_s=60,
            wake_w=80,
        ),
    ),
)


def half_full(power_cap_w=10_000.0):
    """Return a round in which a job of 4 GPUs runs on each of two nodes of 8 GPUs.

    Both jobs have 1,000 s of work left at rate 1, and a restart takes 100 s.
    """
    states = [
        JobState(
            job=Job(id=job, submit_s=0, profile="rigid", gpus=4, estimate=Estimate(work=1000)),
            since_s=0,
            started=True,
            allocation=Allocation(
                option=Option(pool=0, gpus=4, power_w=200.0), placement=((node, 4),)
            ),
        )
        for node, job in enumerate("ab")
    ]
    return Round(
        length_s=60,
        cluster=CLUSTER,
        profiles={"rigid": rigid_profile("v")},
        running=tuple(states),
        costs=Costs(restart_s=100),
        power_cap_w=power_cap_w,
    )


def realised(round, watt_value):
    """Return what becomes of both jobs keeping their options, worth 3 each and 1 as no stop."""
    table = build(round)
    rows = np.flatnonzero(table.current)
    return realise(round, table, np.full(len(table), 4.0), rows, watt_value=watt_value)


def test_idle_watts_of_a_cluster():
    """A node draws 100 W + 8 * 50 W awake, 20 W asleep."""
    assert idle_w(half_full(), None) == 1000
    assert idle_w(half_full(), (1,)) == 520


def test_nodes_that_wake_draw_more_until_they_are_awake():
    """Node 1 sleeps now; if it does not under the plan it draws 80 W more while it wakes."""
    round = msgspec.structs.replace(half_full(), running=half_full().running[:1], asleep=(1,))
    assert (idle_w(round, None), wakes(round, None)[0].tolist()) == (520, [])
    assert idle_w(round, ()) == 1000
    assert [column.tolist() for column in wakes(round, ())] == [[80.0], [60.0]]


def test_waking_watts_count_against_the_limit():
    """A job of 8 GPUs beside one of 4, all at 100 W, needs both nodes.

    They draw 1,000 W idle, 80 W while one wakes, and the jobs 12 * (100 W - 50 W) on top: 1,680 W
    suffice and 1,679 W do not.
    """
    hot = rigid_profile("v")
    hot = msgspec.structs.replace(hot, power={"v": PowerCurve(a_w=100)})
    new = JobState(
        job=Job(id="c", submit_s=0, profile="rigid", gpus=8, estimate=Estimate(work=10)), since_s=0
    )
    for watts, served in ((1680.0, True), (1679.0, False)):
        round = msgspec.structs.replace(
            half_full(watts),
            profiles={"rigid": hot},
            running=half_full().running[:1],
            waiting=(new,),
            asleep=(1,),
        )
        table = build(round)
        found = realise(round, table, np.ones(len(table)), table.start[:-1], watt_value=0.0)
        assert ("c" in found.allocations) is served
        assert served or found.unplaced == {"c": OVER}


def test_loss_of_a_move_is_the_share_of_the_pause():
    """H = min(100 s + 1,000 s, 300 s) = 300 s; of 4 a stop loses 1, as a move: 3 * 100/300."""
    round = half_full()
    table = build(round)
    rows = np.flatnonzero(table.current)
    value = np.full(len(table), 4.0)
    assert loss_of_moves(round, table, value, rows, ("a",)) == pytest.approx(1.0)
    assert loss_of_moves(round, table, value, rows, ("a", "b")) == pytest.approx(2.0)
    assert loss_of_moves(round, table, value, rows, ()) == 0


@pytest.mark.parametrize(("watt_value", "moved"), [(1 / 481, 0), (1 / 479, 1)])
def test_jobs_move_together_when_the_watts_are_worth_it(watt_value, moved):
    """One move empties a node, which saves 480 W; it pays from 1/480 a watt on."""
    found = realised(half_full(), watt_value)
    assert len(found.moved) == moved
    assert len(found.asleep) == moved
    assert found.unplaced == {}
    assert found.moved_gpus == 4 * moved


def test_jobs_move_together_when_the_limit_demands_it():
    """Within 520 W idle and no extra power only one node can be awake, whatever a watt is worth."""
    assert len(realised(half_full(power_cap_w=530.0), 0.0).moved) == 1
    assert len(realised(half_full(power_cap_w=530.0), 1e-9).moved) == 1


def test_nothing_moves_without_need():
    """If energy has no price and the limit is far, both nodes stay as they are."""
    assert realised(half_full(), 0.0).moved == ()
