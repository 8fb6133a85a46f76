"""The engine looks at the clock wherever it works for long, and leaves time for an answer."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.formulations.allocation.separable import Separable
from ronda.instances.clock import Deadline, ending
from ronda.instances.plan import StopReason
from ronda.solvers.prices import core
from ronda.solvers.prices.core import CoreSearch, blind_s
from ronda.solvers.prices.dual import Jobs, Planes, Search, solve_dual
from ronda.solvers.prices.engine import first_answer, solve_separable
from ronda.solvers.prices.fill import _Spending, is_feasible, spend

JOBS, GOODS = 300, 20
SLOW_S = 1.0


class SlowJobs(Jobs):
    """Jobs that say that each of their replies took a second."""

    def reply(self, prices):
        """Reply, and say so."""
        found = super().reply(prices)
        self.reply_s = SLOW_S
        return found


def market(seed=0, goods=GOODS):
    """Return a problem that many rows couple: each job wants 1, 2 or 4 of one of some goods."""
    rng = np.random.default_rng(seed)
    sizes = np.array([1.0, 2.0, 4.0])
    value = rng.lognormal(0, 1, (JOBS, goods, 1)) * sizes ** rng.uniform(0.5, 0.9, (JOBS, 1, 1))
    use = np.zeros((goods, value.size))
    good = np.broadcast_to(np.arange(goods)[:, None], value.shape).ravel()
    use[good, np.arange(value.size)] = np.broadcast_to(sizes, value.shape).ravel()
    start = np.arange(JOBS + 1) * goods * len(sizes)
    names = tuple(f"good {g}" for g in range(goods))
    return Separable.without_blocks(start, value.ravel(), use, np.full(goods, 10.0), names)


@pytest.mark.parametrize(("limit_s", "asked"), [(9.0, 1), (1000.0, 20)])
def test_the_dual_ends_early_enough_for_an_answer(limit_s, asked):
    """An answer takes the time of 10 replies, 10 s: with 9 s nothing is asked but the first."""
    problem = market()
    found = solve_dual(problem, SlowJobs(problem), Search(deadline=Deadline(limit_s)))
    assert (found.evaluations == 1) if asked == 1 else (found.evaluations > asked)
    assert found.bound >= 0


def test_a_step_of_the_dual_looks_at_the_clock():
    """The lowest point of hundreds of planes is not looked for once the time is over."""
    rng = np.random.default_rng(0)
    deadline = Deadline(1e-9)
    planes = Planes(60, 1.0, deadline)
    for _ in range(300):
        planes.add(rng.uniform(0, 1, 60), float(rng.uniform(1, 2)), rng.normal(0, 1, 60))
    low, point = planes.lowest(np.zeros(60), np.ones(60))
    assert low == -np.inf
    assert point.tolist() == [0.5] * 60


def test_a_fill_that_is_cut_keeps_what_it_has():
    """Once the time is over nothing is spent, and what was chosen stands."""
    problem, blocks = market(), np.zeros(0)
    chosen = np.full(JOBS, -1)
    chosen[0] = 0
    with ending(0.0):
        assert spend(problem, np.ones(GOODS), chosen, blocks).tolist() == chosen.tolist()
    assert (spend(problem, np.ones(GOODS), chosen, blocks) >= 0).sum() > 1


@pytest.mark.parametrize("seed", range(8))
def test_steps_that_are_taken_together_are_those_taken_one_by_one(seed):
    """From a choice of every third job on, in a random order: each step that still fits."""
    problem, blocks, rng = market(seed, goods=8), np.zeros(0), np.random.default_rng(seed)
    chosen = np.where(np.arange(JOBS) % 3 == 0, problem.start[:-1], -1)
    spending = _Spending(problem, np.ones(8), chosen, blocks)
    jobs = rng.permutation(JOBS)
    rows = problem.start[jobs] + rng.integers(1, 24, JOBS)
    now, left = chosen.copy(), problem.capacity - problem.use.total(chosen[chosen >= 0])
    left = spending.left = np.maximum(left, 3.0)
    left = left.copy()
    for row, job in zip(rows, jobs, strict=True):
        change = problem.use.column(row)
        change -= problem.use.column(now[job]) if now[job] >= 0 else 0.0
        if (change <= left + 1e-9).all():
            left -= change
            now[job] = row
    assert spending._take(rows)
    same = spending.now == now
    assert same.mean() > 0.95  # where a step frees a good, one that was left out might have fitted
    assert (spending.left >= -1e-6).all()


@pytest.mark.parametrize("solve", [solve_separable, first_answer])
def test_there_is_an_answer_even_if_all_time_is_gone(solve):
    """A nanosecond: jobs take what they like best for nothing, and those in excess give way.

    What that leaves is not spent. (Of many goods columns find the prices, and begin with more.)
    """
    problem = market(goods=8)
    answer = solve(problem, Search(deadline=Deadline(1e-9)))
    assert is_feasible(problem, answer.chosen, answer.blocks)
    more = spend(problem, answer.dual.prices, answer.chosen, answer.blocks)
    assert 0 < answer.objective < problem.objective(more, answer.blocks)


def test_no_core_is_begun_that_may_end_late(monkeypatch):
    """HiGHS may not look at its clock for 150² s with 150 options of a core, twice: 12.5 hours."""
    problem = market()
    jobs = Jobs(problem)
    dual = solve_dual(problem, jobs, Search())
    monkeypatch.setattr(core, "CLIQUES", 1.0)
    assert blind_s(150) == 22_500.0
    for hours in (12.0, 13.0):
        search = Search(gap=1e-12, deadline=Deadline(3600.0 * hours))
        tried = CoreSearch(problem, jobs, dual, search)
        cut = tried.run() is StopReason.TIME_LIMIT
        assert (cut, tried.cores > 0) == ((True, False) if hours == 12.0 else (False, True))


def test_the_deadline_of_a_search_changes_nothing_that_it_does_not_cut():
    """With an hour the answer is that without a limit."""
    problem = market()
    search = Search(gap=1e-3)
    hour = replace(search, deadline=Deadline(3600.0))
    one, other = solve_separable(problem, search), solve_separable(problem, hour)
    assert one.chosen.tolist() == other.chosen.tolist()
    assert (one.bound, one.stop) == (other.bound, other.stop)


@pytest.mark.parametrize("solve", [solve_separable, first_answer])
def test_columns_have_an_answer_even_if_all_time_is_gone(solve):
    """A nanosecond: the greedy answer with which the master begins, in which most goods are taken.

    20 goods of 10 each, and more jobs than these are enough for.
    """
    problem = market()
    answer = solve(problem, Search(deadline=Deadline(1e-9)))
    assert is_feasible(problem, answer.chosen, answer.blocks)
    assert problem.use.total(answer.chosen[answer.chosen >= 0]).sum() > 0.9 * 10.0 * GOODS
    assert answer.objective <= answer.bound
