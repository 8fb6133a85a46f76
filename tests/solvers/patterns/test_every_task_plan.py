"""Plans and bounds by patterns against the best plans of tiny rounds, and by numbers on nodes."""

import pytest

from ronda.instances.tasks.check import check_tasks
from ronda.instances.tasks.validate import validate_tasks
from ronda.solvers.patterns.answer import solve_tasks
from tiny_tasks import best_tried, tiny_tasks, worth_of_plan

ROUNDING = 1e-9
MORE = [pytest.param(first, marks=pytest.mark.soak) for first in range(60, 3000, 60)]


@pytest.mark.parametrize("first", [0, *MORE])
def test_no_plan_refutes_the_bound(first):
    """The plan keeps every rule and is worth what it says; the best is between it and the bound."""
    for seed in range(first, first + 60):
        round_ = tiny_tasks(seed)
        plan, best = solve_tasks(round_), best_tried(round_)
        slack = ROUNDING * max(1.0, best)
        assert check_tasks(validate_tasks(round_), plan) == [], seed
        assert worth_of_plan(round_, plan) == pytest.approx(plan.objective, abs=slack), seed
        assert plan.objective <= best + slack, seed
        assert plan.objective <= plan.bound, seed
        assert plan.bound >= best - slack, seed
