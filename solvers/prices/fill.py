"""The greedy fill at prices with exchanges of two jobs, a good answer without a search.

Jobs begin with their best options at the prices. Where a resource asks for a least use, as a
disruption budget asks for jobs that go on, the jobs that lose least by it take options that add to
it, and stay. The other jobs of least value per over-used resource give way until the rest fits.
Free capacity goes to steps to better options, in descending order of value per price. Then it goes
to pairs of steps, where one step makes room for the other.
"""

from contextlib import suppress

import numpy as np

from ronda.formulations.allocation.separable import Separable, surpluses
from ronda.instances.base import Floats, Ints, Rows
from ronda.instances.clock import OutOfTimeError, checkpoint
from ronda.instances.violation import ROUNDING
from ronda.solvers.prices.dual import Jobs

PAIRS = 250_000
"""The number of pairs of steps, times resources, that are compared together."""

FREE = 1e-6
"""The price of free resources as a share of their possible earnings, so that frugal options come
first."""


def fill(
    problem: Separable,
    jobs: Jobs,
    prices: Floats,
    blocks: Floats | None = None,
    exchanges: int = 16,
) -> tuple[Ints, Floats]:
    """Return a good choice (J,) for a normalised problem (-1: no option), and block counts (B,).

    The choice is feasible unless jobs that must run or required least uses forbid it. Ties go to
    the earlier job. At most `exchanges` pairs of steps are taken.

    Parameters
    ----------
    prices
        Prices with a good dual bound, shape (R,).
    blocks
        Counts of blocks, shape (B,). The default is the best of three: as many as the jobs ask for
        at the prices, as many as the fitting jobs need, or all.
    """
    best = jobs.losses(prices, np.inf, 0).best
    if blocks is not None:
        chosen = without_excess(problem, supplied(problem, prices, best, blocks), blocks)
        return spend(problem, prices, chosen, blocks, exchanges), blocks
    asked = needed_blocks(problem, prices, best)
    fewest = needed_blocks(problem, prices, without_excess(problem, best, asked))
    every = np.where(problem.block_integer, problem.block_count, asked)
    answers = [
        fill(problem, jobs, prices, counts, exchanges=0)
        for counts in np.unique([asked, fewest, every], axis=0)
    ]
    feasible = [answer for answer in answers if is_feasible(problem, *answer)]
    chosen, counts = max(feasible or answers[:1], key=lambda answer: problem.objective(*answer))
    return spend(problem, prices, chosen, counts, exchanges), counts


def is_feasible(
    problem: Separable, chosen: Ints, blocks: Floats, rounding: float = ROUNDING
) -> bool:
    """Return whether an answer fits all capacities and runs all jobs that must run."""
    excess = problem.excess(chosen, blocks)
    if (excess > rounding * np.maximum(np.abs(problem.capacity), 1.0)).any():
        return False
    return not (problem.must & (chosen < 0)).any()


def needed_blocks(problem: Separable, prices: Floats, chosen: Ints) -> Floats:
    """Return the fewest blocks that a choice needs, cheapest blocks first, shape (B,).

    Blocks of any amount are taken only as far as they have room. A block that gives what others
    take, as the excess of a tenant's department does, comes after them.
    """
    counts = np.zeros_like(problem.block_count)
    if not len(counts):
        return counts
    lack = problem.excess(chosen, counts)
    gives, takes = np.maximum(-problem.block_use, 0.0), np.maximum(problem.block_use, 0.0)
    cost = (prices + FREE * _earned(problem)) @ takes / np.maximum(gives.max(axis=0, initial=0), 1)
    free = ~problem.block_integer & (gives > 0)  # may still give when others have taken
    for b in np.lexsort((cost, _turns(gives, takes))).tolist():
        given = np.flatnonzero(gives[:, b])
        taken = np.flatnonzero((takes[:, b] > 0) & ~free.any(axis=1))
        count = float((lack[given] / gives[given, b]).max(initial=0.0))
        if problem.block_integer[b]:
            count = np.ceil(count - ROUNDING)
        else:
            count = min(count, float((-lack[taken] / takes[taken, b]).min(initial=np.inf)))
        counts[b] = min(max(count, 0.0), problem.block_count[b])
        lack += problem.block_use[:, b] * counts[b]
    return counts


def _turns(gives: Floats, takes: Floats) -> Ints:
    """Return the turn of each block: 0, or one more than those that take what it gives."""
    from scipy.sparse import csr_array

    turns = np.zeros(gives.shape[1], dtype=np.int64)
    after, before = (csr_array(gives).T @ csr_array(takes)).nonzero()
    for _ in range(len(turns) if len(after) else 0):
        later = turns.copy()
        np.maximum.at(later, after, turns[before] + 1)
        if (later == turns).all():
            break
        turns = later
    return turns


def supplied(problem: Separable, prices: Floats, chosen: Ints, blocks: Floats) -> Ints:
    """Move jobs to options that add to resources of a least use, until there is enough of each.

    Those come first that lose the least surplus at the prices for what they add.
    """
    result = chosen.copy()
    for r in np.flatnonzero(problem.capacity < 0).tolist():
        lack = float(problem.excess(result, blocks)[r])
        use = problem.use.of_resource(r)
        rows = np.flatnonzero(use < 0)
        if lack <= ROUNDING * abs(problem.capacity[r]) or not len(rows):
            continue
        job = np.searchsorted(problem.start, rows, side="right") - 1
        now, profit = result[job], surpluses(problem, prices)
        runs = now >= 0
        adds = np.where(runs, use[now], 0.0) - use[rows]
        loses = np.where(runs, profit[now], 0.0) - profit[rows]
        able = np.flatnonzero(adds > 0)
        order = able[np.argsort(loses[able] / adds[able], kind="stable")]
        order = order[np.sort(np.unique(job[order], return_index=True)[1])]  # once for each job
        enough = np.cumsum(adds[order]) >= lack
        count = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        result[job[order[:count]]] = rows[order[:count]]
    return result


def without_excess(problem: Separable, chosen: Ints, blocks: Floats) -> Ints:
    """Remove jobs of least value per over-used resource from a choice until it fits, if possible.

    A job's share is the sum of its shares of the over-used resources. Jobs with the least value per
    share leave first, and only as many as needed. Jobs that must run stay, and so do those that
    add to a resource of a least use. So the answer may still be infeasible.
    """
    result, least = chosen.copy(), problem.capacity < 0
    for _ in range(len(problem.capacity)):
        excess = problem.excess(result, blocks)
        over = excess > ROUNDING * np.abs(problem.capacity)
        movable = np.flatnonzero((result >= 0) & ~problem.must)
        if least.any():
            adds = (problem.use.dense(result[movable])[least] < 0).any(axis=0)
            movable = movable[~adds]
        if not over.any() or not len(movable):
            break
        rows = result[movable]
        share = (problem.use.dense(rows)[over] / excess[over][:, None]).sum(axis=0)
        helps = share > 0
        movable, rows, share = movable[helps], rows[helps], share[helps]
        order = np.argsort(problem.value[rows] / share, kind="stable")
        freed = np.cumsum(problem.use.dense(rows[order])[over], axis=1)
        enough = (freed >= excess[over][:, None]).all(axis=0)
        count = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        result[movable[order[:count]]] = -1
    return result


def _earned(problem: Separable) -> Floats:
    """Return the possible earnings of each whole resource, per unit, shape (R,)."""
    return np.asarray(
        float(problem.value.max(initial=0.0)) / np.maximum(np.abs(problem.capacity), 1.0)
    )


def spend(
    problem: Separable, prices: Floats, chosen: Ints, blocks: Floats, exchanges: int = 0
) -> Ints:
    """Spend the free capacities of a choice by single steps and pairs, as time allows."""
    if not len(problem.value):
        return chosen
    spending = _Spending(problem, prices, chosen, blocks)
    with suppress(OutOfTimeError):  # each step leaves a valid answer
        spending.upgrade()
        for _ in range(exchanges):
            if not spending.exchange():
                break
            spending.upgrade()
    return spending.now


class _Spending:
    """A growing choice: `now` (J,) is the row of each job; `left` (R,) is the unused capacity."""

    def __init__(self, problem: Separable, prices: Floats, chosen: Ints, blocks: Floats) -> None:
        self.problem, self.prices, self.now = problem, prices, chosen.copy()
        counts = np.diff(problem.start)
        self.owner = np.repeat(np.arange(problem.jobs), counts)
        self.left = -problem.excess(chosen, blocks)
        self.slack = ROUNDING * np.maximum(1.0, np.abs(problem.capacity))
        self.cost: Floats = problem.use.cost(prices + FREE * _earned(problem))

    def upgrade(self) -> None:
        """Move jobs to better rows that fit, in descending order of value per price."""
        together = max(1, PAIRS // max(1, len(self.left)))
        taken = True
        while taken:
            checkpoint()
            rows, taken = self._best_steps(), False
            for at in range(0, len(rows), together):
                taken |= self._take(rows[at : at + together])

    def exchange(self) -> bool:
        """Take the pair of steps of two jobs that gains most; return whether there was such a pair.

        Only steps that a better answer can contain are tried. Such a step loses at most the gap
        between the bound at these prices and the answer (reduced-cost fixing).
        """
        checkpoint()
        row, job = self._near_steps()
        if not len(row):
            return False
        gain, use = self._change(row, job)
        both = (use[:, :, None] + use[:, None, :] <= self._room[:, None, None]).all(axis=0)
        worth = np.where(both & (job[:, None] != job), gain[:, None] + gain, 0.0)
        at = int(worth.argmax())
        if worth.flat[at] <= ROUNDING * float(np.abs(gain).max()):
            return False
        for k in divmod(at, len(row)):
            self.now[job[k]] = row[k]
            self.left -= use[:, k]
        return True

    def _best_steps(self) -> Rows:
        """Return the best fitting step of each job, in descending order."""
        problem, has = self.problem, self.now >= 0
        at = np.where(has, self.now, 0)
        value_now = np.where(has, problem.value[at], 0.0)
        better = value_now + ROUNDING * np.abs(value_now)  # values may be negative
        rows = np.flatnonzero(problem.value > better[self.owner])
        rows = rows[problem.use.fits(rows, self.now[self.owner[rows]], self.left + self.slack)]
        job = self.owner[rows]
        gain = problem.value[rows] - value_now[job]
        extra = self.cost[rows] - np.where(has, self.cost[at], 0.0)[job]
        # Better rows that cost no more come before all others, in descending order of gain.
        free = extra <= 0
        merit = np.where(free, np.inf, gain / np.where(free, 1.0, extra))
        order = np.lexsort((rows, -gain, -merit))
        _, first = np.unique(job[order], return_index=True)
        return np.asarray(rows[order[np.sort(first)]])

    def _take(self, rows: Rows) -> bool:
        """Move jobs to the given rows in order, as far as they fit; return whether any job moved.

        As many rows as fit together are taken at once. The next row is left out, as are all rows
        that no longer fit by themselves.
        """
        moved, (_, use) = False, self._change(rows, self.owner[rows])
        while len(rows):
            checkpoint()
            fits = (use.cumsum(axis=1) <= self._room[:, None]).all(axis=0)
            count = len(rows) if fits.all() else int(fits.argmin())
            self.now[self.owner[rows[:count]]] = rows[:count]
            self.left -= use[:, :count].sum(axis=1)
            moved |= count > 0
            rows, use = rows[count + 1 :], use[:, count + 1 :]
            able = (use <= self._room[:, None]).all(axis=0)
            rows, use = rows[able], use[:, able]
        return moved

    @property
    def _room(self) -> Floats:
        """The room for a step, up to rounding, shape (R,)."""
        return np.maximum(self.left, 0.0) + self.slack

    def _near_steps(self) -> tuple[Rows, Rows]:
        """Return the rows (-1: wait) and jobs of the steps that lose least, within the gap."""
        problem, runs = self.problem, self.now >= 0
        profit = surpluses(problem, self.prices)
        best = np.where(problem.must, -np.inf, 0.0)
        np.maximum.at(best, self.owner, profit)
        lost = best - np.where(runs, profit[np.where(runs, self.now, 0)], 0.0)
        gap = float(lost[np.isfinite(lost)].sum() + self.prices @ np.maximum(self.left, 0.0))
        loss = best[self.owner] - profit
        loss[self.now[runs]] = np.inf
        near = np.flatnonzero(loss < gap)
        stops = np.flatnonzero(runs & ~problem.must & (best < gap))
        row = np.concatenate([near, np.full(len(stops), -1)])
        job = np.concatenate([self.owner[near], stops])
        most = int((PAIRS / len(self.left)) ** 0.5) if len(self.left) else 0
        if len(row) > most:
            least = np.argsort(np.concatenate([loss[near], best[stops]]), kind="stable")
            row, job = row[least[:most]], job[least[:most]]
        return row, job

    def _change(self, row: Rows, job: Rows) -> tuple[Floats, Floats]:
        gain, use = np.zeros(len(row)), np.zeros((len(self.left), len(row)))
        for rows, sign in ((row, 1.0), (self.now[job], -1.0)):
            some = np.flatnonzero(rows >= 0)
            gain[some] += sign * self.problem.value[rows[some]]
            use[:, some] += sign * self.problem.use.dense(rows[some])
        return gain, use
