"""The per-job step of the price engine: given prices, every job takes its best option.

Jobs are cut into blocks of a fixed size, whose arrays stay in the cache. The sums of blocks are
added exactly (`math.fsum`).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Ints

BLOCK = 4096
"""Jobs in a block."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the jobs do at some prices."""

    value: float  # sum over jobs of value less price of what they take
    use: Floats  # (R,) what they take of each resource


@dataclass(frozen=True, slots=True)
class Losses:
    """The C options that cost least against each job's best one at some prices.

    They are sorted by loss and then by job and row.
    """

    best: Ints  # (J,) row of each job's best option, -1 for none
    job: Ints  # (C,)
    row: Ints  # (C,) -1 for none
    loss: Floats  # (C,)
    next_loss: float  # every alternative that is not listed costs at least this much


class Jobs:
    """The jobs of a separable problem: they answer for themselves at any prices."""

    def __init__(self, problem: Separable) -> None:
        starts = range(0, max(1, problem.jobs), BLOCK)
        self._blocks = [_Block.cut(problem, j, min(j + BLOCK, problem.jobs)) for j in starts]

    def reply(self, prices: Floats) -> Reply:
        """Return what the jobs take at prices (R,)."""
        return _added([block.reply(prices) for block in self._blocks])

    def losses(self, prices: Floats, limit: float, most: int) -> Losses:
        """Return the `most` alternatives of least loss, none above `limit`."""
        return _joined([b.losses(prices, limit, most) for b in self._blocks], most)

    def option_losses(self, prices: Floats) -> Floats:
        """Return (K,) by how much any plan with an option falls short of the dual bound."""
        return np.concatenate([block.option_losses(prices) for block in self._blocks])


def _added(parts: list[Reply]) -> Reply:
    """Add the replies of blocks, exactly."""
    if len(parts) == 1:
        return parts[0]
    use = [math.fsum(column) for column in zip(*(p.use.tolist() for p in parts), strict=True)]
    return Reply(math.fsum(p.value for p in parts), np.array(use))


def _joined(parts: list[Losses], most: int) -> Losses:
    """Join the losses of blocks, given in the order of jobs, and keep the least."""
    if len(parts) == 1:
        return parts[0]
    job = np.concatenate([p.job for p in parts])
    row = np.concatenate([p.row for p in parts])
    loss = np.concatenate([p.loss for p in parts])
    order = np.lexsort((row, job, loss))
    next_loss = min(p.next_loss for p in parts)
    if len(order) > most:
        next_loss = min(next_loss, float(loss[order[most]]))
        order = order[:most]
    best = np.concatenate([p.best for p in parts])
    return Losses(best, job[order], row[order], loss[order], next_loss)


@dataclass(frozen=True, slots=True)
class _Block:
    """Consecutive jobs of a problem, from `first_job` and `first_row` on; offsets begin at 0.

    `counts` are the options of each job, `filled` the jobs that have any.
    """

    first_job: int
    first_row: int
    start: Ints
    value: Floats
    use: Floats
    must: NDArray[np.bool_]
    counts: Ints
    filled: Ints

    @classmethod
    def cut(cls, problem: Separable, begin: int, end: int) -> "_Block":
        """Return the jobs ``begin:end`` of a problem."""
        rows = slice(int(problem.start[begin]), int(problem.start[end]))
        counts = np.diff(problem.start[begin : end + 1])
        return cls(
            begin,
            rows.start,
            problem.start[begin : end + 1] - rows.start,
            problem.value[rows],
            np.ascontiguousarray(problem.use[:, rows]),
            problem.must[begin:end],
            counts,
            counts.nonzero()[0],
        )

    def _reduced(self, prices: Floats) -> Floats:
        """Return (K,) value less price of every option."""
        reduced = self.value.copy()
        for price, use in zip(prices.tolist(), self.use, strict=True):
            if price:
                reduced -= price * use
        return reduced

    def _best(self, reduced: Floats) -> tuple[Ints, Floats]:
        """Return the best option of each job (-1: none) and its surplus."""
        jobs = len(self.start) - 1
        best, surplus = np.full(jobs, -1), np.zeros(jobs)
        filled = self.filled
        if not len(filled):
            return best, surplus
        starts = self.start[filled]
        top = np.maximum.reduceat(reduced, starts)
        hits = (reduced == top.repeat(self.counts[filled])).nonzero()[0]
        rows = hits[hits.searchsorted(starts)]  # the first of equals
        take = (top > 0) | self.must[filled]
        best[filled[take]] = rows[take]
        surplus[filled[take]] = top[take]
        return best, surplus

    def reply(self, prices: Floats) -> Reply:
        """Return what the jobs of the block take."""
        best, surplus = self._best(self._reduced(prices))
        return Reply(float(surplus.sum()), self.use[:, best[best >= 0]].sum(axis=1))

    def option_losses(self, prices: Floats) -> Floats:
        """Return (K,) what each option loses against its job's best one."""
        reduced = self._reduced(prices)
        return np.asarray(self._best(reduced)[1].repeat(self.counts) - reduced)

    def losses(self, prices: Floats, limit: float, most: int) -> Losses:
        """Return the `most` alternatives of least loss in the block, none above `limit`."""
        reduced = self._reduced(prices)
        best, surplus = self._best(reduced)
        taken = best >= 0
        if not most:  # only the best options are asked for
            none_at_all = np.zeros(0, dtype=np.int64)
            rows = np.where(taken, best + self.first_row, -1)
            return Losses(rows, none_at_all, none_at_all, np.zeros(0), 0.0)
        option_loss = surplus.repeat(self.counts) - reduced
        option_loss[best[taken]] = np.inf
        none = np.flatnonzero(taken & ~self.must)
        loss = np.concatenate([option_loss, surplus[none]])
        limit = min(limit, np.finfo(float).max)
        if len(loss) > most:
            limit = min(limit, float(np.partition(loss, most)[most]))
        rows = np.flatnonzero(loss <= limit)
        options = len(option_loss)
        job = np.where(
            rows < options,
            np.searchsorted(self.start, rows, side="right") - 1,
            none[np.maximum(rows - options, 0)] if len(none) else 0,
        )
        row = np.where(rows < options, rows + self.first_row, -1)
        order = np.lexsort((row, job, loss[rows]))[:most]
        inside = rows[order]
        outside = np.ones(len(loss), dtype=bool)
        outside[inside] = False
        return Losses(
            np.where(taken, best + self.first_row, -1),
            job[order] + self.first_job,
            row[order],
            loss[inside],
            float(loss[outside].min(initial=np.inf)),
        )
