"""Choosing options and nodes together: the exact model of positions, to a certified gap.

First options are chosen as if only GPUs had to suffice, and placed: the first incumbent, and an
upper bound D. If moves and lost jobs leave a gap, HiGHS solves the exact model
(`ronda.formulations.positions.model`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.conflicts import shortages
from ronda.formulations.allocation.rows import separable
from ronda.formulations.objectives.outlook import loss_of_moves
from ronda.formulations.options.table import OptionTable, rows_of
from ronda.formulations.placement.nodes import Placement
from ronda.formulations.positions.choices import NODE_SHARE, Ways, ways
from ronda.instances.arrays import Floats, Rows
from ronda.instances.plan import Plan, StopReason
from ronda.instances.round import Round
from ronda.solvers.decision.by_milp import PROOF, judged
from ronda.solvers.decision.by_prices import filled, nobody
from ronda.solvers.decision.plan import Choice
from ronda.solvers.decision.realise import Realised, realise, realise_on
from ronda.solvers.prices.engine import first_answer
from ronda.solvers.prices.search import Search

MOVE_LOSS = "move_loss"
"""Key, in a plan's details, of the value that its moves lose."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Jobs on nodes, and what that is worth: less what its moves and its nodes in use cost."""

    chosen: Rows
    realised: Realised
    worth: float
    moves: float  # value lost by moves


class _Exact:
    """A round, its options and their worth, while it is decided."""

    def __init__(
        self, round: Round, table: OptionTable, values: Floats, found: Ways, search: Search
    ) -> None:
        self.round, self.table, self.values, self.search = round, table, values, search
        self.ways = found
        self.node_price = NODE_SHARE * found.case.scale

    def placed(self, chosen: Rows, on: Mapping[str, Placement] | None = None) -> _Found:
        """Return a choice on nodes; None: where the quick placement puts it."""
        round, table, values = self.round, self.table, self.values
        if on is None:
            placed = realise(round, table, values, chosen, watt_value=0.0)
        else:
            placed = realise_on(round, table, values, chosen, on)
        plan = Plan(allocations=placed.allocations)
        chosen = rows_of(table, plan)
        rows = chosen[chosen >= 0]
        moves = loss_of_moves(round, table, values, rows, placed.moved)
        nodes = {node for a in placed.allocations.values() for node, _ in a.placement}
        worth = placed.objective - moves - len(nodes) * self.node_price
        return _Found(chosen, placed, worth, moves)


def allocate_on_nodes(round: Round, table: OptionTable, values: Floats, search: Search) -> Choice:
    """Choose every job's option and its nodes; `values` (K,), not to run is worth 0.

    The choice's objective is what the options are worth less what moves lose and what nodes in use
    cost (`NODE_SHARE`), in its ``details`` the former (``move_loss``).
    """
    case = make_case(round, table, values, positions=True)
    conflicts = shortages(case)
    if conflicts:
        return nobody(table, StopReason.INFEASIBLE, search, conflicts)
    run = _Exact(round, table, values, ways(case), search)
    problem = separable(run.ways.case)
    answer = first_answer(problem, search)
    first = filled(run.ways.case, problem, answer, search)
    best = run.placed(first.chosen)
    choice = _better(first, best, first.bound)
    if choice.closed(max(search.gap, PROOF)):
        return judged(choice, search.gap)
    return judged(_solved(run, choice), search.gap)


def _better(choice: Choice, best: _Found, bound: float) -> Choice:
    """Return the choice of a better plan under a bound."""
    return replace(
        choice,
        chosen=best.chosen,
        objective=best.worth,
        bound=max(bound, best.worth),
        realised=best.realised,
        details=choice.details | {MOVE_LOSS: best.moves},
    )


def _solved(run: _Exact, choice: Choice) -> Choice:
    """Return the choice of the exact model, if it finds a better one in time."""
    # Pyomo takes a quarter of a second to import.
    from ronda.formulations.positions.model import build, chosen_ways
    from ronda.formulations.positions.read import placements
    from ronda.solvers.exact.model import solve

    search = run.search
    deadline, case = search.deadline, run.ways.case
    began = deadline.elapsed()
    model = build(run.ways)
    outcome = solve(
        model, deadline=deadline, gap=search.gap, seed=search.seed, reserve_s=search.reserve_s
    )
    done = replace(
        choice,
        stop=StopReason.COMPLETE if outcome.stop is StopReason.GAP else outcome.stop,
        build_s=choice.build_s + deadline.elapsed() - began - outcome.solve_s,
        solve_s=outcome.solve_s,
        variables=outcome.variables,
        constraints=outcome.constraints,
        nodes=outcome.nodes,
        solver="highs",
        message=outcome.message,
    )
    bound = choice.bound
    if outcome.bound is not None:
        bound = min(bound, outcome.bound * model.scale)
    if outcome.x is None:
        return replace(done, bound=max(bound, done.objective))
    picked = chosen_ways(model)
    chosen = np.full(len(run.table.jobs), -1, dtype=np.int64)
    chosen[case.job[picked]] = case.rows[picked]
    found = run.placed(chosen, placements(model))
    if found.worth <= choice.objective:
        return replace(done, bound=max(bound, done.objective))
    when = deadline.elapsed()
    return replace(_better(done, found, bound), incumbents=(*done.incumbents, (when, found.worth)))
