"""What plans say of themselves: *optimal* only what their own bound proves, on nodes."""

import pytest

import ronda
from limited_rounds import limited_round
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.plan import SolutionStatus
from ronda.instances.profile import Parametric, PowerCurve, Profile
from ronda.instances.round import Round


@pytest.mark.parametrize("objective", ["rank", "finish-time-fairness", "density"])
@pytest.mark.parametrize("policy", ["prices", "milp"])
@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e9])
def test_where_nothing_can_run_the_gap_is_0(policy, objective, weight):
    """A host of 100 W, an idle GPU of 50 W and 150 W more for a job are more than 200 W."""
    gpu = GpuType(name="A", memory_gib=16.0, idle_w=50.0, clocks=(0.9, 1.0))
    model, curve = Parametric(alpha_c_s=1.0, beta_c_s=0.0), PowerCurve(a_w=40.0, b_w=160.0)
    job = Job(id="a", submit_s=0.0, profile="net", weight=weight, estimate=Estimate(work=100.0))
    round_ = Round(
        now_s=1000.0,
        cluster=uniform_cluster(gpu, 1, 1, host_idle_w=100.0),
        profiles={"net": Profile(name="net", throughput={"A": model}, power={"A": curve})},
        waiting=(JobState(job=job, since_s=0.0),),
        power_cap_w=200.0,
    )
    plan = ronda.solve(round_, f"{policy}(objective={objective})")
    assert (plan.allocations, plan.objective, plan.bound) == ({}, 0.0, 0.0)
    assert (plan.status, str(plan.gap)) == (SolutionStatus.OPTIMAL, "0.0")


@pytest.mark.parametrize("seed", [18, 29, 33, 47, 59, 61])
@pytest.mark.parametrize("policy", ["genetic", "evolve"])
def test_a_search_proves_what_it_has_placed(policy, seed):
    """The best genome may be within the gap; what is placed, and moved for it, need not be."""
    plan = ronda.solve(limited_round(seed), policy)
    assert plan.status is not SolutionStatus.OPTIMAL or plan.gap <= 1e-4
