"""Plans by patterns: valid, below their bound, and close to it."""

import numpy as np
import pytest

from ronda.instances.generate.tasks import azure_like, blocks, openb_like
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
