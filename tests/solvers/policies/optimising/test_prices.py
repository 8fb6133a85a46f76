"""The price engine against monolithic HiGHS, its certificate, and its invariance to scale."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from lab.speed.engine import reference
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable


def random_problem(seed):
    """Return a small problem: 1-12 resources, some jobs that must run, some blocks, maybe tight."""
    rng = np.random.default_rng(seed)
    jobs, resources = int(rng.integers(1, 12)), int(rng.integers(1, 13))
    counts = rng.integers(0, 6, jobs)
    start = np.concatenate([[0], np.cumsum(counts)])
    rows = int(start[-1])
    use = rng.integers(0, 9, (resources, rows)) * (rng.random((resources, rows)) < 0.6)
    if rng.random() < 0.3:
        use = use * rng.uniform(0.5, 1.5, use.shape)
    value = rng.uniform(0.1, 5, rows) if rng.random() < 0.7 else rng.integers(1, 5, rows)
    if rng.random() < 0.2:
        value = value - 2.0
    must = (rng.random(jobs) < 0.15) & (counts > 0)
    capacity = np.floor(use.sum(axis=1) * rng.uniform(0.05, 0.6, resources))
    blocks = int(rng.integers(0, 3))
    block_use = rng.integers(-6, 4, (resources, blocks)).astype(float)
    if blocks and rng.random() < 0.5:
        capacity = capacity - 3
    if rng.random() < 0.2:  # a least use: a reservation
        use[0], capacity[0] = -use[0], -np.floor(use[0].sum() * 0.1)
        block_use[0] = 0
    return Separable(
        start=start,
        value=value.astype(float),
        use=Uses.of(use.astype(float)),
        capacity=capacity.astype(float),
        names=tuple(f"r{i}" for i in range(resources)),
        must=must,
        block_value=-rng.uniform(0, 0.5, blocks),
        block_use=block_use,
        block_count=rng.integers(1, 5, blocks),
        block_integer=np.ones(blocks, dtype=bool),
    )


def monolithic(problem):
    """Return the optimum by one MILP over everything, or None if there is no answer."""
    rows, blocks = len(problem.value), len(problem.block_value)
    if rows + blocks == 0:
        return 0.0 if (problem.capacity >= 0).all() else None
    one = np.zeros((problem.jobs, rows + blocks))
    for j in range(problem.jobs):
        one[j, problem.start[j] : problem.start[j + 1]] = 1
    use = np.hstack([problem.use.dense(), problem.block_use])
    least = np.where(problem.must, 1.0, -np.inf)
    found = milp(
        -np.concatenate([problem.value, problem.block_value]),
        integrality=np.ones(rows + blocks),
        bounds=Bounds(0, np.concatenate([np.ones(rows), problem.block_count])),
        constraints=[
            LinearConstraint(use, -np.inf, problem.capacity),
            LinearConstraint(one, least, 1.0),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert found.status in (0, 2)
    return -found.fun if found.status == 0 else None


def bound_from_prices(problem, prices):
    """Return the Lagrangian bound, job by job in plain Python."""
    total = float(sum(p * c for p, c in zip(prices, problem.capacity, strict=True)))
    cost = prices @ problem.use.dense()
    for j in range(problem.jobs):
        best = -np.inf if problem.must[j] else 0.0
        for k in range(problem.start[j], problem.start[j + 1]):
            best = max(best, problem.value[k] - cost[k])
        total += best
    for b, n in enumerate(problem.block_count):
        total += n * max(0.0, problem.block_value[b] - float(prices @ problem.block_use[:, b]))
    return total


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(50, 500, 50))],
)
def test_optimum_and_status_equal_monolithic_highs(first):
    """Same optimum and infeasibility at a gap of 1e-9 in 50 random problems, 500 in a soak."""
    for seed in range(first, first + 50):
        problem = random_problem(seed)
        expected = monolithic(problem)
        answer = solve_separable(problem, Search(gap=1e-9))
        if expected is None:
            assert answer.stop is StopReason.INFEASIBLE, seed
            continue
        assert answer.objective == pytest.approx(expected, rel=1e-6, abs=1e-6), seed
        assert answer.bound >= expected - 1e-6, seed
        assert (problem.excess(answer.chosen, answer.blocks) <= 1e-6).all(), seed


@pytest.mark.parametrize("jobs", [64, 1024, 5000])
def test_gap_is_certified_by_the_prices(jobs):
    """The bound that the prices prove, recomputed by hand, is the engine's."""
    problem = reference(jobs)
    answer = solve_separable(problem, Search(gap=1e-4))
    assert answer.gap <= 1e-4
    assert answer.dual.bound == pytest.approx(bound_from_prices(problem, answer.dual.prices))
    assert answer.bound <= answer.dual.bound * (1 + 1e-12)
    assert (problem.excess(answer.chosen, answer.blocks) <= 1e-6).all()
    assert answer.objective == pytest.approx(problem.value[answer.chosen[answer.chosen >= 0]].sum())


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("what", ["value", "gpus", "watts"])
def test_units_do_not_change_the_plan(scale, what):
    """Value, GPUs or watts in other units: the same choice for every job."""
    problem = reference(256)
    value, use, capacity = problem.value.copy(), problem.use.dense(), problem.capacity.copy()
    if what == "value":
        value *= scale
    else:
        r = {"gpus": 0, "watts": 1}[what]
        use[r] *= scale
        capacity[r] *= scale
    scaled = dataclasses.replace(problem, value=value, use=Uses.of(use), capacity=capacity)
    assert (solve_separable(scaled).chosen == solve_separable(problem).chosen).all()


def test_same_seed_same_plan_and_warm_start_saves_evaluations():
    """Prices of the same problem as a start: fewer evaluations, certified as well."""
    problem = reference(256)
    first = solve_separable(problem, Search(seed=3))
    again = solve_separable(problem, Search(seed=3))
    assert (first.chosen == again.chosen).all()
    warm = solve_separable(
        problem, Search(seed=3, start=dict(zip(problem.names, first.dual.prices, strict=True)))
    )
    assert warm.gap <= 1e-4
    assert warm.dual.evaluations < first.dual.evaluations


def test_short_deadline_returns_a_feasible_plan_with_a_true_bound():
    """0.1 ms is not enough to converge: what comes back is feasible and bounded."""
    problem = reference(5000)
    answer = solve_separable(problem, Search(deadline=Deadline(1e-4)))
    assert answer.stop is StopReason.TIME_LIMIT
    assert answer.chosen is not None
    assert (problem.excess(answer.chosen, answer.blocks) <= 1e-6).all()
    best = solve_separable(problem)
    assert answer.objective <= best.bound <= answer.bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("field", "bad"), [("value", np.nan), ("value", np.inf), ("use", np.nan), ("capacity", np.inf)]
)
def test_numbers_that_are_not_finite_are_refused(field, bad):
    """The error says where."""
    problem = reference(4)
    array = problem.use.amount if field == "use" else getattr(problem, field)
    array.flat[1] = bad
    with pytest.raises(InputError, match=field):
        solve_separable(problem)


@pytest.mark.parametrize("gap", [0.0, 1.0, -1.0, float("nan")])
def test_gap_outside_its_range_is_refused(gap):
    """A gap is a share: above 0 and below 1."""
    with pytest.raises(InputError, match="gap"):
        solve_separable(reference(4), Search(gap=gap))
