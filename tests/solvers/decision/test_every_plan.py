"""What engines say of small rounds, against all plans that the checker accepts."""

from functools import cache

import pytest

import ronda
from brute_positions import tiny
from every_plan import best_plan
from limited_rounds import limited_round
from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.non_preemptible import bearing
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.positions.variables import NODE_SHARE
from ronda.instances.plan import SolutionStatus
from ronda.instances.rules.validate import validate
from scaled_rounds import false_claims

# What they are for, mostly: a bank that is filled in part, and nodes that wake with an energy
# budget (16, 129, 265, 277, 367), bounds without slack (43, 236), a job of a later pool that must
# run below a rack's cap (78, 343), waking below a cap (70, 287, 362, 386), moves and exchanges
# (18, 29, 47, 61), jobs that must run above a cap, so that there is no plan (96), and nodes and
# racks that leave room for less than GPUs and watts do (26, 52, 98, 126, 176, 202).
SEEDS = (16, 18, 26, 29, 43, 47, 52, 61, 70, 78, 96, 98, 126, 129, 176, 202, 236, 265, 277, 287)
SEEDS += (343, 362, 367, 386)

EXACT = "milp(placement=exact, gap=0)"
ON_NODES = ("milp", "milp(gap=0)", "prices", EXACT)
GAPS = {"milp": 1e-4, "milp(gap=0)": 0.0, EXACT: 0.0, "prices": 1e-4, "genetic": 1e-4} | {
    "evolve": 1e-4
}


MORE = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 15)]


@pytest.mark.parametrize("seed", [*range(4), *SEEDS, *MORE])
def test_nothing_that_is_claimed_of_a_plan_is_refuted_by_another_one(seed):
    """No plan exceeds a bound, none is better than an optimal one, and none breaks a rule."""
    refute(limited_round(seed))


@pytest.mark.parametrize("seed", [3, 7, 20, 33, 53, 62, 63, 67, 82])
def test_nothing_is_refuted_where_jobs_run_in_several_pieces(seed):
    """On racks that slow jobs down: what is on several nodes may move to another rack (7).

    And where racks leave room for less than the cluster does (53, 62, 63).
    """
    refute(validate(tiny(seed)))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 111, 940, 1030, 1060])
def test_nothing_is_refuted_where_numbers_differ_by_ten_orders(seed):
    """By `prices`, `milp` and `cp-sat`: bounds, optima, and who proves them.

    In 111 a job is best left where it is, in two pieces: more GPUs are worth less, but no node has
    room for as many in one. In 940 all that can run is worth less than a billionth of what cannot:
    HiGHS does not see it. In 1030 parts prove by their prices what the whole does not; in 1060
    HiGHS fails on the way to prices.
    """
    assert false_claims(seed) == []


def refute(round_):
    """Hold what each policy claims against all plans that the checker accepts."""
    table = build(round_)
    worth = values(round_, table)
    price = NODE_SHARE * make_case(bearing(round_)[0], table, worth, Fidelity.NODES).scale
    moves = {"evolve": (1.0,), EXACT: (1.0, price)}

    @cache
    def best_with(move_share=0.0, node_price=0.0):
        return best_plan(round_, table, worth, move_share=move_share, node_price=node_price)

    for policy, gap in GAPS.items():
        best = best_with(*moves.get(policy, ()))
        plan = ronda.solve(round_, policy)
        if best is None:
            assert plan.status is SolutionStatus.FALLBACK, policy
            continue
        assert plan.status in (SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE), policy
        assert ronda.check(round_, plan) == []
        rounding = 1e-7 * abs(best[0])
        assert plan.bound >= best[0] - rounding, policy
        assert plan.objective <= best[0] + rounding, policy
        if plan.status is SolutionStatus.OPTIMAL:
            assert plan.gap <= gap + 1e-9, policy
            assert plan.objective >= best[0] * (1 - gap) - rounding, policy
        if policy in ON_NODES:  # which have time for all
            assert plan.status is SolutionStatus.OPTIMAL
