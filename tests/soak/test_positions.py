"""Options and nodes chosen together, and one after the other, against every plan of tiny rounds."""

from functools import partial

import pytest
from minimise import ask

import every_plan
import ronda
from brute_positions import best_plan, random_values, tiny
from limited_rounds import limited_round
from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.positions.variables import NODE_SHARE
from ronda.instances.plan import SolutionStatus
from ronda.instances.rules.validate import validate
from ronda.solvers.decision.by_milp import allocate
from ronda.solvers.decision.by_positions import allocate_on_nodes
from ronda.solvers.prices.dual import Search

pytestmark = pytest.mark.soak


@pytest.mark.seeds(40)
@pytest.mark.parametrize("powers", [False, True], ids=["any", "powers"])
def test_the_optimum_is_that_of_every_plan_tried(powers, seed):
    """By positions; by the rows of buddy levels where blocks are powers of two and moves free."""
    ask(partial(is_optimal, seed, powers), tiny(seed, powers=powers))


def is_optimal(seed, powers, round_):
    """Held against every plan."""
    table = build(round_)
    worth = random_values(table, seed)
    search, price = Search(gap=0.0), 0.0
    if powers:
        choice = allocate(round_, table, worth, search)
    else:
        price = NODE_SHARE * make_case(round_, table, worth, Fidelity.NODES).scale
        choice = allocate_on_nodes(round_, table, worth, search)
    best = best_plan(round_, table, worth, price)
    assert choice.objective == pytest.approx(best, rel=1e-7, abs=1e-7)
    assert choice.bound <= best + 1e-6 * max(1.0, abs(best))


@pytest.mark.seeds(40)
@pytest.mark.parametrize("made", [limited_round, tiny])
def test_by_default_plans_are_within_their_gap_of_the_best_on_nodes(made, seed):
    """With racks, caps, energy, nodes that sleep, batches and jobs that must run."""
    ask(is_near, validate(made(seed)))


def is_near(round_):
    """Within the gap, and a bound is above."""
    table = build(round_)
    best = every_plan.best_plan(round_, table, values(round_, table))
    for policy in ("prices", "milp"):
        plan = ronda.solve(round_, policy)
        if best is None:
            assert plan.status is SolutionStatus.FALLBACK, policy
            continue
        assert ronda.check(round_, plan) == []
        assert plan.bound >= best[0] * (1 - 1e-7), policy
        assert plan.gap <= 1.01e-4, policy
