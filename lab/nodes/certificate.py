"""A bound on every plan for a round of tasks, from prices alone: no solver, and exactly if wanted.

Any prices q >= 0 of the resources of the nodes of each kind give one. A node is worth no more than
what it has, at these prices. A slice pays for what it takes on the kind of its pool where that is
cheapest; a running job that stays pays on its own nodes, and another place costs the move, too::

    D(q) = sum_k N_k q_k.C_k + sum_j max(0, max over tasks t of j, pools: v_t - n_t min_k q_k.w_t)

A running job gains a by staying and b >= 0 otherwise. It counts max(a, b) or, where at most B of
them may be disrupted, a, and the B largest of max(0, b - a) are added.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ronda.instances.tasks.arrays import TaskRound

Numbers = np.ndarray[Any, np.dtype[Any]]
"""Floats, or exact fractions as objects."""


def exactly(numbers: Any) -> Numbers:
    """Return numbers as fractions: a float is a whole number of some power of two."""
    array = np.asarray(numbers)
    exact = np.empty(array.shape, dtype=object)
    exact.ravel()[:] = [Fraction(x) for x in array.ravel().tolist()]
    return exact


def proven_by_prices(round_: TaskRound, node_price: Any, *, exact: bool = False) -> Any:
    """Return D(q) of prices (K, R) >= 0, as a Fraction if exact, else as a float."""
    of: Callable[[Any], Numbers] = exactly if exact else np.asarray
    price, use, capacity = of(node_price), of(round_.use), of(round_.capacity)
    value, speed, lost = of(round_.value), of(round_.speed), of(round_.move_cost)
    if np.any(price < 0):
        raise ValueError("a price is below 0")
    total = [*(of(round_.count)[:, None] * capacity * price).ravel().tolist()]
    cost = use @ price.T
    fits = np.asarray((round_.use[:, None] <= round_.capacity).all(axis=2))
    best = value * 0
    for pool in range(len(round_.pools)):
        least = np.full(len(use), math.inf, dtype=cost.dtype)
        for kind in np.flatnonzero((round_.pool == pool) & (round_.count > 0)).tolist():
            least = np.where(fits[:, kind], np.minimum(least, cost[:, kind]), least)
        may = np.isfinite(least.astype(float)) & (round_.speed[:, pool] > 0)
        there = np.flatnonzero(may[round_.shape])
        shape = round_.shape[there]
        net = value[there] * speed[shape, pool] - round_.slices[shape] * least[shape]
        best[there] = np.maximum(best[there], net)
    job = np.arange(round_.tasks) if round_.job is None else round_.job
    order = np.argsort(job, kind="stable")
    names, starts = np.unique(job[order], return_index=True)
    gain = np.maximum.reduceat(best[order], starts) if len(order) else best
    task, node = round_.held_task, round_.held_node
    runs, first = np.unique(task, return_index=True)
    here, number = round_.node_kind[node], np.searchsorted(runs, task)
    stay = value[runs] * speed[round_.shape[runs], round_.pool[here[first]]]
    np.subtract.at(stay, number, cost[round_.shape[task], here])
    at = np.searchsorted(names, job[runs])
    more = np.maximum(np.maximum(gain[at] - lost[runs], 0) - stay, 0)
    gain[at] = stay
    most = len(runs) if round_.most_disrupted is None else round_.most_disrupted
    total += [*gain.tolist(), *sorted(more.tolist(), reverse=True)[:most]]
    return sum(total, Fraction(0)) if exact else math.fsum(total)
