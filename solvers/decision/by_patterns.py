"""The choice of options and nodes together by patterns of nodes, where nodes and jobs are many.

Options that were chosen by sums of GPUs and then placed are chosen again by the patterns that fill
nodes (`ronda.solvers.patterns`). What couples jobs besides nodes, such as quotas, keeps its prices,
which are taken off the values; jobs of least value leave where it is over-used. What runs is free
to move in the bound. In the plan it moves only if that gains more than the restarts lose.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.rows import separable, within
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import rows_of
from ronda.formulations.patterns.of_jobs import JobModel, job_model, unstated
from ronda.formulations.placement.moves import move_room
from ronda.instances.base import Floats, Mask
from ronda.instances.plan import Plan, StopReason
from ronda.instances.violation import ROUNDING
from ronda.solvers.decision.plan import PATTERNS, Choice, Question
from ronda.solvers.decision.realise import realise_on
from ronda.solvers.patterns.answer import Packed, packed
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.fill import needed_blocks, without_excess

OF_NODES = ("gpus[", "whole_nodes[", "buddy[", "host[", "host_nodes[", "named_nodes[", "apart[")
"""The families of rows that patterns imply, which have no price beside those of slots."""

PRECISION = 0.2
"""The share of a node's value to which prices are found and plans are precise enough."""


def again_by_patterns(
    question: Question, choice: Choice, plan: Plan, search: Search
) -> Choice | None:
    """Return a choice on nodes that is better than a plan's, or the plan's with a new bound.

    The result is None if the plan is as precise as whole nodes are, or if the choice relies on what
    patterns do not have. If patterns cannot state the round, the record says why.

    Parameters
    ----------
    choice
        The choice behind the plan, or a better one on nodes.
    """
    round, table, values = question.round, question.table, question.values
    if not choice.of_options_alone or plan.objective is None:
        return None
    if choice.realised is None:
        choice = replace(choice, chosen=rows_of(table, plan), objective=plan.objective)
    gap = max(search.gap, PRECISION / len(round.cluster.topology.node_gpus))
    if choice.closed(gap):
        return None
    if why := unstated(round, table):
        said = f"the bound is that of sums, as patterns of nodes cannot state that {why}"
        return replace(choice, record=replace(choice.record, message=said))
    case = make_case(round, table, values, Fidelity.NODES)
    problem = separable(case)
    prices = np.array(
        [
            0.0 if name.startswith(OF_NODES) else choice.prices.get(name, 0.0)
            for name in problem.names
        ]
    )
    net = problem.use.net(problem.value, prices)
    moved = choice.realised.moved if choice.realised is not None else plan.details.moved
    rows = choice.chosen[choice.chosen >= 0]
    worth = choice.objective - loss_of_moves(round, table, values, rows, set(moved))
    best, began = _Best(choice, worth), search.deadline.elapsed()
    for stays in _staying(question, plan):
        whole = job_model(case, net, stays)
        late = search.deadline.sooner(search.reserve_s)
        found = packed(whole.model, gap, late, question.seed)
        if not stays.any():
            bound = found.priced.bound + _of_rows(problem, prices, net[whole.kept])
            words = f"{len(whole.model.size)} slots on {len(whole.model.count)} classes of nodes"
            record = replace(
                choice.record,
                solver=PATTERNS,
                solve_s=choice.record.solve_s + search.deadline.elapsed() - began,
                message=f"patterns of {words}, {found.priced.turns} turns",
            )
            choice = replace(choice, bound=min(choice.bound, bound), record=record)
            if found.stop is StopReason.TIME_LIMIT:
                choice = replace(choice, stop=found.stop)
            best = _Best(choice, worth)
        best = _better(question, best, whole, found, problem, prices)
    choice = best.choice
    return replace(choice, bound=max(choice.bound, choice.objective)).judged(search.gap)


class _Best(NamedTuple):
    """The best choice so far, and what it is worth without what its moves lose."""

    choice: Choice
    worth: float


def _staying(question: Question, plan: Plan) -> Iterator[Mask]:
    """Yield which jobs (J,) keep their nodes: none, and all that go on unmoved in a plan."""
    jobs = question.table.jobs
    yield np.zeros(len(jobs), dtype=bool)
    held = [(state.allocation, plan.allocations.get(state.job.id)) for state in jobs]
    stays = np.array([now is not None and now is then for now, then in held])
    if stays.any():
        yield stays


def _of_rows(problem: Separable, prices: Floats, kept: Floats) -> float:
    """Return what a bound has beside patterns: rows at their prices, blocks, and jobs that stay."""
    blocks = np.maximum(0.0, problem.block_value - prices @ problem.block_use)
    terms = [prices @ problem.capacity, blocks @ problem.block_count, kept.sum()]
    return float(sum(terms) + ROUNDING * sum(map(abs, terms)))


def _better(
    question: Question,
    best: "_Best",
    whole: JobModel,
    found: Packed,
    problem: Separable,
    prices: Floats,
) -> "_Best":
    """Return the best choice, or that of patterns if it keeps all limits and is better."""
    round, table, values, case = question.round, question.table, question.values, whole.case
    options = whole.chosen(found.way)
    options = without_excess(problem, options, needed_blocks(problem, prices, options))
    chosen = np.where(options >= 0, case.rows[options], -1)
    jobs, rows = np.flatnonzero(chosen >= 0).tolist(), chosen[chosen >= 0]
    seats = found.seats
    on = whole.placements(seats.job, seats.slot, seats.node)
    placements = {table.jobs[j].job.id: on[j] for j in jobs}
    placed = realise_on(round, table, values, chosen, placements, watt_value=0.0)
    room = move_room(table, rows)
    if not within(case, chosen) or (room is not None and not room.allows(placed.moved)):
        return best
    worth = placed.objective - loss_of_moves(round, table, values, rows, set(placed.moved))
    if worth <= best.worth:
        return best
    fields = {"chosen": chosen, "objective": placed.objective, "realised": placed}
    return _Best(replace(best.choice, **fields), worth)
