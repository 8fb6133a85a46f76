"""The model of a round in which tasks run: they stay at no loss, or go on elsewhere at a cost."""

from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.patterns.model import Form, NodeModel
from ronda.formulations.patterns.of_tasks import TaskModel, model_of
from ronda.instances.base import Floats, Rows
from ronda.instances.tasks.arrays import TaskRound


@dataclass(frozen=True, eq=False)
class Running:
    """What runs, as pairs of a job and a node of the model, sorted (H,).

    Jobs are those of the model. `task` is the task of each job that runs, -1 for none,
    `worth` its value where it is, and `size` what a slice of it takes, of shapes (J,) and (J, R).
    """

    job: Rows
    node: Rows
    task: Rows
    worth: Floats
    size: Floats


def moved_model(round: TaskRound) -> tuple[TaskModel, Running]:
    """Return the model of a round in which all that runs loses its move cost, and what runs."""
    whole, job = model_of(round), np.full(round.tasks, -1)  # the job of each task
    for form, own in zip(whole.model.forms, whole.tasks, strict=True):
        job[own] = form.jobs[:, None]
    task = np.full(round.tasks, -1)
    task[job[round.held_task]] = round.held_task
    paid = np.where(task >= 0, round.move_cost[task], 0.0)
    forms = tuple(
        replace(form, value=form.value - paid[form.jobs, None]) for form in whole.model.forms
    )
    shape, pool = round.shape[round.held_task], round.pool[round.node_kind[round.held_node]]
    worth = np.zeros(round.tasks)
    worth[job[round.held_task]] = round.value[round.held_task] * round.speed[shape, pool]
    held, at = job[round.held_task], np.argsort(whole.node)[round.held_node]
    order = np.lexsort((at, held))
    model = replace(whole.model, forms=forms)
    now = Running(held[order], at[order], task, worth, round.use[round.shape[task]].astype(float))
    return replace(whole, model=model), now


def staying_model(whole: TaskModel, now: Running) -> NodeModel:
    """Return the model in which jobs may also stay.

    A place to stay is a slot that only nodes of its own class supply; these slots come last, and a
    job's way to stay is its last one.
    """
    model, round = whole.model, whole.round
    owner = model.owner[now.node]
    start = np.searchsorted(now.job, np.arange(len(now.task) + 1))
    shape = np.where(now.task >= 0, round.shape[now.task], -1)
    number, forms, width = dict[tuple[int, int], int](), list[Form](), 1
    for form in model.forms:
        seats = np.diff(start)[form.jobs]
        for n in np.unique(seats).tolist():
            rows = np.flatnonzero(seats == n)
            places = np.sort(owner[start[form.jobs[rows], None] + np.arange(n)], axis=1)
            key = np.column_stack([shape[form.jobs[rows]], places])
            kinds, kind = np.unique(key, axis=0, return_inverse=True)
            for i, (held, *classes) in enumerate(kinds.tolist()):
                some = rows[kind.reshape(-1) == i]
                part = Form(form.slot, form.times, form.jobs[some], form.value[some])
                if n:
                    stay = {k: classes.count(k) for k in sorted(set(classes))}
                    first = len(model.size)
                    slots = [first + number.setdefault((held, k), len(number)) for k in stay]
                    width = max(width, len(stay))
                    part = _with(part, slots, [*stay.values()], now.worth[part.jobs])
                forms.append(part)
    supplied = np.zeros((len(number), len(model.count)), dtype=bool)
    supplied[np.arange(len(number)), [k for _, k in number]] = True
    use = round.use[[s for s, _ in number]].reshape(-1, model.size.shape[1])
    return replace(
        model,
        size=np.vstack([model.size, use]),
        supplied=np.vstack([model.supplied, supplied]),
        forms=tuple(_wide(form, width) for form in forms),
    )


def _with(form: Form, slots: list[int], times: list[int], worth: Floats) -> Form:
    """Return a form with one more way."""
    width = max(form.slot.shape[1], len(slots))
    form = _wide(form, width)
    more = width - len(slots)
    return replace(
        form,
        slot=np.vstack([form.slot, slots + [-1] * more]),
        times=np.vstack([form.times, times + [0] * more]),
        value=np.column_stack([form.value, worth]),
    )


def _wide(form: Form, width: int) -> Form:
    more = ((0, 0), (0, width - form.slot.shape[1]))
    return replace(
        form,
        slot=np.pad(form.slot, more, constant_values=-1),
        times=np.pad(form.times, more),
    )
