"""The bound that knows of moves: by hand, and against what the search finds."""

import numpy as np
import pytest

from ronda.bench.study.evolve_quality import bound_with_moves, settled
from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.building import genes, genes_of
from ronda.formulations.genes.neighbourhood import move_losses, settle
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.by_prices import allocate_by_fill, unit_prices
from ronda.solvers.policies.optimising.evolve import Evolve


def test_without_moves_it_is_the_linear_relaxation():
    """Capacity 3; jobs worth 4 on 2 GPUs and 3 on 2: 4 + 3 / 2 = 5.5 with halves of the second."""
    pool = genes_of(
        np.array([0, 1, 2]), np.array([4.0, 3.0]), np.array([[2.0, 2.0]]), np.array([3.0])
    )
    assert bound_with_moves(pool) == pytest.approx(5.5, rel=1e-6)


@pytest.mark.parametrize("severity", ["balanced", "tight"])
def test_bounds_every_plan_and_is_seldom_looser(severity):
    """No plan found is worth more; without the price of sleeping nodes it is near the dual's."""
    for seed in range(3):
        round_ = settled(64, 64, severity, seed)
        table = build(round_)
        worth = values(round_, table)
        bounds = limits(round_, table)
        greedy = allocate_by_fill(round_, table, worth)
        dual, prices = greedy.bound, unit_prices(round_, greedy.prices)
        losses = move_losses(round_, table, worth)
        pool = settle(genes(table, worth, bounds, prices), round_, table, losses)
        bound = bound_with_moves(pool)
        plan = Evolve(population=32, generations=20, gap=0).plan(
            round_, deadline=Deadline(), seed=0
        )
        assert plan.objective <= bound
        assert bound <= dual * 1.01
