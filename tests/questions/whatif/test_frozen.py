"""The plan of a changed round is never worse than what was there, and its bound minds energy."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.questions.whatif.changes import Gpus
from ronda.questions.whatif.frozen import freeze
from valued_rounds import cluster, rigid, run, snapshot


def test_a_job_goes_on_where_the_gpus_that_are_left_just_hold_it():
    """A node of 4 GPUs loses the two that are free; one more, and its job stops."""
    round_ = snapshot(run(rigid("a", 100.0, gpus=2), 2, 1.0), on=cluster(4), now_s=10.0)
    left = Gpus("V100", -2).apply(round_)
    assert left.cluster.topology.node_gpus.tolist() == [2]
    assert left.running == round_.running
    assert Gpus("V100", -3).apply(round_).running == ()


def test_the_plan_of_the_round_as_it_is_stands_where_nothing_better_is_found():
    """Without time what came first starts, the wide job; the two short ones are worth more."""
    waiting = rigid("wide", 400.0, gpus=2), rigid("b", 100.0), rigid("c", 100.0)
    round_ = snapshot(*waiting, on=cluster(2))
    frozen = freeze(ronda.policy("prices"), round_, 0, None, None)
    base = frozen.judged(round_, None)
    assert base.plan.allocations.keys() == {"b", "c"}
    frozen.limit_s = 1e-9
    assert ronda.solve(round_, frozen, deadline=1e-9).allocations.keys() == {"wide"}
    hurried = frozen.judged(round_, None, base)
    assert hurried.plan.allocations == base.plan.allocations


def test_the_bound_counts_energy_by_the_times_that_have_a_price():
    """100 W accrue and 5 kJ are banked; a draws 120 W for 100 s, b 80 W for the hour.

    Both need 300 kJ of the 365 kJ there are by the end of the window, but 20 of 15 kJ by 100 s.
    There a needs 12 kJ and b 8: worth 1.25 and 0.75, all of a and 3/8 of b fit, for 1.53125.
    """
    watts = {
        name: Profile(name=name, throughput={"G": Rigid()}, power={"G": PowerCurve(a_w=w)})
        for name, w in (("a", 120.0), ("b", 80.0))
    }
    jobs = tuple(
        JobState(
            job=Job(id=name, submit_s=0.0, profile=name, gpus=1, estimate=Estimate(work=seconds)),
            since_s=0.0,
        )
        for name, seconds in (("a", 100.0), ("b", 7200.0))
    )
    group = NodeGroup(name="n", count=1, gpus_per_node=2, gpu_type="G")
    round_ = ronda.Round(
        cluster=Cluster(gpu_types=(GpuType(name="G", memory_gib=16.0),), node_groups=(group,)),
        profiles=watts,
        waiting=jobs,
        energy_j=365e3,
        banked_j=5e3,
        sustained_w=100.0,
        window_s=3600.0,
    )
    frozen = freeze(ronda.policy("prices"), round_, 0, None, None)
    base = frozen.judged(round_, None)
    assert base.worth == pytest.approx({"a": 1.25, "b": 0.0})
    assert base.bound == pytest.approx(1.25 + 0.75 * 3 / 8)
    without = replace(round_, energy_j=None, banked_j=None, sustained_w=None)
    assert frozen.judged(without, None).bound == pytest.approx(1.25 + 0.75)
