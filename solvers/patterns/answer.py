"""The plan for a round of tasks by patterns: priced, rounded, dealt to tasks, and proven."""

import dataclasses
from contextlib import suppress
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.formulations.patterns.model import NodeModel
from ronda.formulations.patterns.of_tasks import TaskModel, model_of
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
from ronda.solvers.patterns.running import solve_running

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
    plan = _solved(valid, gap, until, seed)
    if broken := check_tasks(valid, plan):
        record = replace(plan.record, message=f"what runs goes on, as a plan breaks {broken[0]}")
        plan = _as_it_is(valid, plan.bound, StopReason.ERROR, record)
    return dataclasses.replace(plan, record=replace(plan.record, total_s=until.elapsed()))


def _as_it_is(round: TaskRound, bound: float, stop: StopReason, record: SolveRecord) -> TaskPlan:
    """Return the plan in which what runs goes on, and nothing starts."""
    order = np.lexsort((round.held_node, round.held_task))
    task, node = round.held_task[order], round.held_node[order]
    worth = _worth(round, task, node)
    none = np.zeros_like(round.capacity, dtype=float)
    return TaskPlan(
        task=task,
        node=node,
        objective=worth,
        bound=max(bound, worth),
        node_price=none,
        stop=stop,
        record=record,
    )


def _solved(round: TaskRound, gap: float, deadline: Deadline, seed: int) -> TaskPlan:
    if len(round.held_task):
        return solve_running(round, gap=gap, deadline=deadline, seed=seed)
    whole = model_of(round)
    built_s = deadline.elapsed()
    priced, way, seats, stop = packed(whole.model, gap, deadline, seed)
    task, node = _placed(whole, way, seats.job, seats.node)
    objective = _worth(round, task, node)
    return TaskPlan(
        task=task,
        node=node,
        objective=objective,
        bound=max(priced.bound, objective),
        node_price=priced.unit[whole.class_of],
        slot_price=np.append(priced.prices, 0.0)[whole.slot],
        stop=StopReason.GAP if closes(priced.bound, objective, gap) else stop,
        record=SolveRecord(
            seed=seed,
            build_s=built_s,
            solve_s=deadline.elapsed() - built_s,
            solver="patterns",
        ),
    )


def _worth(round: TaskRound, task: Rows, node: Rows) -> float:
    """Return the value of tasks on nodes, ascending pairs of one for each slice."""
    once = np.flatnonzero(np.diff(task, prepend=-1))  # one slice of each task
    own, pool = task[once], round.pool[round.node_kind[node[once]]]
    return float((round.value[own] * round.speed[round.shape[own], pool]).sum())


def _placed(whole: TaskModel, way: Rows, job: Rows, node: Rows) -> tuple[Rows, Rows]:
    """Return the pairs of a task and a node of the round for jobs on nodes of the model."""
    task = np.full(len(way), -1)
    for form, tasks in zip(whole.model.forms, whole.tasks, strict=True):
        runs = np.flatnonzero(way[form.jobs] >= 0)
        task[form.jobs[runs]] = tasks[runs, way[form.jobs[runs]]]
    pairs = np.column_stack([task[job], whole.node[node]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[:, 0], pairs[:, 1]
