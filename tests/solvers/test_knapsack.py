"""Few jobs and one resource: dynamic programming and exact prices against brute force and HiGHS."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.separable import Separable
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.dual import solve_dual
from ronda.solvers.knapsack import Demand, best_of_all, fits
from ronda.solvers.planes import Line
from ronda.solvers.prices import solve_separable
from ronda.solvers.shards import LocalJobs


def one_resource(jobs, capacity, must=()):
    """Return a problem of jobs given as lists of (value, units)."""
    rows = [row for job in jobs for row in job]
    return Separable(
        start=np.cumsum([0] + [len(job) for job in jobs]),
        value=np.array([v for v, _ in rows], dtype=float),
        use=np.array([[a for _, a in rows]], dtype=float),
        capacity=np.array([capacity], dtype=float),
        names=("gpus[default/A]",),
        must=np.array([j in must for j in range(len(jobs))]),
        block_value=np.zeros(0),
        block_use=np.zeros((1, 0)),
        block_count=np.zeros(0),
        block_integer=np.zeros(0, dtype=bool),
    )


def brute_force(problem):
    """Return the best value over all ways to choose, None if there is none."""
    ways = []
    for j in range(problem.jobs):
        own = list(range(problem.start[j], problem.start[j + 1]))
        ways.append(own if problem.must[j] else [-1, *own])
    best = None
    for chosen in product(*ways):
        rows = [k for k in chosen if k >= 0]
        if problem.use[0, rows].sum() <= problem.capacity[0]:
            value = float(problem.value[rows].sum())
            best = value if best is None else max(best, value)
    return best


def test_by_hand():
    """Two jobs on 4 GPUs: (6 for 4), (5 for 2) against (4 for 2): 5 + 4 beats 6.

    D(p) = 4 p + max(0, 6 - 4 p, 5 - 2 p) + max(0, 4 - 2 p). At p = 0: 10, using 4 + 2 = 6 of 4.
    From p = 1/2, where 6 - 4 p = 5 - 2 p, both take 2: D = 9 there, and up to p = 2.
    """
    problem = one_resource([[(6, 4), (5, 2)], [(4, 2)]], 4)
    assert fits(problem)
    assert best_of_all(problem).tolist() == [1, 2]
    found = Demand(problem).least()
    assert found.bound == pytest.approx(9.0)
    assert 0.5 <= found.price <= 2.0
    answer = solve_separable(problem)
    assert (answer.objective, answer.bound, answer.stop) == (9.0, 9.0, StopReason.COMPLETE)
    assert answer.search == "dynamic programme"


def test_gap_between_optimum_and_prices():
    """One job of 3 GPUs worth 3 and one of 2 worth 1.9 on 4 GPUs: 3, but D = 3.95.

    D(p) = 4 p + max(0, 3 - 3 p) + max(0, 1.9 - 2 p): least at p = 0.95, with 3.8 + 0.15.
    """
    answer = solve_separable(one_resource([[(3, 3)], [(1.9, 2)]], 4))
    assert answer.chosen.tolist() == [0, -1]
    assert answer.bound == 3.0  # proven by the programme
    assert answer.dual.prices[0] == pytest.approx(0.95)
    assert answer.dual.bound == pytest.approx(3.95)
    assert answer.dual_gap == pytest.approx(0.95 / 3.95)


def test_nothing_scarce_costs_nothing():
    """Three GPUs for two jobs of one: both run, the price is 0."""
    answer = solve_separable(one_resource([[(1, 1)], [(2, 1)]], 3))
    assert answer.chosen.tolist() == [0, 1]
    assert answer.dual.prices.tolist() == [0.0]
    assert answer.dual.bound == 3.0


def test_jobs_that_must_run_beyond_what_there_is():
    """Two jobs that must run need 4 of 3: no answer, and no endless search for a price."""
    answer = solve_separable(one_resource([[(1, 2)], [(1, 2)]], 3, must=(0, 1)))
    assert answer.chosen is None
    assert answer.stop is StopReason.INFEASIBLE


def test_a_job_that_must_run_may_be_worth_less_than_nothing():
    """It takes its least bad option, and the other one what is left: -1 + 2."""
    problem = one_resource([[(-1, 1), (-3, 2)], [(2, 1), (9, 2)]], 2, must=(0,))
    assert best_of_all(problem).tolist() == [0, 2]


job = st.lists(
    st.tuples(st.integers(1, 50).map(lambda v: v / 8), st.integers(0, 9)), min_size=1, max_size=4
)


@settings(deadline=None, max_examples=100)
@given(
    jobs=st.lists(job, min_size=1, max_size=5),
    capacity=st.integers(1, 20),
    must=st.sets(st.integers(0, 4), max_size=2),
)
def test_equal_to_brute_force_and_to_the_dual_in_general(jobs, capacity, must):
    """The optimum is that of all ways to choose; the bound is no weaker than in general."""
    problem = one_resource(jobs, capacity, must)
    assert fits(problem)
    best, answer = brute_force(problem), solve_separable(problem)
    if best is None:
        assert answer.chosen is None
        return
    assert answer.objective == pytest.approx(best)
    dual = solve_dual(problem, LocalJobs(problem), tolerance=1e-9, deadline=Deadline())
    assert answer.dual.bound <= dual.bound + 1e-7 * abs(dual.bound) + 1e-9
    if not must:  # what must run may need prices above the general method's ceiling
        assert answer.dual.bound == pytest.approx(dual.bound, rel=1e-7, abs=1e-9)
    assert answer.dual.bound >= best - 1e-9 * abs(best)


@pytest.mark.parametrize(
    "problem",
    [
        one_resource([[(1, 0.5)]], 4),  # no whole units
        one_resource([[(1, -1)]], 4),  # provides instead of using
        one_resource([[(1, 1)]], -1),  # a reservation
        one_resource([[(1, 1)]] * 65, 4),  # many jobs
        one_resource([[(1, 1)] * 401], 4),  # many options
        one_resource([[(1, 1)] * 400], 1000),  # many steps
    ],
)
def test_what_does_not_fit(problem):
    """Anything else is left to the prices of the general method."""
    assert not fits(problem)


def test_line_finds_where_two_tangents_meet():
    """max(4 - 2 p, 1 + p): 2 at p = 1, within [0, 3]; 2.5 at 1.5 within [1.5, 3]; 3 at 0.5."""
    line = Line()
    line.add(np.array([0.0]), 4.0, np.array([-2.0]))
    assert line.lowest(np.zeros(1), np.array([3.0]))[1] == 3.0  # falls as far as is known
    line.add(np.array([3.0]), 4.0, np.array([1.0]))
    for low, high, at, value in ((0.0, 3.0, 1.0, 2.0), (1.5, 3.0, 1.5, 2.5), (0.0, 0.5, 0.5, 3.0)):
        found, point = line.lowest(np.array([low]), np.array([high]))
        assert (found, point.tolist()) == (value, [at])
