"""A bound on every plan for a round of tasks, from prices alone: no solver, and exactly if wanted.

Any prices q >= 0 of the resources of the nodes of each kind give one. A node is worth no more than
what it has, at these prices. A slice pays for what it takes on the kind of its pool where that is
cheapest; a running job that stays pays on its own nodes, and another place costs the move, too::

    D(q) = sum_k N_k q_k.C_k + sum_j max(0, max over tasks t of j, pools: v_t - n_t min_k q_k.w_t)

If slots have prices p of their own, a slice pays p, and a node gains p - q_k.w_t with each that it
holds, where that is above 0.

A running job gains a by staying and b >= 0 otherwise. It counts max(a, b) or, where at most B of
them may be disrupted, a, and the B largest of max(0, b - a) are added.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ronda.instances.base import Ints
from ronda.instances.tasks.arrays import TaskRound

Numbers = np.ndarray[Any, np.dtype[Any]]
"""Floats, or exact fractions as objects."""


def exactly(numbers: Any) -> Numbers:
    """Return numbers as fractions: a float is a whole number of some power of two."""
    array = np.asarray(numbers)
    exact = np.empty(array.shape, dtype=object)
    exact.ravel()[:] = [Fraction(x) for x in array.ravel().tolist()]
    return exact


def proven_by_prices(
    round_: TaskRound,
    node_price: Any,
    slot_price: Any = None,
    *,
    exact: bool = False,
    patterns: bool = False,
) -> Any:
    """Return D of prices q (K, R) and p (S, P), all >= 0, as a Fraction if exact, else as a float.

    Without prices of slots these are the least that a slice pays on nodes of its pool. With
    `patterns`, where nothing runs, a node is worth no more than its best pattern. This is found by
    trying those that may be better, which takes long if many small slots fit a node.
    """
    of: Callable[[Any], Numbers] = exactly if exact else np.asarray
    price, use, capacity = of(node_price), of(round_.use), of(round_.capacity)
    value, speed, lost = of(round_.value), of(round_.speed), of(round_.move_cost)
    if np.any(price < 0) or (slot_price is not None and np.any(np.asarray(slot_price) < 0)):
        raise ValueError("a price is below 0")
    cost, pool = use @ price.T, round_.pool
    may = np.asarray((round_.use[:, None] <= round_.capacity).all(axis=2)) & (round_.count > 0)
    may &= round_.speed[:, pool] > 0
    slot = np.full(round_.speed.shape, math.inf, dtype=cost.dtype)
    for kind in range(len(pool)):
        least = np.minimum(slot[:, pool[kind]], cost[:, kind])
        slot[:, pool[kind]] = np.where(may[:, kind], least, slot[:, pool[kind]])
    open_ = np.isfinite(slot.astype(float))
    if slot_price is not None:
        slot = of(slot_price)
    total = list[Any]()
    for kind, count in enumerate(round_.count.tolist()):
        most = np.where(may[:, kind], _most(round_, kind), 0)
        gains = np.maximum(slot[:, pool[kind]] - cost[:, kind], 0)
        top = (capacity[kind] * price[kind]).sum() + (gains[most > 0] * most[most > 0]).sum()
        if patterns and count and not len(round_.held_task):
            own = np.flatnonzero(most > 0)
            worth = slot[own, pool[kind]]
            best = best_pattern(worth, round_.use[own], round_.capacity[kind], most[own])
            top = min(top, best)
        total.append(count * top)
    best = value * 0
    for p in range(len(round_.pools)):
        there = np.flatnonzero(open_[round_.shape, p])
        shape = round_.shape[there]
        net = value[there] * speed[shape, p] - round_.slices[shape] * slot[shape, p]
        best[there] = np.maximum(best[there], net)
    job = np.arange(round_.tasks) if round_.job is None else round_.job
    order = np.argsort(job, kind="stable")
    names, starts = np.unique(job[order], return_index=True)
    gain = np.maximum.reduceat(best[order], starts) if len(order) else best
    task, node = round_.held_task, round_.held_node
    runs, first = np.unique(task, return_index=True)
    here, number = round_.node_kind[node], np.searchsorted(runs, task)
    stay = value[runs] * speed[round_.shape[runs], pool[here[first]]]
    np.subtract.at(stay, number, cost[round_.shape[task], here])
    at = np.searchsorted(names, job[runs])
    more = np.maximum(np.maximum(gain[at] - lost[runs], 0) - stay, 0)
    gain[at] = stay
    disrupted = len(runs) if round_.most_disrupted is None else round_.most_disrupted
    total += [*gain.tolist(), *sorted(more.tolist(), reverse=True)[:disrupted]]
    return sum(total, Fraction(0)) if exact else math.fsum(total)


def _most(round_: TaskRound, kind: int) -> Ints:
    """Return the most slices (S,) on one node, as it has room and groups are apart."""
    use, capacity = round_.use, round_.capacity[kind]
    room = np.where(use > 0, capacity // np.maximum(use, 1), np.iinfo(np.int64).max).min(axis=1)
    alone = np.bincount(round_.shape[round_.group < 0], minlength=len(use))
    pairs = np.unique(np.stack([round_.shape, round_.group])[:, round_.group >= 0], axis=1)
    return np.asarray(np.minimum(room, alone + np.bincount(pairs[0], minlength=len(use))))


def best_pattern(price: Numbers, use: Ints, capacity: Ints, most: Ints) -> Any:
    """Return the worth of the best pattern of slots (n,) on one node, at most so many of each.

    Patterns are tried slot by slot. A branch ends where the free amount of some resource, at the
    best price for it of the slots to come, is worth no more than the best so far.
    """
    dense = np.argsort(-(price / (use / np.maximum(capacity, 1)).max(axis=1)).astype(float))
    slots = list(zip(price[dense].tolist(), use[dense].tolist(), most[dense].tolist(), strict=True))
    rates = [[p / a if a else math.inf for a in size] for p, size, _ in slots]
    ahead = [[max(column) for column in zip(*rates[i:], strict=True)] for i in range(len(slots))]
    top = 0 * price.sum()

    def look(i: int, free: list[int], worth: Any) -> None:
        nonlocal top
        top = max(top, worth)
        if i == len(slots) or any(
            rate < math.inf and worth + rate * left <= top
            for rate, left in zip(ahead[i], free, strict=True)
        ):
            return
        p, size, many = slots[i]
        many = min([many, *(left // a for left, a in zip(free, size, strict=True) if a)])
        for n in range(many, -1, -1):
            rest = [left - n * a for left, a in zip(free, size, strict=True)]
            look(i + 1, rest, worth + n * p)

    look(0, capacity.tolist(), top)
    return top
