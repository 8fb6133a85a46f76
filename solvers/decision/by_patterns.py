"""The choice of options and nodes together by patterns of nodes, where nodes and jobs are many.

Options are chosen by the patterns that fill nodes (`ronda.solvers.patterns`), and not by sums of
GPUs. What couples jobs besides nodes, such as quotas, has rows of its own, or keeps its prices by
sums if options use it in many ways. Jobs of least value leave where it is over-used after all. What
runs is free to move in the bound. In the plan it moves only if that gains more than restarts lose.
"""

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.rows import separable, within
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import rows_of, running_rows
from ronda.formulations.patterns.model import NO_COUPLING, Coupling
from ronda.formulations.patterns.of_jobs import JobModel, job_model, unstated
from ronda.formulations.placement.moves import move_room
from ronda.instances.base import Floats, Rows
from ronda.instances.plan import Plan, StopReason
from ronda.instances.violation import ROUNDING
from ronda.solvers.decision.plan import PATTERNS, Choice, Question
from ronda.solvers.decision.realise import Realised, realise_on
from ronda.solvers.patterns.answer import Packed, packed
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.fill import needed_blocks, without_excess

OF_NODES = ("gpus[", "whole_nodes[", "buddy[", "host[", "host_nodes[", "named_nodes[", "apart[")
"""The families of rows that patterns imply, which have no price beside those of slots."""

KINDS = 500
"""The most kinds of uses of what couples jobs besides nodes, for prices of their own."""

GREAT = 100.0
"""The price of missing a limit that asks for a least use, in values of the most valuable option."""

PRECISION = 0.2
"""The share of a node's value to which prices are found and plans are precise enough."""


SECONDS_PER_JOB = 2.5e-5
"""The processor seconds per job to put slots into allocations, which the deadline leaves."""


def choose_by_patterns(
    question: Question, choice: Choice, plan: Plan | None, search: Search
) -> Choice | None:
    """Return a choice on nodes that is better than a plan's, or the plan's with a new bound.

    The result is None if the plan is as precise as whole nodes are, or if the choice relies on what
    patterns do not have. If patterns cannot state the round, the record says why.

    Parameters
    ----------
    choice
        The choice behind the plan, or a better one on nodes.
    plan
        The plan in hand; None for any choice on nodes instead of none.
    """
    round, table, values = question.round, question.table, question.values
    gap = max(search.gap, PRECISION / len(round.cluster.topology.node_gpus))
    moved: tuple[str, ...] = ()
    if not choice.of_options_alone:
        return None
    if plan is not None and choice.realised is None:
        moved = plan.details.moved
        choice = replace(choice, chosen=rows_of(table, plan), objective=plan.objective or 0.0)
    elif choice.realised is not None:
        moved = choice.realised.moved
    if plan is not None and choice.closed(gap):
        return None
    if why := unstated(round, table):
        said = f"the bound is that of sums, as patterns of nodes cannot state that {why}"
        return replace(choice, record=replace(choice.record, message=said))
    case = make_case(round, table, values, Fidelity.NODES)
    problem = separable(case)
    prices = np.array([choice.prices.get(name, 0.0) for name in problem.names])
    others = np.flatnonzero([not name.startswith(OF_NODES) for name in problem.names])
    use, coupling = _coupling(problem, others)
    prices *= np.isin(np.arange(len(prices)), others) & (not use.size)
    net = problem.use.net(problem.value, prices)
    now = running_rows(table)
    stays = (choice.chosen >= 0) & (choice.chosen == now)
    stays &= np.array([state.job.id not in moved for state in table.jobs])
    began, late_s = search.deadline.elapsed(), search.deadline.paced(SECONDS_PER_JOB * len(stays))
    lost = loss_of_moves(round, table, values, choice.chosen[choice.chosen >= 0], set(moved))
    best, worth = choice, -np.inf if plan is None else choice.objective - lost
    for kept in (np.zeros_like(stays), stays) if stays.any() else (stays,):
        whole = job_model(case, net, kept, use, coupling)
        found = packed(whole.model, gap, search.deadline.sooner(late_s), question.seed)
        if not kept.any():  # the bound of all plans
            told = found.priced.bound + _of_rows(problem, prices, net[whole.kept])
            words = f"{len(whole.model.size)} slots on {len(whole.model.count)} classes of nodes"
            said = f"patterns of {words}, {found.priced.turns} turns"
            late = found.stop is StopReason.TIME_LIMIT
            stop = found.stop if late else choice.stop
            best = replace(best, bound=min(choice.bound, told), stop=stop)
        if use.size:
            prices_now = np.zeros(len(prices))
            prices_now[others] = found.priced.prices[len(whole.model.size) :]
        else:
            prices_now = prices
        chosen, placed = _placed(question, whole, found, problem, prices_now)
        room = move_room(table, chosen[chosen >= 0])
        if not within(case, chosen) or (room is not None and not room.allows(placed.moved)):
            continue
        lost = loss_of_moves(round, table, values, chosen[chosen >= 0], set(placed.moved))
        if placed.objective - lost > worth:
            worth = placed.objective - lost
            best = replace(best, chosen=chosen, objective=placed.objective, realised=placed)
    if best.realised is None and plan is None:
        return replace(choice, bound=best.bound)
    solve_s = choice.record.solve_s + search.deadline.elapsed() - began
    record = replace(choice.record, solver=PATTERNS, solve_s=solve_s, message=said)
    best = replace(best, bound=max(best.bound, best.objective), record=record)
    return best.judged(search.gap)


def _coupling(problem: Separable, rows: Rows) -> tuple[Floats, Coupling]:
    """Return what options use (n, C) of the resources `rows`, and these, if uses are of few kinds.

    A limit that asks for a least use may be missed, at a great price.
    """
    use = problem.use.dense()[rows].T
    if len(np.unique(use, axis=0)) > KINDS or not use.size:
        return use[:, :0], NO_COUPLING
    limit = problem.capacity[rows]
    least = np.flatnonzero((limit < 0) & (problem.block_use[rows] >= 0).all(axis=1))
    lack = -np.eye(len(rows))[:, least]
    smallest = np.where(use == 0, np.inf, np.abs(use)).min(axis=0)[least]
    cost = GREAT * np.abs(problem.value).max() / smallest
    value, blocks = np.append(problem.block_value, -cost), problem.block_use[rows]
    most = np.append(problem.block_count, -limit[least])
    return use, Coupling(limit, value, np.hstack([blocks, lack]), most)


def _of_rows(problem: Separable, prices: Floats, kept: Floats) -> float:
    """Return what a bound has beside patterns: rows at their prices, blocks, and jobs that stay."""
    blocks = problem.block_value, problem.block_use, problem.block_count
    terms = np.append(Coupling(problem.capacity, *blocks).worth(prices), kept.sum())
    return float(terms.sum() + ROUNDING * np.abs(terms).sum())


def _placed(
    question: Question, whole: JobModel, found: Packed, problem: Separable, prices: Floats
) -> tuple[Rows, Realised]:
    """Return the row of each job (J,) by patterns, and these on nodes.

    Jobs leave as far as limits beside nodes are over-used.
    """
    table, seats = question.table, found.seats
    options = whole.chosen(found.way)
    options = without_excess(problem, options, needed_blocks(problem, prices, options))
    chosen = np.where(options >= 0, whole.case.rows[options], -1)
    on = whole.placements(seats.job, seats.slot, seats.node)
    placements = {table.jobs[j].job.id: on[j] for j in np.flatnonzero(chosen >= 0).tolist()}
    asked = question.round, table, question.values, chosen
    return chosen, realise_on(*asked, placements, watt_value=0.0)
