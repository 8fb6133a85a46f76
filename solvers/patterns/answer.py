"""The plan for a round of tasks by patterns: priced, rounded, dealt to tasks, and proven."""

import dataclasses
from contextlib import suppress
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.formulations.patterns.held import moved_model
from ronda.formulations.patterns.model import NodeModel
from ronda.formulations.patterns.of_tasks import TaskModel, by_task, model_of, worth_of
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive, Rows
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.plan import SolveRecord, StopReason, closes
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.instances.tasks.check import check_tasks
from ronda.instances.tasks.validate import validate_tasks
from ronda.solvers.patterns.dealing import Seats, matched, patched, seated
from ronda.solvers.patterns.pricing import SlotPrices, price
from ronda.solvers.patterns.rounding import dive, fill, laid
from ronda.solvers.patterns.running import PlacedTasks, run_on

LARGE = 30_000
"""The number of nodes from which whole patterns alone fill nearly all nodes, without a dive."""

PLACE_S, DEAL_S = 4e-6, 1e-6
"""The seconds of a processor per task to round prices to a plan, and of its last part."""


class Packed(NamedTuple):
    """A plan for a model: its prices, the way of each job (J,), -1 for none, seats, and its end."""

    priced: SlotPrices
    way: Rows
    seats: Seats
    stop: StopReason


def packed(model: NodeModel, gap: float, deadline: Deadline, seed: int) -> Packed:
    """Return a plan for a model, with prices to a relative `gap` of the relaxation."""
    priced, stop, jobs = SlotPrices.at_zero(model), StopReason.STAGNATION, len(model.group)
    with ending(deadline.sooner(deadline.paced(PLACE_S * jobs)).end):
        try:
            price(priced, gap)
            if model.count.sum() < LARGE:
                dive(priced)
        except OutOfTimeError:
            stop = StopReason.TIME_LIMIT
    ranges = laid(priced)
    way = np.full(jobs, -1)
    ranges.take_back(matched(model, ranges.supply(), priced.prices, way))
    with ending(deadline.sooner(deadline.paced(DEAL_S * jobs)).end):
        with suppress(OutOfTimeError):
            fill(priced, ranges, way)
        seats = patched(priced, seated(model, ranges, way, seed), way)
    return Packed(priced, way, seats, stop)


@checked
def solve_tasks(
    round: Annotated[TaskRound, "a round of tasks (ronda.read_tasks reads one)"],
    *,
    gap: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1.5e-3,
    deadline: Deadline | Positive | None = None,
    seed: Index = 0,
) -> TaskPlan:
    """Validate a round of tasks and place it by patterns of nodes, with a bound on every plan.

    The plan is checked. If it breaks a rule, what runs goes on, and ``record.message`` gives the
    reason. The same round and seed give the same plan unless the deadline ends the search.

    Parameters
    ----------
    gap
        Prices are improved until the relaxation is within this share of their bound. The plan
        itself may be further away.
    deadline
        The time limit: a number of seconds, or a `Deadline` that has begun; None means no limit.

    Raises
    ------
    InputError
        If the round is not valid.
    """
    until, valid = Deadline.of(deadline), validate_tasks(round)
    whole, now = moved_model(valid) if len(valid.held_task) else (model_of(valid), None)
    built_s = until.elapsed()
    if now is not None:
        found = run_on(whole, now, gap, until)
    else:
        priced, way, seats, stop = packed(whole.model, gap, until, seed)
        task = whole.model.picked(way, whole.tasks)
        pairs = by_task(task[seats.job], whole.node[seats.node])
        found = PlacedTasks(*pairs, priced.bound, priced.prices, priced.unit, stop)
    record = SolveRecord(
        seed=seed, build_s=built_s, solve_s=until.elapsed() - built_s, solver="patterns"
    )
    stay = by_task(valid.held_task, valid.held_node)
    plans = [_plan(whole, found, pairs, gap, record) for pairs in (found[:2], stay)]
    plan = max(plans, key=lambda plan: plan.objective)
    if broken := check_tasks(valid, plan):
        record = replace(record, message=f"what runs goes on, as a plan breaks {broken[0]}")
        plan = dataclasses.replace(plans[1], stop=StopReason.ERROR, record=record)
    return dataclasses.replace(plan, record=replace(plan.record, total_s=until.elapsed()))


def _plan(
    whole: TaskModel, found: PlacedTasks, pairs: tuple[Rows, Rows], gap: float, record: SolveRecord
) -> TaskPlan:
    """Return the plan of some pairs, with the bound and prices that were found."""
    objective = worth_of(whole.round, *pairs)
    closed = closes(found.bound, objective, gap)
    return TaskPlan(
        task=pairs[0],
        node=pairs[1],
        objective=objective,
        bound=max(found.bound, objective),
        node_price=found.unit[whole.class_of],
        slot_price=np.append(found.prices[: len(whole.model.size)], 0.0)[whole.slot],
        stop=StopReason.GAP if closed else found.stop,
        record=record,
    )
