"""Plans by patterns: valid, below their bound, and close to it."""

import numpy as np
import pytest

from ronda.instances.generate.tasks import TaskMix, azure_like, blocks, openb_like
from ronda.instances.plan import StopReason
from ronda.instances.tasks.check import check_tasks
from ronda.instances.violation import Violation
from ronda.solvers.patterns import answer
from ronda.solvers.patterns.answer import solve_tasks


@pytest.mark.parametrize(
    ("make", "nodes", "tasks", "most"),
    [(openb_like, 300, 3000, 0.02), (azure_like, 300, 4800, 0.01), (blocks, 300, 900, 0.002)],
)
def test_plans_are_close_to_their_bounds(make, nodes, tasks, most):
    """A plan keeps every node's capacity and falls short of its bound by little."""
    round = make(nodes, tasks, seed=0)
    plan = solve_tasks(round)
    assert 0 <= plan.gap <= most
    used = np.zeros((round.nodes, len(round.resources)), dtype=np.int64)
    np.add.at(used, plan.node, round.use[round.shape[plan.task]])
    assert (used <= round.capacity[round.node_kind]).all()


def test_what_runs_goes_on_if_a_plan_breaks_a_rule(monkeypatch):
    """A plan that the checker refuses is not believed, and the record says why."""
    round = openb_like(40, 400, seed=1, mix=TaskMix(running=0.3))
    monkeypatch.setattr(answer, "check_tasks", lambda *_: [Violation("group", "node 3", "no")])
    plan = solve_tasks(round)
    assert plan.stop is StopReason.ERROR
    assert "node 3" in plan.record.message
    assert sorted(zip(plan.task, plan.node, strict=True)) == sorted(
        zip(round.held_task, round.held_node, strict=True)
    )
    assert check_tasks(round, plan) == []
