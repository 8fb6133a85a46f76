"""The choice of options and nodes together by the exact model of positions, to a certified gap.

A *way* is an option as it can be placed: either in place, or on whole nodes and a block of GPUs.
First options are chosen with limits on total GPUs alone, and then placed. This gives the first
incumbent and an upper bound D. If moves and lost jobs leave a gap, HiGHS solves the exact model
(`ronda.formulations.positions.model`). A model that is too large is decomposed. Prices bound the
value of a plan with each way, and the model of the most important ways is solved. Its node
constraints become a row of the prices' problem (`ronda.solvers.decision.node_cuts`).

Options that were chosen without nodes are chosen again with nodes if placement lost too much of the
choice (`again_on_nodes`). In that case the value of a plan is the value of its options, and among
equal plans the one with the fewest moves is taken.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_fields
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import OptionTable, rows_of
from ronda.formulations.placement.nodes import Placement
from ronda.formulations.placement.parts import Places
from ronda.formulations.positions.variables import Ways, restrict_ways, ways
from ronda.formulations.site.nodes import concerns_nodes
from ronda.instances.base import Floats, Rows
from ronda.instances.job import used_nodes
from ronda.instances.plan import Plan, StopReason, trusted_bound
from ronda.instances.round import Round
from ronda.solvers.decision.by_milp import IMPORT_S, judged, solved, started, told_by
from ronda.solvers.decision.metered import Metered
from ronda.solvers.decision.plan import (
    Choice,
    Question,
    filled,
    nobody,
    price_of_a_watt,
)
from ronda.solvers.decision.realise import realise, realise_on
from ronda.solvers.prices.dual import Jobs, Search, bound_at
from ronda.solvers.prices.engine import Answer, first_answer

WHOLE, CORE, CUTS = 1000, 500, 4
"""The most ways for which the whole model is solved, the number of ways in a decomposed model at
first, and the most cuts from it."""

AGAIN = 200
"""The number of ways in a second choice with nodes, a fifth of a second on one core."""


NODES, PIECES = 20, 800
"""The number of nodes up to which a way of a model by node counts as one (else as more), and the
most ways times nodes in a second choice by such a model, half a second to a second on one core."""

SECONDS_PER_WAY = 1e-3
"""The seconds per way to build the model until HiGHS reads its clock, on one busy core."""


class _Exact:
    """A round in the course of its decision, with its options and their values."""

    def __init__(
        self,
        round: Round,
        table: OptionTable,
        values: Floats,
        found: Ways,
        search: Search,
        watt_value: float = 0.0,
    ) -> None:
        self.round, self.table, self.values, self.search = round, table, values, search
        self.ways, self.watt_value = found, watt_value
        self.by_node, self.nodes = concerns_nodes(round), len(round.cluster.topology.node_gpus)
        self.each = max(1, self.nodes // NODES) if self.by_node else 1  # ways that a way counts as

    def has_time(self, ways: int) -> bool:
        """Return whether a model with `ways` ways can be built before the deadline."""
        left_s = self.search.deadline.left() - self.search.reserve_s
        if "pyomo.environ" not in sys.modules:
            left_s -= IMPORT_S
        return left_s > SECONDS_PER_WAY * self.each * ways

    def core(self, choice: Choice, losses: Floats, dual: float, most: int) -> tuple[Rows, float]:
        """Return about `most` ways of least loss at most, and the least loss of the others.

        Ways that stay in place and ways in the choice are included. Ways of equal loss are all in
        or all out. `losses` are the amounts by which a plan with each way falls short of the bound
        `dual`. A plan better than the choice has no way whose loss exceeds the choice's own
        shortfall.
        """
        limit, most = dual - choice.objective, most // self.each
        if len(losses) > most:
            limit = min(limit, float(np.partition(losses, most)[most]))
        case = self.ways.case
        kept = (losses <= limit) | self.ways.stay | np.isin(case.rows, choice.chosen)
        kept |= case.table.must_run[case.job]
        return np.flatnonzero(kept), float(losses[~kept].min(initial=np.inf))

    def placed(
        self,
        choice: Choice,
        chosen: Rows,
        on: Mapping[str, Placement] | None = None,
        parts: Mapping[str, Places] = MappingProxyType({}),
    ) -> Choice:
        """Return a choice with other rows placed on nodes, by quick placement unless `on` is given.

        `parts` are those of GPUs of jobs that start on them.

        The cost of its moves and of its nodes in use is subtracted from its objective.
        """
        round, table, values = self.round, self.table, self.values
        if on is None:
            placed = realise(round, table, values, chosen, watt_value=0.0)
        else:
            fields = {"watt_value": self.watt_value}
            placed = realise_on(round, table, values, chosen, on, parts, **fields)
        chosen = rows_of(table, Plan(allocations=placed.allocations))
        if table.rack is not None:
            placed = placed._replace(objective=table.worth(values, chosen))
        worth, moves = placed.objective, 0.0
        if self.ways.ties is None:  # moves count
            rows, nodes = chosen[chosen >= 0], used_nodes(placed.allocations.values())
            moves = loss_of_moves(round, table, values, rows, placed.moved)
            worth = worth - moves - len(nodes) * self.ways.node_price
        details = replace(choice.details, move_loss=moves)
        return replace(choice, chosen=chosen, objective=worth, realised=placed, details=details)

    def kept(self, choice: Choice) -> bool:
        """Return whether a choice that was placed without regard to racks keeps rules on racks."""
        rows, own = choice.chosen[choice.chosen >= 0], self.table.own
        if self.table.rack is None or own is None or choice.realised is None:
            return True
        return len(rows) == len(choice.realised.allocations) and not own.broken(rows).any()

    def read(self, model: Any, choice: Choice) -> Choice:
        """Return a choice with the options and nodes of a solved model."""
        # Import late: Pyomo takes a quarter of a second.
        from ronda.formulations.positions.model import chosen_ways
        from ronda.formulations.positions.solution import parts_of, placements

        case, picked = model.ways.case, chosen_ways(model)
        chosen = np.full(len(self.table.jobs), -1, dtype=np.int64)
        chosen[case.job[picked]] = case.rows[picked]
        return self.placed(choice, chosen, placements(model), parts_of(model))


def allocate_on_nodes(
    round: Round, table: OptionTable, values: Floats, search: Search, starts: Sequence[Rows] = ()
) -> Choice:
    """Choose every job's option and nodes by the options' `values` (K,); waiting has value 0.

    `starts` are choices (J,) to start from if there is no greedy choice. The choice's objective is
    the value of its options minus the loss of moves and the cost of nodes in use
    (`Ways.node_price`). Its ``details`` hold the loss of moves (``move_loss``).
    """
    whole = make_case(round, table, values, Fidelity.NODES)
    if conflicts := shortages(whole):
        return nobody(table, StopReason.INFEASIBLE, search, conflicts)
    cases = Metered(whole, search)
    for case in cases:
        run = _Exact(case.round, case.table, values, ways(case), search)
        problem = separable(run.ways.case)
        answer = first_answer(problem, search)
        first = filled(run.ways.case, problem, answer, search)
        if not first.incumbents:
            first = started(case, values, first, starts)
        choice = run.placed(first, first.chosen)
        if run.kept(choice):
            choice = replace(choice, bound=max(first.bound, choice.objective))
        else:
            choice = replace(first, objective=-np.inf, incumbents=())
        if choice.closed(search.gap) and choice.incumbents:
            pass
        elif not run.has_time(min(CORE, len(run.ways.stay))):
            choice = replace(choice, stop=StopReason.TIME_LIMIT)
        elif len(run.ways.stay) * run.each <= WHOLE or (case.racks and not run.by_node):
            choice = _improved(run, choice, np.arange(len(run.ways.stay)), -np.inf)
        else:
            choice = _decomposed(run, choice, problem, answer)
        cases.choice = judged(choice, search.gap)
    return cases.choice


def again_on_nodes(question: Question, choice: Choice, plan: Plan, search: Search) -> Choice | None:
    """Return a choice that is better than a plan's, or the plan's choice with a new bound.

    The model has the ways that a better plan can contain at the choice's prices, or the first of
    these ways. The result is None without time, if too many ways must be in the model, or if the
    choice relies on waking nodes, yielding jobs or prices of power that the model does not have. It
    is also None if nothing improved.
    """
    if not choice.of_options_alone or plan.objective is None:
        return None
    round, table, values = question.round, question.table, question.values
    known = replace(choice, chosen=rows_of(table, plan), objective=plan.objective)
    ties, closer = search.gap / 2 * abs(plan.objective), with_fields(search, gap=search.gap / 2)
    watt_value = price_of_a_watt(round, choice.prices)
    cases = Metered(make_case(round, table, values, Fidelity.NODES), search)
    for case in cases:
        found = ways(case, ties)
        problem = separable(found.case)
        prices = np.array([choice.prices.get(name, 0.0) for name in problem.names])
        losses, dual = Jobs(problem).option_losses(prices), bound_at(problem, prices) + ties
        run = _Exact(round, table, values, found, closer, watt_value)
        kept, least = run.core(known, losses, dual, AGAIN)
        many = len(kept) * run.nodes > PIECES if run.by_node else len(kept) > 2 * AGAIN
        if many or not run.has_time(len(kept)):
            cases.choice = known
        else:
            cases.choice = _improved(run, known, kept, dual - least)
    again = cases.choice
    better = again.realised is not None
    return judged(again, search.gap) if better or again.bound < choice.bound else None


def chosen_on_nodes(question: Question, model: Any, best: Choice, search: Search) -> Choice:
    """Return the choice of a round's solved exact model, with the bound of another choice."""
    run = _Exact(question.round, question.table, question.values, model.ways, search)
    choice = run.read(model, best)
    return replace(choice, bound=max(best.bound, choice.objective))


def _decomposed(run: _Exact, choice: Choice, problem: Separable, answer: Answer) -> Choice:
    """Choose by prices, place the options that matter, add a cut, and repeat with more options.

    Prices bound the value of a plan with any way by D minus the way's loss.
    """
    from ronda.formulations.positions.model import build_positions
    from ronda.solvers.decision.node_cuts import Cut, node_cut, with_cuts

    search, cuts, most = run.search, list[Cut](), CORE
    losses = Jobs(problem).option_losses(answer.dual.prices)
    while True:
        for _ in range(CUTS):
            kept, _least = run.core(choice, losses, answer.dual.bound, most)
            model, left_s = build_positions(restrict_ways(run.ways, kept)), search.deadline.left()
            cuts.append(node_cut(model, run.ways, kept, left_s - search.reserve_s))
            tighter = with_cuts(problem, cuts)
            answer = first_answer(tighter, search)
            losses = Jobs(tighter).option_losses(answer.dual.prices)
            gained = choice.bound - answer.bound
            choice = replace(choice, bound=max(min(choice.bound, answer.bound), choice.objective))
            if gained <= search.gap / 10 * abs(choice.bound) or not run.has_time(len(kept)):
                break
        kept, least = run.core(choice, losses, answer.dual.bound, most)
        if run.by_node and len(kept) * run.each > 2 * max(most, WHOLE):
            said = f"the bound is that of rows: {len(kept)} ways are too many to model by node"
            return replace(choice, record=replace(choice.record, message=said))
        elsewhere = answer.dual.bound - least
        complete = elsewhere <= choice.objective  # no other way can do better
        choice = _improved(run, choice, kept, elsewhere)
        most *= 2
        out_of_time = not run.has_time(min(most, len(losses)))
        if choice.closed(search.gap) or out_of_time or complete:
            late = StopReason.TIME_LIMIT if out_of_time and not complete else choice.stop
            details = replace(choice.details, node_cuts=len(cuts))
            return replace(choice, stop=late, details=details)


def _improved(run: _Exact, choice: Choice, kept: Rows, elsewhere: float) -> Choice:
    """Solve the exact model of some ways; plans with other ways are worth `elsewhere` at most."""
    from ronda.formulations.positions.model import build_positions
    from ronda.solvers.exact.from_pyomo import linear_form, set_values

    search = run.search
    deadline, ways = search.deadline, restrict_ways(run.ways, kept)
    began = deadline.elapsed()
    model = build_positions(ways)
    form = linear_form(model)
    outcome, done = solved(form, None, len(kept), choice, search, began)
    bound = choice.bound
    if outcome.bound is not None:
        told = max(told_by(outcome.bound, ways.case) + (ways.ties or 0.0), elsewhere)
        bound = trusted_bound(told, bound, choice.objective if choice.incumbents else None)
    if outcome.x is None:
        return replace(done, bound=max(bound, done.objective))
    set_values(form, outcome.x)
    found = run.read(model, done)
    if choice.incumbents and found.objective <= choice.objective:
        return replace(done, bound=max(bound, done.objective))
    incumbents = (*done.incumbents, (deadline.elapsed(), found.objective))
    return replace(found, bound=max(bound, found.objective), incumbents=incumbents)
