"""Tasks placed one after the other, each for good: best fit, and where relaxed prices gain most.

Both keep groups apart and leave what runs where it is. Tasks are of one slice, and each is a job of
its own.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from lab.nodes.models import relaxed_prices
from ronda.instances.base import Floats, Ints, Rows
from ronda.instances.errors import InputError
from ronda.instances.tasks.arrays import TaskRound

EVERY = 4096
"""Placements after which nodes that hold nothing more are no longer looked at."""

Placed = tuple[Rows, Rows]


def best_fit(round_: TaskRound) -> Placed:
    """Place the densest first, in three orders and on two nodes, of which the best plan counts.

    Orders are by value for the largest share of the cluster that a task takes, for its list price
    (prices from 0 on that fit the values best), and for its price in the relaxation by sums. A task
    goes to the fullest node, or to that on which it leaves least, as the sum of free shares of
    resources, less its speed there.
    """
    slower = -round_.speed[:, round_.pool]
    tried = [
        _placed(round_, order, lambda task: slower[round_.shape[task]], 1.0, after=after)
        for order in _orders(round_)
        for after in (False, True)
    ]
    return max(tried, key=lambda placed: worth_of(round_, *placed))


def price_greedy(round_: TaskRound) -> Placed:
    """Place by prices of each kind's resources, which the relaxation by sums of kinds has.

    Tasks come in the orders of `best_fit`, of which the best plan counts. Each goes to the kind on
    which it gains most over its price, there to the fullest node. It is a stand-in for an
    allocation by prices of machines; how well systems that do so place, it does not measure.
    """
    cost = round_.use @ relaxed_prices(round_).T
    fits = (round_.use[:, None] <= round_.capacity).all(axis=2)
    speed = np.where(fits, round_.speed[:, round_.pool], 0.0)
    most = float(round_.value.max())

    def loss(task: int) -> Floats:
        shape = round_.shape[task]
        lost: Floats = cost[shape] - round_.value[task] * speed[shape]
        return lost

    tried = [_placed(round_, order, loss, 1e-9 * most, after=False) for order in _orders(round_)]
    return max(tried, key=lambda placed: worth_of(round_, *placed))


def _orders(round_: TaskRound) -> list[Rows]:
    """Return the tasks by value for what they take, by three measures of it."""
    use = round_.use[round_.shape].astype(float)
    unit = np.maximum(use.max(axis=0), 1.0)
    listed = nnls(use / unit, round_.value)[0] / unit
    relaxed = round_.count @ relaxed_prices(round_) / round_.nodes
    share = (round_.use / np.maximum(round_.count @ round_.capacity, 1)).max(axis=1)
    taken = (share, round_.use @ listed, round_.use @ relaxed)
    dense = [
        round_.value / np.maximum(each, 1e-9 * each.max() + 1e-300)[round_.shape] for each in taken
    ]
    return [np.argsort(-each, kind="stable") for each in dense]


def worth_of(round_: TaskRound, task: Rows, node: Rows) -> float:
    """Return the value of tasks of one slice on nodes, where nothing that runs moves."""
    pool = round_.pool[round_.node_kind[node]]
    return float(round_.value[task] @ round_.speed[round_.shape[task], pool])


def _placed(
    round_: TaskRound,
    order: Rows,
    loss: Callable[[int], Floats],
    tightness: float,
    *,
    after: bool,
) -> Placed:
    """Return pairs of tasks and nodes.

    A task goes where its loss on the kind and `tightness` times the free share are least, before or
    `after` it is there.
    """
    if round_.job is not None or (round_.slices[round_.shape] > 1).any():
        raise InputError(round_.name, "gangs or jobs of several ways", "tasks of one slice")
    live, runs = _Live(round_), np.zeros(round_.tasks, dtype=bool)
    runs[round_.held_task] = True
    waiting = np.bincount(round_.shape[~runs], minlength=len(round_.use))
    tasks, nodes = round_.held_task.tolist(), round_.held_node.tolist()
    taken: dict[int, list[int]] = {}
    for task, node in zip(tasks, nodes, strict=True):
        if round_.group[task] >= 0:
            taken.setdefault(int(round_.group[task]), []).append(node)
    for task in order[~runs[order]].tolist():
        shape, group = int(round_.shape[task]), int(round_.group[task])
        if waiting[shape] == 0:
            continue
        waiting[shape] -= 1
        near = taken.get(group, [])
        at = live.least(shape, round_.use[shape], loss(task), tightness, near, after=after)
        if at is None:
            if group < 0:
                waiting[shape] = 0  # nothing ever ends: no other of this shape has room
            continue
        node = live.take(at, round_.use[shape])
        tasks.append(task)
        nodes.append(node)
        if group >= 0:
            taken.setdefault(group, []).append(node)
        if len(tasks) % EVERY == 0:
            live.forget(round_.use[waiting > 0])
    placed = np.array([tasks, nodes], dtype=np.int64)
    by_task = placed[:, np.lexsort(placed[::-1])]
    return by_task[0], by_task[1]


class _Live:
    """Nodes that may hold more: an empty one of each kind, then those that hold something."""

    def __init__(self, round_: TaskRound) -> None:
        kinds, nodes = len(round_.count), round_.nodes
        self.may, self.capacity = (round_.speed > 0)[:, round_.pool], round_.capacity
        self.share = (1 / np.maximum(round_.capacity, 1)).T
        self.node, self.kind = np.full((2, kinds + nodes), -1)
        self.free = np.full((len(self.share), kinds + nodes), -1)
        self.place, self.end = np.full(nodes, -1), kinds
        held, use = np.zeros((len(self.share), nodes), dtype=np.int64), round_.use.T
        for amounts, used in zip(held, use, strict=True):
            np.add.at(amounts, round_.held_node, used[round_.shape[round_.held_task]])
        in_use = np.bincount(round_.held_node, minlength=nodes) > 0
        self.empty = [
            iter(np.flatnonzero((round_.node_kind == kind) & ~in_use).tolist())
            for kind in range(kinds)
        ]
        for kind in range(kinds):
            self.kind[kind] = kind
            self._open(kind)
        for node in np.flatnonzero(in_use).tolist():
            kind = int(round_.node_kind[node])
            self._add(node, kind, self.capacity[kind] - held[:, node])

    def _open(self, kind: int) -> None:
        """Let the next empty node stand for its kind, if there is one."""
        self.node[kind] = next(self.empty[kind], -1)
        self.free[:, kind] = self.capacity[kind] if self.node[kind] >= 0 else -1

    def _add(self, node: int, kind: int, free: Ints) -> None:
        self.node[self.end], self.kind[self.end], self.free[:, self.end] = node, kind, free
        self.place[node] = self.end
        self.end += 1

    def least(
        self,
        shape: int,
        use: Ints,
        loss: Floats,
        tightness: float,
        taken: Sequence[int],
        *,
        after: bool,
    ) -> int | None:
        """Return where a task loses least, None where none of the nodes has room for it."""
        there = self.kind[: self.end]
        room = self.may[shape][there]
        for free, amount in zip(self.free, use.tolist(), strict=True):
            room &= free[: self.end] >= amount
        at = self.place[taken]
        room[at[at >= 0]] = False
        fits = np.flatnonzero(room)
        if not len(fits):
            return None
        kind = there[fits]
        left = self.free[:, fits] - after * use[:, None]
        left = np.einsum("rn,rn->n", left, self.share[:, kind])
        return int(fits[np.argmin(loss[kind] + tightness * left)])

    def take(self, at: int, use: Ints) -> int:
        """Take room there; return the node."""
        node = int(self.node[at])
        if self.place[node] < 0:
            self._add(node, at, self.free[:, at] - use)
            self._open(at)
        else:
            self.free[:, at] -= use
        return node

    def forget(self, uses: Ints) -> None:
        """Look no longer at nodes with room for none of these uses."""
        first, free = len(self.capacity), self.free[:, : self.end]
        keep = np.zeros(self.end, dtype=bool)
        keep[:first] = True
        for use in uses:
            keep |= (free >= use[:, None]).all(axis=0)
        gone, kept = self.node[: self.end][~keep], np.flatnonzero(keep)
        self.place[gone], self.end = -2, len(kept)
        for rows in (self.node, self.kind, *self.free):
            rows[: self.end] = rows[kept]
        self.place[self.node[first : self.end]] = np.arange(first, self.end)
