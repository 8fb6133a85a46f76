"""Weights of very different size: what cannot run sets no scale, and bounds hold for what can."""

import pytest
from msgspec.structs import replace

import ronda
from limited_rounds import limited_round
from ronda.instances import generate
from ronda.instances.rules.validate import validate


def with_huge(seed, weight):
    """Return a round with a job of a huge weight that needs more GPUs than its cap bears."""
    round_ = limited_round(seed)
    last = round_.waiting[-1]
    gpus = int(round_.cluster.topology.node_gpus.sum())
    some = {"min_gpus": gpus, "max_gpus": gpus} if last.job.min_gpus else {}
    job = replace(last.job, id="huge", gpus=gpus, weight=weight, **some)
    return validate(replace(round_, waiting=(*round_.waiting, replace(last, job=job))))


@pytest.mark.parametrize("weight", [1e6, 1e9])
@pytest.mark.parametrize("seed", [10, 19, 90])
@pytest.mark.parametrize("spec", ["milp", "milp(placement=exact)", "cp-sat"])
def test_a_job_that_no_limit_admits_sets_no_scale(spec, seed, weight):
    """Plans are worth what they are without it, but for its share in how jobs age."""
    plan = ronda.solve(with_huge(seed, weight), spec)
    priced = ronda.solve(with_huge(seed, weight), "prices")
    assert "huge" not in plan.allocations
    assert plan.objective == pytest.approx(priced.objective, rel=1e-3)
    assert plan.bound >= priced.objective * (1 - 1e-3)


@pytest.mark.parametrize(("seed", "jobs"), [(21, 4), (8, 8), (17, 8), (43, 8)])
def test_the_bound_of_a_milp_holds_beside_a_huge_weight(seed, jobs):
    """A ten-millionth of the largest value is worth less than HiGHS looks at by default: 1e-6."""
    round_ = generate.round(jobs, 24, "balanced", seed)
    first, *others = round_.waiting
    first = replace(first, job=replace(first.job, weight=1e7))
    heavy = replace(round_, waiting=(first, *others))
    fine = ronda.solve(heavy, "prices(gap=1e-9)")
    assert ronda.solve(heavy, "milp").bound >= fine.objective * (1 - 1e-9)
