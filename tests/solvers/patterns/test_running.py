"""Plans for rounds in which tasks run: what stays, what moves, and a budget of disruptions."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.instances.generate.tasks import TaskMix, azure_like, blocks, openb_like
from ronda.instances.tasks.check import check_tasks
from ronda.solvers.patterns.answer import solve_tasks
from tiny_tasks import best_tried, tiny_tasks, worth_of_plan

ROUNDING = 1e-9
MORE = [pytest.param(first, marks=pytest.mark.soak) for first in range(60, 3000, 60)]
MIXED = TaskMix(running=0.45, gangs=0.03, elastic=0.1)


def stays(round_, plan):
    """Return the pairs of a task and a node that the plan keeps, and all that there are."""
    held = set(zip(round_.held_task.tolist(), round_.held_node.tolist(), strict=True))
    return held & set(zip(plan.task.tolist(), plan.node.tolist(), strict=True)), held


@pytest.mark.parametrize("first", [0, *MORE])
def test_no_plan_refutes_the_bound(first):
    """The plan keeps every rule and is worth what it says; the best is between it and the bound."""
    for seed in range(first, first + 60):
        round_ = tiny_tasks(seed)
        if not len(round_.held_task):
            continue
        plan, best = solve_tasks(round_), best_tried(round_)
        slack = ROUNDING * max(1.0, best)
        assert worth_of_plan(round_, plan) == pytest.approx(plan.objective, abs=slack), seed
        assert plan.objective <= best + slack, seed
        assert plan.bound >= best - slack, seed


@pytest.mark.parametrize(
    ("make", "nodes", "tasks", "most"),
    [(openb_like, 150, 1500, 0.1), (azure_like, 150, 2400, 0.06), (blocks, 150, 450, 0.04)],
)
def test_plans_are_valid_and_close_to_their_bounds(make, nodes, tasks, most):
    """With gangs and jobs of several ways, of which some run."""
    round_ = make(nodes, tasks, seed=1, mix=MIXED if make is openb_like else TaskMix(running=0.6))
    plan = solve_tasks(round_)
    assert not check_tasks(round_, plan)
    assert 0 <= plan.gap <= most
    again = solve_tasks(round_)
    assert np.array_equal(plan.task, again.task)
    assert np.array_equal(plan.node, again.node)


def test_nothing_moves_where_a_move_costs_more_than_it_brings():
    """A job that loses all of its value by a move stays, or stops for another one."""
    round_ = openb_like(100, 800, seed=2, mix=TaskMix(running=0.6, move_cost=1.0))
    plan = solve_tasks(round_)
    kept, held = stays(round_, plan)
    placed = set(plan.task.tolist())
    lost = [task for task, _ in held - kept if task in placed]
    # Elsewhere it would be worth its value times a speed of 1.6 at most, less its value.
    speed = round_.speed[round_.shape[lost]][:, round_.pool].max(axis=1)
    assert (speed > 1.0).all()


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_a_budget_of_disruptions_is_kept_and_has_a_price(share):
    """The tighter, the less are plans and bounds worth; with none all that runs stays."""
    free = azure_like(100, 1600, seed=3, mix=TaskMix(running=0.45))
    most = int(share * len(free.held_task))
    round_ = replace(free, most_disrupted=most)
    plan, loose = solve_tasks(round_), solve_tasks(free)
    kept, held = stays(round_, plan)
    assert not check_tasks(round_, plan)
    assert len(held - kept) <= most
    assert not plan.record.message
    if share < 1:
        assert plan.bound < loose.bound
        assert plan.objective < loose.objective
    else:
        assert plan.objective == loose.objective


def test_at_an_early_deadline_what_runs_stays():
    """The plan is valid, and worth at least as much as what runs."""
    round_ = openb_like(100, 1000, seed=4, mix=MIXED)
    plan = solve_tasks(round_, deadline=1e-6)
    assert not check_tasks(round_, plan)
    assert stays(round_, plan)[0] == stays(round_, plan)[1]
    assert plan.bound >= solve_tasks(round_).objective
