"""The exact policy under an energy budget: optimal, monotone in the budget."""

from itertools import pairwise, product

import msgspec
import numpy as np
import pytest

from ronda.formulations.genome import within
from ronda.formulations.limits import limits
from ronda.formulations.objectives import values
from ronda.formulations.options import build
from ronda.instances import generate
from ronda.instances.check import check
from ronda.instances.errors import InputError
from ronda.solvers.policies.milp import Milp
from ronda.solvers.policies.milp_energy import MilpEnergy
from ronda.solvers.registry import policy
from ronda.solvers.solve import solve

EXACT = MilpEnergy(gap=0.0)


def metered(round_, energy_j):
    """Return a round with this much energy for its window."""
    return msgspec.structs.replace(round_, energy_j=energy_j)


def best_of_all(round_):
    """Return the value of the best choice, by trying all."""
    table = build(round_, mind_power=True)
    worth = values(round_, table, EXACT.objective)
    bounds = limits(round_, table)
    choices = [
        [*range(table.start[j], table.start[j + 1]), *([] if table.must_run[j] else [-1])]
        for j in range(len(table.jobs))
    ]
    return max(
        (
            float(worth[rows[rows >= 0]].sum())
            for rows in map(np.array, product(*choices))
            if within(table, rows, bounds)
        ),
        default=-np.inf,
    )


def reached(plan):
    """Return what a plan chose, placed or not."""
    return plan.objective + plan.details.get("placement_loss", 0.0)


def test_it_is_the_milp_with_another_objective():
    """Nothing is solved in a second way."""
    assert isinstance(policy("milp-energy"), Milp)
    assert policy("milp-energy") == MilpEnergy(objective="thrifty-rank", gap=1e-3, thrift=0.3)


def test_thrift_saves_energy():
    """With watts for everything, a thriftier plan draws less; without thrift `rank` decides."""
    round_ = generate.round(20, None, "loose", 1)
    drawn_w, objectives = [], []
    for thrift in (0.0, 0.3, 0.6):
        plan = solve(round_, MilpEnergy(thrift=thrift))
        assert check(round_, plan) == []
        drawn_w.append(sum(a.option.power_w for a in plan.allocations.values()))
        objectives.append(plan.objective)
    assert drawn_w[0] > drawn_w[1] > drawn_w[2]
    assert objectives[0] == pytest.approx(solve(round_, "milp(gap=1e-3)").objective, rel=1e-3)


def test_thrift_is_a_share():
    """Out of range: refused before any round is seen."""
    with pytest.raises(InputError, match="thrift"):
        policy("milp-energy(thrift=1.5)")


def test_optimal_on_tiny_rounds():
    """On rounds with a limit on energy or power it finds what trying all choices finds."""
    tried = 0
    for seed in range(200):
        round_ = generate.tiny_round(seed)
        sizes = np.diff(build(round_, mind_power=True).start) + 1
        if round_.watts is None or np.prod(sizes.astype(float)) > 3000:
            continue
        plan = solve(round_, EXACT)
        assert reached(plan) == pytest.approx(best_of_all(round_), rel=1e-9), seed
        assert check(round_, plan) == []
        tried += 1
        if tried == 25:
            break
    assert tried == 25


@pytest.mark.parametrize("seed", [0, 1])
def test_more_energy_never_hurts(seed):
    """From what the idle cluster needs to three times the budget, the optimum only rises."""
    round_ = generate.round(14, None, "tight", seed)
    idle_j = round_.cluster.topology.idle_w * round_.window_s
    assert round_.energy_j is not None
    free_j = round_.energy_j - idle_j
    found = []
    for share in (0.3, 1.0, 3.0):
        plan = solve(metered(round_, idle_j + share * free_j), MilpEnergy(gap=1e-6))
        assert check(metered(round_, idle_j + share * free_j), plan) == []
        found.append(reached(plan))
    assert all(after >= before * (1 - 2e-6) for before, after in pairwise(found))
    assert found[-1] > found[0]
