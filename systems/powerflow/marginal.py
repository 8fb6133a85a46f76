"""The marginal greedy: the next GPUs or clock level go to the job that gains most from them.

Each job starts small and climbs by steps to twice the GPUs or to the next clock level. A step that
does not fit is set aside, and the job tries its other step. Steps that were set aside are tried
again when a job's step frees energy because the job ends sooner.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options.table import OptionTable, running_rows
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint, watched
from ronda.solvers.greedy.counted import Counted, RowUses, Step, climb


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps by which jobs can climb; -1 where there is no step."""

    start: Rows  # row at which each job starts, shape (J,)
    frugal: Rows  # row of least watts on as few GPUs, if `start` is too dear, (J,)
    up: Rows  # row one step up in the same pool, by GPUs and by clock, shape (2, K)


def steps_of(table: OptionTable, left_s: Floats, energy_j: Floats) -> Steps:
    """Return the steps of all jobs.

    The numbers of GPUs are powers of two times one GPU or one node, and the job's fewest and most
    GPUs. Jobs without such a power may have all sizes. Of several rows with the same pool, GPUs and
    clock (other batches, or the running option) only the one that completes soonest counts. A job
    starts on its fewest GPUs, in its current pool or else in the pool where it uses least energy,
    at the clock of least energy; a lower clock would cost both time and energy.

    The table is best built without pruning, so that a step leads to the very next level. `left_s`
    and `energy_j` (K,) are the seconds and joules until the job is complete.
    """
    checkpoint()
    whole = np.array([pool.gpus_per_node for pool in table.pools])
    nodes, rest = np.divmod(table.gpus, whole[table.pool])
    size = np.where(rest == 0, nodes, table.gpus)
    two = (size & (size - 1)) == 0
    some = np.zeros(len(table.jobs), dtype=bool)
    some[table.job[two]] = True
    least, most = np.full(len(table.jobs), np.iinfo(np.int64).max), np.zeros(len(table.jobs))
    np.minimum.at(least, table.job, table.gpus)
    np.maximum.at(most, table.job, table.gpus)
    end = (table.gpus == least[table.job]) | (table.gpus == most[table.job])
    rows = np.flatnonzero(two | ~some[table.job] | end)
    place = table.job[rows] * len(table.pools) + table.pool[rows]
    (gpus, sizes), (clock, levels) = _ranks(table.gpus[rows]), _ranks(table.clock[rows])
    cell = (place * sizes + gpus) * levels + clock
    order = np.argsort(cell, kind="stable")
    again = np.diff(cell[order], prepend=-1) == 0
    several = order[again | np.append(again[1:], False)]
    order[np.isin(order, several)] = several[np.lexsort((left_s[rows[several]], cell[several]))]
    kept = order[np.diff(cell[order], prepend=-1) > 0]
    checkpoint()
    up = np.full((2, len(table)), -1, dtype=np.int64)
    _link(up[1], rows[kept], (cell // levels)[kept])
    turned = (place * levels + clock) * sizes + gpus
    kept = kept[np.argsort(turned[kept], kind="stable")]
    _link(up[0], rows[kept], (turned // sizes)[kept])
    checkpoint()
    kept = np.sort(kept)
    return Steps(*_starts(table, rows[kept], left_s, energy_j), up)


def _ranks(column: NDArray[np.generic]) -> tuple[Rows, int]:
    different = np.unique(column)
    return np.searchsorted(different, column), max(1, len(different))


def _link(up: Rows, rows: Rows, group: Rows) -> None:
    joined = group[1:] == group[:-1]
    up[rows[:-1][joined]] = rows[1:][joined]


def _starts(table: OptionTable, rows: Rows, left_s: Floats, energy_j: Floats) -> tuple[Rows, Rows]:
    """Return the rows of least energy and of least watts on each job's fewest GPUs, shape (J,)."""
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
    """Return the priority of each step by PowerFlow's rule, shape (2, K).

    The priority is ``(dJCT / JCT) / (dE / E)``: the share of the job's time that the step saves,
    divided by the share by which it raises the job's energy. It is infinite for a step that costs
    no energy and -infinite for one that saves no time. The rule comes from the port of Algorithm 1
    in chikoneuru/hasagi-parallelism; we could not obtain the paper itself.
    """
    saved = (left_s - left_s[up]) / left_s
    more = (energy_j[up] - energy_j) / np.where(energy_j > 0, energy_j, 1.0)
    return _worth(up, saved, more)


def priced(up: Rows, values: Floats, cost: Floats) -> Floats:
    """Return each step's priority by the two-price rule, its gain per cost, shape (2, K).

    If a row costs ``watts / budget + GPUs / cluster`` and values are seconds of JCT saved, the
    priority is ``dJCT / (dE / E_bud + dn / N)``.
    """
    return _worth(up, values[up] - values, cost[up] - cost)


def _worth(up: Rows, gain: Floats, more: Floats) -> Floats:
    """Return gain divided by cost: infinite for a free step, -infinite for a step without gain."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(more > 0, gain / more, np.inf)
    return np.where((up >= 0) & (gain > 0), worth, -np.inf)


def admitted(left: Counted, uses: RowUses, queue: Rows) -> Rows:
    """Take, in order, the rows of a queue for which there is room, and return them."""
    fit: Mask = np.array(
        [
            left.take(int(uses.pool[row]), int(uses.gpus[row]), uses.watts[row].tolist())
            for row in watched(queue.tolist())
        ],
        dtype=bool,
    )
    return np.asarray(queue[fit])


def climbed(left: Counted, uses: RowUses, start: Rows, up: Rows, worth: Floats) -> Rows:
    """Return the rows to which jobs climb from `start`, shape (J,); -1 stays for jobs not admitted.

    `left` is the capacity that the start leaves, and `uses` is the use of each row. `up` and
    `worth` (2, K) are the rows to which steps lead and the priorities of the steps (-infinite:
    never).
    """
    now, worth = start.copy(), np.where(up >= 0, worth, -np.inf)
    struck: list[tuple[int, tuple[int, int], float]] = []

    def best(j: int) -> Step | None:
        row = int(now[j])
        kind = int(worth[1, row] > worth[0, row])
        priority = float(worth[kind, row])
        return (-priority, kind) if priority > -np.inf else None

    def take(j: int, kind: int) -> list[int]:
        row = int(now[j])
        to = int(up[kind, row])
        more_w = (uses.watts[to] - uses.watts[row]).tolist()
        if not left.take(int(uses.pool[to]), int(uses.gpus[to] - uses.gpus[row]), more_w):
            struck.append((j, (kind, row), float(worth[kind, row])))
            worth[kind, row] = -np.inf
            return [j]
        now[j] = to
        if min(more_w) >= 0:
            return [j]
        # The job ends sooner, which frees energy.
        again = [(job, step, before) for job, step, before in struck if now[job] == step[1]]
        struck.clear()
        for _, step, before in again:
            worth[step] = before
        return [j, *(job for job, _, _ in again)]

    climb(np.flatnonzero(now >= 0).tolist(), best, take)
    return now
