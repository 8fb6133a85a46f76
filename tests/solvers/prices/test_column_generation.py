"""Where many resources couple the jobs, columns find the prices, and an answer to begin with."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.rounded_capacity import with_floors
from ronda.formulations.allocation.separable import Separable, normalise
from ronda.solvers.prices.column_generation import MANY, price
from ronda.solvers.prices.core import least_with_strangers
from ronda.solvers.prices.dual import Jobs, Search, bound_at, solve_dual
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.fill import is_feasible


def market(jobs, goods, seed, *, blocks=0, must=0):
    """Return a problem: each job wants 1, 2 or 4 of one good of many, and watts.

    Each block gives 4 of its good and takes 40 watts; the first jobs must run.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([1.0, 2.0, 4.0])
    shape = (jobs, goods, len(sizes))
    value = rng.lognormal(0, 1, (jobs, goods, 1)) * sizes ** rng.uniform(0.5, 0.9, (jobs, 1, 1))
    use = np.zeros((goods + 1, value.size))
    good = np.broadcast_to(np.arange(goods)[:, None], shape).ravel()
    use[good, np.arange(value.size)] = np.broadcast_to(sizes, shape).ravel()
    use[goods] = use[:goods].sum(axis=0) * rng.uniform(5, 15, value.size)
    capacity = np.append(rng.integers(3, 9, goods).astype(float), 30.0 * goods)
    block_use = np.zeros((goods + 1, blocks))
    block_use[np.arange(blocks), np.arange(blocks)] = -4.0
    block_use[goods] = 40.0
    return Separable(
        start=np.arange(jobs + 1) * goods * len(sizes),
        value=value.ravel(),
        use=Uses.of(use),
        capacity=capacity,
        names=(*(f"good {g}" for g in range(goods)), "watts"),
        must=np.arange(jobs) < must,
        block_value=np.full(blocks, -0.01),
        block_use=block_use,
        block_count=np.full(blocks, 2.0),
        block_integer=np.ones(blocks, dtype=bool),
    )


def rows_of(problem):
    """Return the coefficients, upper bounds, values and variables' bounds of a problem."""
    owner = np.repeat(np.arange(problem.jobs), np.diff(problem.start))
    blocks = len(problem.block_value)
    one = np.zeros((problem.jobs, len(owner) + blocks))
    one[owner, np.arange(len(owner))] = 1.0
    rows = np.vstack([one, np.hstack([problem.use.dense(), problem.block_use])])
    upper = np.concatenate([np.ones(problem.jobs), problem.capacity])
    lower = np.concatenate([problem.must.astype(float), np.full(len(problem.names), -np.inf)])
    most = np.concatenate([np.ones(len(owner)), problem.block_count])
    return rows, lower, upper, np.concatenate([problem.value, problem.block_value]), most


def relaxed(problem):
    """Return the value of the relaxation, by HiGHS in SciPy: the least bound of any prices."""
    rows, lower, upper, value, most = rows_of(problem)
    must = np.flatnonzero(np.isfinite(lower) & (lower > 0))
    a = np.vstack([rows, -rows[must]])
    b = np.concatenate([upper, -lower[must]])
    return -linprog(-value, A_ub=a, b_ub=b, bounds=np.array([np.zeros(len(most)), most]).T).fun


@settings(max_examples=25)
@given(
    st.integers(4, 40),
    st.integers(MANY, 24),
    st.integers(0, 99),
    st.integers(0, 5),
    st.integers(0, 2),
)
def test_prices_prove_the_value_of_the_relaxation(jobs, goods, seed, blocks, must):
    """No prices prove less than the relaxation is worth; the answer keeps all capacities."""
    problem, _ = normalise(market(jobs, goods, seed, blocks=blocks, must=must))
    dual = price(problem, Jobs(problem), Search())
    assert dual.bound == pytest.approx(relaxed(problem), rel=1e-6)
    assert dual.answer is not None
    assert is_feasible(problem, *dual.answer)
    assert problem.objective(*dual.answer) <= dual.bound * (1 + 1e-9)


@pytest.mark.parametrize("tolerance", [0.1, 1e-2, 5e-3, 3e-3, 2e-3])
def test_the_bound_is_the_best_that_was_proven_and_within_the_tolerance(tolerance):
    """Some prices on the way prove less than earlier ones; the first that suffice end the search.

    The relaxation, by HiGHS in SciPy, is what the best prices prove.
    """
    for seed in range(8):
        problem, _ = normalise(market(40, MANY, seed))
        dual = price(problem, Jobs(problem), Search(tolerance=tolerance))
        proven = [bound_at(problem, prices) for prices, _ in dual.replies]
        assert dual.bound == pytest.approx(min(proven), rel=1e-9)
        assert bound_at(problem, dual.prices) == pytest.approx(dual.bound, rel=1e-9)
        assert dual.bound <= relaxed(problem) / (1 - tolerance) + 1e-9


def optimum(problem):
    """Return what the best answer is worth, by HiGHS in SciPy."""
    rows, lower, upper, value, most = rows_of(problem)
    best = milp(
        -value,
        integrality=np.ones(len(value)),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(rows, lower, upper),
        options={"mip_rel_gap": 0.0},
    )
    return -best.fun


@settings(max_examples=15)
@given(st.integers(3, 12), st.integers(MANY, 20), st.integers(0, 99), st.integers(0, 3))
def test_the_gap_is_true(jobs, goods, seed, blocks):
    """The optimum, by HiGHS in SciPy, lies between objective and bound."""
    problem = market(jobs, goods, seed, blocks=blocks)
    answer = solve_separable(problem, Search(gap=1e-4))
    assert is_feasible(problem, answer.chosen, answer.blocks, 1e-6)
    assert answer.objective * (1 - 1e-9) <= optimum(problem) <= answer.bound * (1 + 1e-9)
    assert answer.gap <= 1e-4


def goods_only(jobs, goods, seed, *, blocks=0, must=0):
    """Return a normalised problem as `market`, without watts, by kinds of use."""
    problem = market(jobs, goods, seed, blocks=blocks, must=must)
    problem = replace(
        problem,
        use=problem.use.only(np.arange(goods)),
        capacity=problem.capacity[:goods],
        names=problem.names[:goods],
        block_use=problem.block_use[:goods],
    )
    return with_floors(normalise(problem)[0])[0]


@settings(max_examples=25)
@given(
    st.integers(30, 50),
    st.integers(0, 99),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(1, 40),
)
def test_strangers_prove_no_more_than_is_true(jobs, seed, blocks, must, size):
    """No answer is worth more than the bound less what strangers prove, whatever the core."""
    problem = goods_only(jobs, MANY, seed, blocks=blocks, must=must)
    asked = Jobs(problem)
    dual = price(problem, asked, Search())
    short = dual.bound - optimum(problem)
    losses = asked.losses(dual.prices, np.inf, size)
    found = least_with_strangers(
        problem, asked, dual, losses, enough=1.01 * short + 1e-6, seconds=60.0, seed=0
    )
    assert found <= short * (1 + 1e-6) + 1e-7


def test_strangers_prove_what_losses_do_not():
    """All plans fall short by a third more than the least loss of options outside the core."""
    problem = goods_only(200, 20, 1)
    asked = Jobs(problem)
    dual = price(problem, asked, Search())
    best = solve_separable(problem, Search(gap=1e-5)).objective
    enough = dual.bound - (1 + 1e-4) * best
    losses = asked.losses(dual.prices, np.inf, 100)
    found = least_with_strangers(problem, asked, dual, losses, enough=enough, seconds=60.0, seed=0)
    assert 1.3 * losses.next_loss < found <= enough


@given(st.integers(0, 99), st.booleans(), st.integers(1, 4))
def test_the_best_options_of_each_job_enter(seed, by_kinds, most):
    """Those above what the job has, of the kinds in question, less what is known: all compared."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], rng.integers(0, 9, 30).cumsum()])
    use = rng.integers(0, 3, (3, start[-1])).astype(float)
    problem = Separable.without_blocks(
        start, rng.uniform(0, 9, start[-1]), use, np.ones(3), ("a", "b", "c")
    )
    uses = problem.use.by_kinds() if by_kinds else problem.use
    prices, worth = rng.uniform(0, 2, 3), rng.uniform(-1, 5, 30)
    known, among = rng.random(start[-1]) < 0.3, rng.random(uses.amount.shape[1]) < 0.6
    surplus = problem.value - prices @ use
    surplus[known | ~uses.each(among)] = -np.inf
    best = set()
    for j, (own, end) in enumerate(pairwise(start)):
        rows = own + np.argsort(-surplus[own:end])[:most]
        best |= set(rows[surplus[rows] > worth[j]].tolist())
    jobs = Jobs(replace(problem, use=uses))
    found = jobs.best_of_each(prices, worth, known, most, among).tolist()
    assert len(found) == len(set(found))
    assert set(found) == best


def test_columns_and_planes_prove_the_same():
    """1,000 jobs, 16 goods: prices of a sample first; planes need many times the evaluations."""
    problem, _ = normalise(market(1000, MANY - 1, 3))
    jobs = Jobs(problem)
    by_columns, by_planes = price(problem, jobs, Search()), solve_dual(problem, jobs, Search())
    assert by_columns.bound <= by_planes.bound * (1 + 1e-9)
    assert by_columns.evaluations * 4 < by_planes.evaluations
    assert problem.objective(*by_columns.answer) > 0.9 * by_columns.bound


def test_prices_of_an_earlier_problem_are_a_start():
    """At the prices found no option enters but those that bind: one evaluation, then the proof."""
    problem = market(200, MANY, 5)
    first = solve_separable(problem, Search())
    again = solve_separable(problem, Search(start=problem.named(first.dual.prices)))
    assert again.dual.evaluations < first.dual.evaluations
    assert abs(again.objective - first.objective) <= 1e-4 * first.bound


def test_jobs_that_cannot_all_run_have_no_answer():
    """Two jobs that must run want the one good that is left."""
    goods = MANY
    use = np.zeros((goods, 2))
    use[0] = 1.0
    problem = replace(
        Separable.without_blocks(
            np.arange(3), np.ones(2), use, np.ones(goods), tuple(f"good {g}" for g in range(goods))
        ),
        must=np.ones(2, dtype=bool),
    )
    assert price(problem, Jobs(problem), Search()).answer is None
    assert solve_separable(problem).chosen is None
