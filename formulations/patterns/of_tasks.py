"""A round of tasks as a model of nodes in classes and jobs in forms, and back."""

from dataclasses import dataclass

import numpy as np

from ronda.formulations.patterns.model import Form, NodeModel, with_equal_ways
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.tasks.arrays import TaskRound


@dataclass(frozen=True, eq=False)
class TaskModel:
    """The model of a round of tasks, with what its numbers stand for.

    Attributes
    ----------
    round, model
        The round and its model.
    node, class_of
        The round's node of each node of the model, shape (N,), and the class of each kind, (K,).
    slot
        The model's slot of a slice of each shape in each pool, shape (S, P), -1 for none.
    tasks
        Of each form, the task of each job in each way, shape (n, W).
    """

    round: TaskRound
    model: NodeModel
    node: Rows
    class_of: Rows
    slot: Rows
    tasks: tuple[Rows, ...]


def model_of(round: TaskRound, value: Floats | None = None) -> TaskModel:
    """Return the model of a round's tasks on empty nodes, with other values (T,) if given.

    Kinds of equal nodes become one class. A task has a slot for each factor of its value, or for
    each pool if it has several slices.
    """
    value = round.value if value is None else value
    capacity, class_of = _classes(round)
    number, names = _shapes(round)
    slot = np.full((len(names), len(round.pools)), -1)
    fits = (round.use[names][:, None, :] <= round.capacity[None]).all(axis=2)
    speed = round.speed[names][:, round.pool] * fits  # of a shape on a kind
    size, supplied, ways = list[Floats](), list[Mask](), list[list[tuple[int, float]]]()
    for s, name in enumerate(names):
        alike = round.pool if round.slices[name] > 1 else speed[s]
        ways.append([])
        for part in np.unique(alike[speed[s] > 0]):
            kinds = np.flatnonzero((alike == part) & (speed[s] > 0))
            ways[-1].append((len(size), float(speed[s, kinds[0]])))
            slot[s, round.pool[kinds]] = len(size)
            size.append(round.use[name].astype(float))
            supplied.append(np.isin(np.arange(len(capacity)), class_of[kinds]))
    forms, tasks = list[Form](), list[Rows]()
    job = np.arange(round.tasks) if round.job is None else round.job
    order = np.lexsort((number[round.shape], job))
    for places in with_equal_ways(job[order], number[round.shape[order]]):
        rows = order[places]
        entries = [(i, *way) for i, s in enumerate(number[round.shape[rows[0]]]) for way in ways[s]]
        if not entries:
            continue
        own = rows[:, [i for i, _, _ in entries]]
        times = round.slices[round.shape[own[0]]]
        forms.append(
            Form(
                slot=np.array([[q] for _, q, _ in entries]),
                times=times[:, None],
                jobs=rows[:, 0],
                value=value[own] * np.array([factor for _, _, factor in entries]),
            )
        )
        tasks.append(own)
    order = np.argsort(class_of[round.node_kind], kind="stable")
    empty = np.zeros((0, len(round.resources)))
    model = NodeModel(
        capacity=capacity,
        count=np.bincount(class_of, round.count, len(capacity)).astype(np.int64),
        cost=np.zeros(len(capacity)),
        size=np.array(size) if size else empty,
        supplied=np.array(supplied, dtype=bool).reshape(len(size), len(capacity)),
        forms=tuple(forms),
        group=round.group,
    )
    return TaskModel(round, model, order, class_of, slot[number], tuple(tasks))


def _classes(round: TaskRound) -> tuple[Floats, Rows]:
    """Return the capacities of the classes of equal nodes, shape (C, R), and those of kinds."""
    alike = np.column_stack([round.capacity, round.pool])
    found, class_of = np.unique(alike, axis=0, return_inverse=True)
    return found[:, :-1].astype(float), class_of.reshape(-1)


def _shapes(round: TaskRound) -> tuple[Rows, Rows]:
    """Return the number of each shape among different ones, and one shape of each number."""
    alike = np.column_stack([round.use, round.slices, round.speed])
    _, first, number = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return number.reshape(-1), first


def by_task(task: Rows, node: Rows) -> tuple[Rows, Rows]:
    """Return pairs of a task and a node, sorted."""
    order = np.lexsort((node, task))
    return task[order], node[order]


def worth_of(round: TaskRound, task: Rows, node: Rows) -> float:
    """Return the value of sorted pairs of a task and a node, less the costs of moves."""
    job = np.arange(round.tasks) if round.job is None else round.job
    runs = np.zeros(int(job.max(initial=-1)) + 1, dtype=bool)
    runs[job[round.held_task]] = True
    held = round.held_task * round.nodes + round.held_node
    kept = np.bincount(task[np.isin(task * round.nodes + node, held)], minlength=round.tasks)
    once = np.flatnonzero(np.diff(task, prepend=-1))  # one slice of each task
    own, pool = task[once], round.pool[round.node_kind[node[once]]]
    moved = runs[job[own]] & (kept[own] < round.slices[round.shape[own]])
    gained = round.value[own] * round.speed[round.shape[own], pool]
    return float((gained - np.where(moved, round.move_cost[own], 0.0)).sum())
