"""One round as a question on paper: the rules, and the optimum that they are compared with."""

from itertools import product

import numpy as np
import pytest

from ronda.bench.study.one_round import (
    by_relative_rule,
    by_two_prices,
    energy_snapshot,
    exact_problem,
    full_speed_j,
)
from ronda.formulations.allocation.pyomo_model import answer, build_separable
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.solvers.exact.highs import solve
from ronda.solvers.prices import Search
from ronda.solvers.prices.engine import solve_separable


def case_of(jobs=12, gpus=24, seed=0):
    """Return the question of a generated round."""
    return energy_snapshot(generate.round(jobs, gpus, "loose", seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [1.0, 0.8])
def test_rules_keep_to_the_limits_and_are_no_better_than_the_optimum(seed, share):
    """All jobs are served within GPUs and joules; the engine and the MILP agree on the optimum."""
    case = case_of(seed=seed)
    budget_j = share * full_speed_j(case)
    problem, rows = exact_problem(case, budget_j)
    problem.validate()
    found = solve_separable(problem, Search(gap=1e-4))
    assert found.chosen is not None
    best = rows[found.chosen]
    model = build_separable(problem)
    solve(model, gap=1e-5)
    exact = case.mean_s(rows[answer(model)[0]])
    assert case.mean_s(best) == pytest.approx(exact, rel=2e-4)
    for chosen in (best, by_relative_rule(case, budget_j), by_two_prices(case, budget_j)):
        assert chosen is not None
        assert np.array_equal(case.table.job[chosen], np.arange(12))
        assert case.table.gpus[chosen].sum() <= 24
        assert case.total_j(chosen) <= budget_j * (1 + 1e-9)
        assert case.mean_s(chosen) >= exact * (1 - 2e-5)


def test_optimum_by_trying_all():
    """Three jobs on four GPUs: the best of all combinations of all options, pruned or not."""
    case = case_of(jobs=3, gpus=4, seed=5)
    budget_j = 0.9 * full_speed_j(case)
    options = [range(case.table.start[j], case.table.start[j + 1]) for j in range(3)]
    least = min(
        case.mean_s(rows)
        for rows in map(np.array, product(*options))
        if case.table.gpus[rows].sum() <= 4 and case.total_j(rows) <= budget_j
    )
    problem, rows = exact_problem(case, budget_j)
    found = solve_separable(problem, Search(gap=1e-9))
    assert found.chosen is not None
    assert case.mean_s(rows[found.chosen]) == pytest.approx(least, rel=1e-9)


def test_without_enough_energy_no_rule_answers():
    """Not even the smallest options fit."""
    case = case_of()
    too_little_j = 0.5 * case.total_j(case.ladder.start)
    assert by_relative_rule(case, too_little_j) is None
    assert by_two_prices(case, too_little_j) is None
    assert solve_separable(exact_problem(case, too_little_j)[0], Search(gap=1e-4)).chosen is None


def test_more_jobs_than_gpus_are_refused():
    """All must be served together."""
    with pytest.raises(InputError, match="room for all jobs"):
        case_of(jobs=9, gpus=8)
