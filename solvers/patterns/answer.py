"""The plan for a round of tasks by patterns: priced, rounded, dealt to tasks, and proven."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ronda.formulations.patterns.model import NodeModel
from ronda.formulations.patterns.of_tasks import TaskModel, model_of
from ronda.instances.base import Rows
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.plan import SolveRecord, StopReason, closes
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.solvers.patterns.dealing import Seats, matched, patched, seated
from ronda.solvers.patterns.pricing import SlotPrices, price
from ronda.solvers.patterns.rounding import dive, fill, laid

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
    matched(model, ranges.supply(), priced.prices, way)
    with ending(deadline.sooner(deadline.paced(DEAL_S * jobs)).end):
        with suppress(OutOfTimeError):
            fill(priced, ranges, way)
        seats = patched(model, seated(model, ranges, way, seed), way, priced.unit)
    return Packed(priced, way, seats, stop)


def solve_tasks(
    round: TaskRound,
    *,
    gap: float = 1.5e-3,
    deadline: Deadline | float | None = None,
    seed: int = 0,
) -> TaskPlan:
    """Return a plan for a round of tasks, with a bound on every plan.

    Prices are improved until the relaxation is within `gap` of their bound, a share of it. The plan
    itself may be further away. The same round and seed give the same plan unless the deadline ends
    the search for prices.
    """
    deadline = Deadline.of(deadline)
    whole = model_of(round)
    built_s = deadline.elapsed()
    priced, way, seats, stop = packed(whole.model, gap, deadline, seed)
    task, node = _placed(whole, way, seats.job, seats.node)
    once = np.flatnonzero(np.diff(task, prepend=-1))  # one slice of each task
    own, pool = task[once], round.pool[round.node_kind[node[once]]]
    objective = float((round.value[own] * round.speed[round.shape[own], pool]).sum())
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
            total_s=deadline.elapsed(),
            solver="patterns",
        ),
    )


def _placed(whole: TaskModel, way: Rows, job: Rows, node: Rows) -> tuple[Rows, Rows]:
    """Return the pairs of a task and a node of the round for jobs on nodes of the model."""
    task = np.full(len(way), -1)
    for form, tasks in zip(whole.model.forms, whole.tasks, strict=True):
        runs = np.flatnonzero(way[form.jobs] >= 0)
        task[form.jobs[runs]] = tasks[runs, way[form.jobs[runs]]]
    pairs = np.column_stack([task[job], whole.node[node]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[:, 0], pairs[:, 1]
