"""Marginal greedy: give the next GPUs or clock level to the job that gains most by it.

Each job starts small and climbs: twice the GPUs, or the next clock level. What a step is worth
depends on the job alone, so each job climbs its own path in the order of its own preference, and
the greedy order of all steps is that of the least priority on the path so far. That makes a pass
a matter of sorting and summing; a step that no longer fits is struck out, the job tries its other
step, and the next pass goes on. Resources only shrink, so a step that was struck out never fits
later. The result is that of a priority queue of steps, to the last one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.limits import Limits
from ronda.formulations.options.table import OptionTable, running_rows
from ronda.instances.arrays import Floats, Mask, Rows

ROUNDING = 1e-9
"""Sums in another order differ by rounding."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps that jobs can climb.

    Attributes
    ----------
    start
        (J,) row at which each job starts; -1 for a job without options.
    frugal
        (J,) the row of least watts with as few GPUs, for a job that cannot afford to start.
    up
        (2, K) the row that a step leads to from each row, -1 for none: first to the next number
        of GPUs at the same clock, then to the next clock on the same GPUs; both in the same pool.
    """

    start: Rows
    frugal: Rows
    up: Rows


def ladder(table: OptionTable, left_s: Floats, energy_j: Floats) -> Ladder:
    """Return the steps of all jobs.

    GPUs are powers of two, but for jobs that have no such option. Of several rows with the same
    pool, GPUs and clock (other batches, or what the job runs on) only the soonest complete counts.
    A job starts on its fewest GPUs, in the pool that it is in or else where it needs least energy,
    at the clock of least energy: below it a lower clock costs time and energy.

    Parameters
    ----------
    table
        The options, best built without pruning: a step then leads to the very next level.
    left_s, energy_j
        (K,) seconds and joules until the job is complete.
    """
    two = (table.gpus & (table.gpus - 1)) == 0
    some = np.zeros(len(table.jobs), dtype=bool)
    some[table.job[two]] = True
    rows = np.flatnonzero(two | ~some[table.job])
    place = table.job[rows] * len(table.pools) + table.pool[rows]
    (gpus, sizes), (clock, levels) = _ranks(table.gpus[rows]), _ranks(table.clock[rows])
    cell = (place * sizes + gpus) * levels + clock
    order = np.argsort(cell, kind="stable")
    again = np.diff(cell[order], prepend=-1) == 0
    several = order[again | np.append(again[1:], False)]
    order[np.isin(order, several)] = several[np.lexsort((left_s[rows[several]], cell[several]))]
    kept = order[np.diff(cell[order], prepend=-1) > 0]
    up = np.full((2, len(table)), -1, dtype=np.int64)
    _link(up[1], rows[kept], (cell // levels)[kept])
    turned = (place * levels + clock) * sizes + gpus
    kept = kept[np.argsort(turned[kept], kind="stable")]
    _link(up[0], rows[kept], (turned // sizes)[kept])
    kept = np.sort(kept)
    return Ladder(*_starts(table, rows[kept], left_s, energy_j), up)


def _ranks(column: NDArray[np.generic]) -> tuple[Rows, int]:
    """Return the rank of each number among the different ones, and how many of these there are."""
    different = np.unique(column)
    return np.searchsorted(different, column), max(1, len(different))


def _link(up: Rows, rows: Rows, group: Rows) -> None:
    """Let each row lead to the next one of the same group."""
    joined = group[1:] == group[:-1]
    up[rows[:-1][joined]] = rows[1:][joined]


def _starts(table: OptionTable, rows: Rows, left_s: Floats, energy_j: Floats) -> tuple[Rows, Rows]:
    """Return (J,) the rows of least energy and of least watts on each job's fewest GPUs."""
    now = running_rows(table)
    fewest = np.full(len(table.jobs), np.iinfo(np.int64).max)
    np.minimum.at(fewest, table.job[rows], table.gpus[rows])
    rows = rows[table.gpus[rows] == fewest[table.job[rows]]]
    own = now[table.job[rows]]
    elsewhere = (own < 0) | (table.pool[rows] != table.pool[own])
    found = []
    for keys in ((energy_j[rows],), (left_s[rows], table.power_w[rows])):
        order = rows[np.lexsort((*keys, elsewhere, table.job[rows]))]
        job, first = np.unique(table.job[order], return_index=True)
        start = np.full(len(table.jobs), -1, dtype=np.int64)
        start[job] = order[first]
        found.append(start)
    return found[0], found[1]


def relative(up: Rows, left_s: Floats, energy_j: Floats) -> Floats:
    """Return (2, K) what each step is worth by PowerFlow's rule.

    ``(dJCT / JCT) / (dE / E)``: the share of the job's time that the step saves for each share by
    which it raises the job's energy; infinite for a step that costs no energy, and -infinite for
    one that saves no time. As the port of Algorithm 1 in chikoneuru/hasagi-parallelism has it;
    the paper itself was not to be had.
    """
    saved = (left_s - left_s[up]) / left_s
    more = (energy_j[up] - energy_j) / np.where(energy_j > 0, energy_j, 1.0)
    return _worth(up, saved, more)


def priced(up: Rows, values: Floats, cost: Floats) -> Floats:
    """Return (2, K) what each step is worth by the two-price rule: gain in value over cost.

    With the cost of a row ``watts / budget + GPUs / cluster`` that is
    ``dJCT / (dE / E_bud + dn / N)`` if values are seconds of JCT saved.
    """
    return _worth(up, values[up] - values, cost[up] - cost)


def _worth(up: Rows, gain: Floats, more: Floats) -> Floats:
    """Return gain over cost; infinite where it is free, -infinite where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(more > 0, gain / more, np.inf)
    return np.where((up >= 0) & (gain > 0), worth, -np.inf)


def used(limits: Limits, rows: Rows) -> Floats:
    """Return (R,) what rows use together, the watts of nodes kept awake included."""
    found = limits.demand[:, rows].sum(axis=1)
    for p, node_w in enumerate(limits.node_w):
        found[-1] += node_w[min(round(float(found[p])), len(node_w) - 1)]
    return np.asarray(found)


def admit(limits: Limits, now: Rows, queue: Rows) -> Rows:
    """Return the rows of a queue that fit beside what is there, each that does in its turn.

    Parameters
    ----------
    limits
        What there is.
    now
        Rows that are there.
    queue
        (Q,) rows of other jobs, the most urgent first.
    """
    taken = now
    while len(queue):
        free = limits.capacity - used(limits, taken)
        queue = queue[_alone(limits, taken, free, limits.demand[:, queue])]
        count = _prefix(limits, taken, limits.demand[:, queue])
        taken = np.concatenate([taken, queue[:count]])
        queue = queue[count + 1 :]
    return taken[len(now) :]


def climb(limits: Limits, start: Rows, up: Rows, worth: Floats) -> Rows:
    """Return (J,) the rows to which jobs climb from `start` (-1: not admitted, stays out).

    Parameters
    ----------
    limits
        What there is; rows that `start` holds are within it, or no step is taken.
    start
        (J,) rows to start from.
    up, worth
        (2, K) rows that steps lead to, and their priority; -infinite: never.
    """
    now, worth = start.copy(), np.where(up >= 0, worth, -np.inf)
    jobs = np.flatnonzero(now >= 0)
    while True:
        steps = _paths(limits, now, jobs, up, worth)
        if not len(steps.job):
            return now
        jobs = np.unique(steps.job)
        steps = steps.sorted()
        more = limits.demand[:, steps.to] - limits.demand[:, steps.of]
        count = _prefix(limits, now[now >= 0], more)
        now[steps.job[:count]] = steps.to[:count]  # of a job's steps the last one stays
        if count < len(steps.job):
            worth[steps.kind[count], steps.of[count]] = -np.inf


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps of jobs: which, from and to which row, of which kind, and the least worth so far."""

    job: Rows
    of: Rows
    to: Rows
    kind: Rows
    level: Rows
    least: Floats

    def sorted(self) -> "_Steps":
        """Return the steps in the order in which a priority queue takes them."""
        order = np.lexsort((self.level, self.job, -self.least))
        return _Steps(*(getattr(self, name)[order] for name in _Steps.__slots__))


def _paths(limits: Limits, now: Rows, jobs: Rows, up: Rows, worth: Floats) -> _Steps:
    """Return each job's path of best steps from where it is, without those that cannot fit."""
    here = now[now >= 0]
    free = limits.capacity - used(limits, here)
    at, least = now[jobs], np.full(len(jobs), np.inf)
    levels: list[tuple[NDArray[np.generic], ...]] = []
    while len(jobs):
        both = worth[:, at]
        for kind in (0, 1):
            live = np.flatnonzero(both[kind] > -np.inf)
            more = limits.demand[:, up[kind, at[live]]] - limits.demand[:, at[live]]
            both[kind, live[~_alone(limits, here, free, more)]] = -np.inf
        way = np.where(both[1] > both[0], 1, 0)
        best = both[way, np.arange(len(at))]
        go = best > -np.inf
        jobs, at, way, least = jobs[go], at[go], way[go], np.minimum(least[go], best[go])
        to = up[way, at]
        levels.append((jobs, at, to, way, np.full(len(jobs), len(levels)), least))
        at = to
    columns = zip(*levels, strict=True) if levels else [(np.zeros(0, dtype=np.int64),)] * 6
    return _Steps(*(np.concatenate(column) for column in columns))


def _alone(limits: Limits, there: Rows, free: Floats, more: Floats) -> Mask:
    """Tell for each of (R, S) additions whether it fits for itself beside what is there."""
    slack = free + ROUNDING * np.maximum(1.0, np.abs(limits.capacity))
    load = more
    if limits.node_w:
        load = more.copy()
        load[-1] += _node_w(limits, limits.demand[:, there].sum(axis=1)[:, None], more)
    return np.asarray((load <= slack[:, None]).all(axis=0))


def _prefix(limits: Limits, there: Rows, more: Floats) -> int:
    """Return how many of (R, S) additions fit one after the other beside what is there."""
    before = limits.demand[:, there].sum(axis=1)[:, None]
    total = np.cumsum(more, axis=1)
    load = before + total
    if limits.node_w:
        load[-1] += _node_w(limits, before, total) + _node_w(limits, before * 0.0, before)
    slack = limits.capacity + ROUNDING * np.maximum(1.0, np.abs(limits.capacity))
    over = (load > slack[:, None]).any(axis=0)
    return int(over.argmax()) if over.any() else len(over)


def _node_w(limits: Limits, before: Floats, more: Floats) -> Floats:
    """Return the watts of nodes that additions to the GPUs in use wake."""
    watts = np.zeros(more.shape[1])
    for p, node_w in enumerate(limits.node_w):
        most = len(node_w) - 1
        first = np.rint(before[p]).astype(np.int64)
        last = np.rint(before[p] + more[p]).astype(np.int64)
        watts = watts + node_w[np.minimum(last, most)] - node_w[np.minimum(first, most)]
    return watts
