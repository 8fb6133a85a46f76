"""Few jobs and one resource: dynamic programming and exact prices against brute force and HiGHS."""

import math
from itertools import product
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.separable import Separable
from ronda.solvers.contract import Deadline
from ronda.solvers.prices import knapsack
from ronda.solvers.prices.dual import solve_dual
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.jobs import LocalJobs
from ronda.solvers.prices.knapsack import best_answer, least_bound
from ronda.solvers.prices.planes import Line


def offers_of(jobs, must=()):
    """Return the offers of jobs given as lists of (value, units); options are counted through."""
    names = iter(range(sum(map(len, jobs))))
    named = [[(v, a, next(names)) for v, a in job] for job in jobs]
    return [(sorted(job, key=itemgetter(1)), j in must) for j, job in enumerate(named)]


def best(jobs, capacity, must=()):
    """Return the option of each job in a best answer, None if there is none."""
    offers = offers_of(jobs, must)
    priced = least_bound(offers, capacity)
    return None if priced is None else best_answer(offers, capacity, priced).chosen


def separable(jobs, capacity, must=()):
    """Return the same as arrays, for the general method."""
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


def brute_force(jobs, capacity, must=()):
    """Return the best value over all ways to choose, None if there is none."""
    ways = [job if j in must else [(0.0, 0), *job] for j, job in enumerate(jobs)]
    values = [
        sum(v for v, _ in chosen)
        for chosen in product(*ways)
        if sum(a for _, a in chosen) <= capacity
    ]
    return max(values, default=None)


def worth(jobs, chosen):
    """Return the value of an answer."""
    rows = [row for job in jobs for row in job]
    return sum(rows[k][0] for k in chosen if k >= 0)


def test_by_hand():
    """Two jobs on 4 GPUs: (6 for 4), (5 for 2) against (4 for 2): 5 + 4 beats 6.

    D(p) = 4 p + max(0, 6 - 4 p, 5 - 2 p) + max(0, 4 - 2 p). At p = 0: 10, using 4 + 2 = 6 of 4.
    From p = 1/2, where 6 - 4 p = 5 - 2 p, both take 2: D = 9 there, and up to p = 2. The lowest
    of these prices is the one.
    """
    jobs = [[(6, 4), (5, 2)], [(4, 2)]]
    assert best(jobs, 4) == [1, 2]
    found = least_bound(offers_of(jobs), 4)
    assert found == (0.5, 9.0, [1, 2], 0)


def test_gap_between_optimum_and_prices():
    """One job of 3 GPUs worth 3 and one of 2 worth 1.9 on 4 GPUs: 3, but D = 3.95.

    D(p) = 4 p + max(0, 3 - 3 p) + max(0, 1.9 - 2 p): least at p = 0.95, with 3.8 + 0.15.
    """
    jobs = [[(3, 3)], [(1.9, 2)]]
    assert best(jobs, 4) == [0, -1]
    found = least_bound(offers_of(jobs), 4)
    assert found.price == pytest.approx(0.95)
    assert found.bound == pytest.approx(3.95)


def test_nothing_scarce_costs_nothing():
    """Three GPUs for two jobs of one: both run, the price is 0."""
    jobs = [[(1, 1)], [(2, 1)]]
    assert best(jobs, 3) == [0, 1]
    found = least_bound(offers_of(jobs), 3)
    assert found == (0.0, 3.0, [0, 1], 1)


def test_jobs_that_must_run_beyond_what_there_is():
    """Two jobs that must run need 4 of 3: no answer, and no endless search for a price."""
    assert best([[(1, 2)], [(1, 2)]], 3, must=(0, 1)) is None


def test_a_job_that_must_run_may_be_worth_less_than_nothing():
    """It takes its least bad option, and the other one what is left: -1 + 2."""
    assert best([[(-1, 1), (-3, 2)], [(2, 1), (9, 2)]], 2, must=(0,)) == [0, 2]


def test_jobs_without_options_take_nothing():
    """One has none, the other one too much for the GPUs."""
    assert best([[], [(1, 3)]], 2) == [-1, -1]


job = st.lists(
    st.tuples(st.integers(1, 50).map(lambda v: v / 8), st.integers(0, 9)), min_size=1, max_size=4
)


@settings(deadline=None, max_examples=150)
@given(
    jobs=st.lists(job, min_size=1, max_size=5),
    capacity=st.integers(1, 20),
    must=st.sets(st.integers(0, 4), max_size=2),
)
def test_equal_to_brute_force_and_to_the_dual_in_general(jobs, capacity, must):
    """The optimum is that of all ways to choose; the bound is no weaker than in general."""
    value, chosen = brute_force(jobs, capacity, must), best(jobs, capacity, must)
    if value is None:
        assert chosen is None
        return
    assert worth(jobs, chosen) == pytest.approx(value)
    problem, found = separable(jobs, capacity, must), least_bound(offers_of(jobs, must), capacity)
    dual = solve_dual(problem, LocalJobs(problem), tolerance=1e-9, deadline=Deadline())
    assert found.bound <= dual.bound + 1e-7 * abs(dual.bound) + 1e-9
    if not must:  # what must run may need prices above the general method's ceiling
        assert found.bound == pytest.approx(dual.bound, rel=1e-7, abs=1e-9)
    assert found.bound >= value - 1e-9 * abs(value)


@pytest.mark.parametrize("seed", range(20))
def test_equal_to_the_general_method_where_prices_leave_much_undecided(seed, monkeypatch):
    """20 jobs of 5 options with uneven values on 40 units; given up without any labels."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, (20, 5))
    values = sizes ** rng.uniform(0.5, 1.0, (20, 1)) * rng.uniform(0.8, 1.2, (20, 5))
    pairs = zip(values.tolist(), sizes.tolist(), strict=True)
    jobs = [list(zip(v, a, strict=True)) for v, a in pairs]
    offers = offers_of(jobs, must=(3, 7))
    priced = least_bound(offers, 40)
    found = best_answer(offers, 40, priced)
    answer = solve_separable(separable(jobs, 40, must=(3, 7)), gap=1e-9)
    assert worth(jobs, found.chosen) == pytest.approx(answer.objective, rel=1e-9)
    monkeypatch.setattr(knapsack, "MOST_LABELS", 0)
    if found.labels:
        assert best_answer(offers, 40, priced) is None
    else:  # decided by prices alone
        assert math.isclose(worth(jobs, found.chosen), priced.bound)


def test_line_finds_where_two_tangents_meet():
    """max(4 - 2 p, 1 + p): 2 at p = 1, within [0, 3]; 2.5 at 1.5 within [1.5, 3]; 3 at 0.5."""
    line = Line()
    line.add(np.array([0.0]), 4.0, np.array([-2.0]))
    assert line.lowest(np.zeros(1), np.array([3.0]))[1] == 3.0  # falls as far as is known
    line.add(np.array([3.0]), 4.0, np.array([1.0]))
    for low, high, at, value in ((0.0, 3.0, 1.0, 2.0), (1.5, 3.0, 1.5, 2.5), (0.0, 0.5, 0.5, 3.0)):
        found, point = line.lowest(np.array([low]), np.array([high]))
        assert (found, point.tolist()) == (value, [at])
