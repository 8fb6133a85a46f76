"""The bound that knows of moves: by hand, and against what the search finds."""

import numpy as np
import pytest

from by_fill import allocate_by_fill
from ronda.bench.study.evolve_quality import bound_with_moves, settled
from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.clock import Deadline
from ronda.formulations.genes import genes_of, move_losses, settle
from ronda.solvers.decision.plan import Question
from ronda.solvers.policies.optimising.evolve import Evolve


def test_without_moves_it_is_the_linear_relaxation():
    """Capacity 3; jobs worth 4 on 2 GPUs and 3 on 2: 4 + 3 / 2 = 5.5 with halves of the second."""
    problem = Separable.without_blocks(
        np.array([0, 1, 2]),
        np.array([4.0, 3.0]),
        np.array([[2.0, 2.0]]),
        np.array([3.0]),
        ("gpus",),
    )
    assert bound_with_moves(genes_of(problem, np.ones(1))) == pytest.approx(5.5, rel=1e-6)


@pytest.mark.parametrize("severity", ["balanced", "tight"])
def test_bounds_every_plan_and_is_seldom_looser(severity):
    """No plan found is worth more; without whole nodes awake it is near the dual's."""
    for seed in range(2):
        question = Question.of(settled(64, 64, severity, seed), "rank")
        given = question.round, question.table, question.values
        case, losses = make_case(*given), move_losses(*given)
        problem = separable(case)
        bound = bound_with_moves(settle(genes_of(problem, problem.capacity), case, losses))
        policy = Evolve(population=16, generations=5, gap=0)
        plan = policy.plan(question.round, deadline=Deadline(), seed=0)
        assert plan.objective <= bound
        assert bound <= allocate_by_fill(*given).bound * 1.01
