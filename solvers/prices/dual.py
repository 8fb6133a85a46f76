"""The Lagrangian dual of a separable round: prices at which demand meets capacity.

With prices p >= 0 for the resources, each job decides alone. The dual function::

    D(p) = sum_r p_r c_r + sum_j max_k (v_jk - p.a_jk) + sum_b n_b max(0, v_b - p.a_b)

bounds every plan from above. D is convex and piecewise linear, and each evaluation gives a cutting
plane. New prices minimise the model of all planes within a box around the best prices so far. This
box is a trust region, as planes alone make prices jump from corner to corner. It grows when the
model was right and shrinks when it was wrong. The model without the box bounds the least D from
below, so that the method knows when to stop.

With one variable two planes are enough: those at the ends of the bracket around the minimum. With
more variables a small LP in HiGHS finds the lowest point.

Jobs reply in blocks of a fixed size, whose arrays stay in the cache. The sums of blocks are added
exactly (`math.fsum`). A `Search` holds the start, the precision and the end of all steps.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import highspy
import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable, largest
from ronda.instances.base import Floats, Ints, Mask, Rows
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.solvers.exact.highs import run, silent
from ronda.solvers.exact.threads import SolverError


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The start, the precision and the end of a search.

    `start` are prices of an earlier, similar problem, keyed by resource. `within` is the relative
    shortfall of its answer from the dual bound; answers within this shortfall are searched first.
    Both may lead to another answer within the gap. Finer prices (`tolerance`) leave fewer jobs
    undecided, and an evaluation costs much less than a wider core.
    """

    gap: float = 1e-4  # relative, between objective and bound, to stop at
    deadline: Deadline = field(default_factory=Deadline)
    seed: int = 0  # of HiGHS
    start: Mapping[str, float] = field(default_factory=dict)
    within: float = 0.0
    tolerance: float = 1e-8  # relative, of the prices
    reserve_s: float = 0.0  # seconds of the deadline to leave on return
    solver: str = "highs"  # for models of a whole round; HiGHS solves the cores of prices
    options: Mapping[str, object] = field(default_factory=dict)  # options of that solver
    parts: int = 1  # random parts of the jobs with a model each (`milp` alone)

    def __post_init__(self) -> None:
        """Refuse an impossible gap."""
        if not 0 <= self.gap < 1:
            raise InputError("gap", f"{self.gap:g}", "a share of at least 0 and below 1")


BLOCK, OPTIONS = 4096, 2**18
"""The most jobs in a block, and its approximate number of options."""


EPSILON = float(np.finfo(float).eps)
"""Twice the relative rounding error of a sum or product. The error of a sum of n products is less
than n + 2 times this share of the sum of their sizes."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The summed replies of jobs to some prices."""

    value: float  # sum over jobs of the value minus the price of their options
    use: Floats  # (R,) use of each resource


@dataclass(frozen=True, slots=True)
class Losses:
    """The C options of least loss relative to each job's best option at some prices.

    They are sorted by loss, then by job and row.
    """

    best: Ints  # (J,) row of each job's best option, -1 for none
    job: Ints  # (C,)
    row: Ints  # (C,) -1 for none
    loss: Floats  # (C,)
    next_loss: float  # every alternative that is not listed loses at least this much


class Jobs:
    """The jobs of a separable problem, which reply to prices.

    `reply_s` are the processor seconds of their quickest reply, as the first reply finds nothing in
    the cache.
    """

    def __init__(self, problem: Separable) -> None:
        each = len(problem.value) / max(1, problem.jobs)
        size = min(BLOCK, max(1, int(OPTIONS / max(1.0, each))))
        starts = range(0, max(1, problem.jobs), size)
        self._blocks = [_Block.cut(problem, j, min(j + size, problem.jobs)) for j in starts]
        self.reply_s = 0.0

    def reply(self, prices: Floats) -> Reply:
        """Return the summed replies of the jobs to prices (R,)."""
        began = time.thread_time()  # another process may delay a single reply for long
        found = _added([block.reply(prices) for block in self._blocks])
        self.reply_s = min(self.reply_s or math.inf, time.thread_time() - began)
        return found

    def best_of_each(
        self, prices: Floats, worth: Floats, without: Mask, most: int, among: Mask | None = None
    ) -> Rows:
        """Return the `most` options of each job with most surplus, above `worth` (J,).

        Options in `without` (K,) and kinds of use outside `among` (P,) are left out.
        """
        found = [b.best_of_each(prices, worth, without, most, among) for b in self._blocks]
        return np.concatenate(found)

    def least_by_kind(self, prices: Floats, without: Mask) -> Floats:
        """Return the least loss of options of each kind of use, shape (P,).

        Options in `without` (K,) are left out. The loss is infinite for a kind without options.
        Options with equal use are of one kind.
        """
        least = np.full(self._blocks[0].use.amount.shape[1], np.inf)
        for block in self._blocks:
            assert block.use.kind is not None
            loss = block.option_losses(prices)
            loss[without[block.rows]] = np.inf
            np.minimum.at(least, block.use.kind, loss)
        return least

    def losses(self, prices: Floats, limit: float, most: int) -> Losses:
        """Return the `most` alternatives of least loss, none above `limit`."""
        return _joined([b.losses(prices, limit, most) for b in self._blocks], most)

    def most_surplus(self, prices: Floats) -> list[float]:
        """Return an upper bound on the surplus of each job, including rounding errors."""
        return [each for block in self._blocks for each in block.most_surplus(prices).tolist()]

    def option_losses(self, prices: Floats) -> Floats:
        """Return each option's least shortfall from the dual bound in any plan, shape (K,)."""
        return np.concatenate([block.option_losses(prices) for block in self._blocks])


def _added(parts: list[Reply]) -> Reply:
    if len(parts) == 1:
        return parts[0]
    use = [math.fsum(column) for column in zip(*(p.use.tolist() for p in parts), strict=True)]
    return Reply(math.fsum(p.value for p in parts), np.array(use))


def _joined(parts: list[Losses], most: int) -> Losses:
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
    """Consecutive jobs of a problem, from `first_job` and `first_row` on, with offsets from 0.

    `counts` is the number of options of each job; `filled` are the jobs with options.
    """

    first_job: int
    first_row: int
    start: Ints
    value: Floats
    use: Uses
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
            problem.use.picked(rows),
            problem.must[begin:end],
            counts,
            counts.nonzero()[0],
        )

    @property
    def rows(self) -> slice:
        """The rows of the block's options in the problem."""
        return slice(self.first_row, self.first_row + len(self.value))

    def _reduced(self, prices: Floats) -> Floats:
        return self.use.net(self.value, prices)

    def _best(self, reduced: Floats) -> tuple[Ints, Floats]:
        """Return the best option of each job (-1 for none) and its surplus."""
        jobs = len(self.start) - 1
        best, surplus = np.full(jobs, -1), np.zeros(jobs)
        filled = self.filled
        if not len(filled):
            return best, surplus
        starts = self.start[filled]
        top = np.maximum.reduceat(reduced, starts)
        hits = (reduced == top.repeat(self.counts[filled])).nonzero()[0]
        rows = hits[hits.searchsorted(starts)]  # the first of equal options
        take = (top > 0) | self.must[filled]
        best[filled[take]] = rows[take]
        surplus[filled[take]] = top[take]
        return best, surplus

    def reply(self, prices: Floats) -> Reply:
        """Return the summed replies of the block's jobs."""
        best, surplus = self._best(self._reduced(prices))
        return Reply(float(surplus.sum()), self.use.total(best[best >= 0]))

    def best_of_each(
        self, prices: Floats, worth: Floats, without: Mask, most: int, among: Mask | None
    ) -> Rows:
        """Return the `most` options of each job with most surplus, as rows of the problem."""
        own, starts = self.rows, self.start[self.filled]
        if not len(starts):
            return np.zeros(0, dtype=np.int64)
        if among is not None and self.use.kind is None:
            among = among[own]
        surplus = self.use.net(self.value, prices, among)
        least = worth[self.first_job + self.filled]
        open_jobs = np.maximum.reduceat(surplus, starts) > least
        counts = np.where(open_jobs, self.counts[self.filled], 0)
        rows = np.flatnonzero(open_jobs.repeat(self.counts[self.filled]))
        job = np.arange(len(starts)).repeat(counts)
        kept = (surplus[rows] > least[job]) & ~without[own][rows]
        rows, job = rows[kept], job[kept]
        surplus, found = surplus[rows], [np.zeros(0, dtype=np.int64)]
        first = np.flatnonzero(np.diff(job, prepend=-1))
        counts = np.diff(first, append=len(job))
        for _ in range(most if len(rows) else 0):
            top = np.maximum.reduceat(surplus, first)
            hits = (surplus == top.repeat(counts)).nonzero()[0]
            best = hits[hits.searchsorted(first)][top > -np.inf]
            surplus[best] = -np.inf
            found.append(rows[best])
        return np.concatenate(found) + self.first_row

    def most_surplus(self, prices: Floats) -> Floats:
        """Return an upper bound on each job's surplus, including rounding errors, shape (n,)."""
        use = self.use
        cost = replace(use, amount=np.abs(use.amount)).cost(prices)
        lost = _lost(len(use.amount), np.abs(self.value), cost)
        return self._best(self._reduced(prices) + lost)[1]

    def option_losses(self, prices: Floats) -> Floats:
        """Return the loss of each option relative to its job's best option, shape (K,)."""
        reduced = self._reduced(prices)
        return np.asarray(self._best(reduced)[1].repeat(self.counts) - reduced)

    def losses(self, prices: Floats, limit: float, most: int) -> Losses:
        """Return the `most` alternatives of least loss in the block, none above `limit`."""
        reduced = self._reduced(prices)
        best, surplus = self._best(reduced)
        taken = best >= 0
        if not most:  # the caller wants only the best options
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


class Line:
    """A model from below of a convex function of one variable, without a solver.

    ``left`` is the rightmost point so far where the function falls, and ``right`` is the leftmost
    point where it does not. Between them no other tangent is above both of theirs, because the
    function is convex. Outside, their tangents are still below the function.
    """

    def __init__(self) -> None:
        self._left: tuple[float, float, float] | None = None  # point, value, slope
        self._right: tuple[float, float, float] | None = None

    def add(self, point: Floats, value: float, slope: Floats) -> None:
        """Add the tangent ``value + slope (p - point)``."""
        tangent = (float(point[0]), value, float(slope[0]))
        if tangent[2] < 0:
            if self._left is None or tangent[0] >= self._left[0]:
                self._left = tangent
        elif self._right is None or tangent[0] <= self._right[0]:
            self._right = tangent

    def lowest(self, low: Floats, high: Floats) -> tuple[float, Floats]:
        """Return the least value of the model in an interval, and its point."""
        left, right, least, most = self._left, self._right, float(low[0]), float(high[0])
        if left is None or right is None:
            at = most if right is None else least
        else:
            rise, fall = right[2], left[2]
            at = (left[1] - fall * left[0] - right[1] + rise * right[0]) / (rise - fall)
        at = min(max(at, least), most)
        value = max(v + s * (at - p) for p, v, s in filter(None, (left, right)))
        return value, np.array([at])


class Planes:
    """A model from below of a convex function of several variables, as a small LP in HiGHS.

    Values are divided by the ceiling, the greatest value that any variable may take. So the LP is
    well scaled, whatever the unit of value. A step that fails or runs out of time has the least
    value -infinity.
    """

    def __init__(self, variables: int, ceiling: float, deadline: Deadline) -> None:
        self._n, self._unit, self._deadline = variables, ceiling, deadline
        self._lp = silent(primal_feasibility_tolerance=1e-10, dual_feasibility_tolerance=1e-10)
        for _ in range(variables):
            self._lp.addVar(0.0, 1.0)
        self._lp.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        self._lp.changeColCost(variables, 1.0)

    def add(self, point: Floats, value: float, slope: Floats) -> None:
        """Add the plane ``value + slope . (p - point)``."""
        offset = (value - float(slope @ point)) / self._unit
        columns = np.arange(self._n + 1, dtype=np.int32)
        row = np.append(-slope, 1.0)
        self._lp.addRow(offset, highspy.kHighsInf, self._n + 1, columns, row)

    def lowest(self, low: Floats, high: Floats) -> tuple[float, Floats]:
        """Return the least value of the model in a box, and its point."""
        unit, columns = self._unit, np.arange(self._n, dtype=np.int32)
        self._lp.changeColsBounds(self._n, columns, low / unit, high / unit)
        try:
            status = run(self._lp, self._deadline.left())
        except SolverError:  # any prices give a valid bound
            status = highspy.HighsModelStatus.kSolveError
        if status != highspy.HighsModelStatus.kOptimal:
            return -np.inf, (low + high) / 2
        solution = np.array(self._lp.getSolution().col_value)
        return float(solution[-1]) * self._unit, np.clip(solution[:-1] * self._unit, low, high)


PATIENCE = 15
"""The number of successive evaluations without progress after which the search ends."""

ANSWER = 10
"""The number of replies of all jobs that take as long as making an answer from prices: the jobs'
best options, without those in excess, in the user's units. More evaluations are worth more than
filling this answer. 2,000 jobs fall 26 % short of the best plan after 9 evaluations, 1.2 % after 13
and 0.03 % after 21. A fill takes as long as 10 to 60 evaluations and brings the shortfall to 1.2,
0.5 and 0.006 %."""

DRIFT, LEAST_DRIFT = 0.1, 1e-3
"""The expected distance of prices from those of an earlier, similar problem. It is a share of the
prices. For low prices it is a share of the value of all jobs, divided by the number of
resources."""


@dataclass(frozen=True, slots=True)
class Dual:
    """The result of the dual.

    `replies` are the jobs' replies to all tried prices, with zero prices first. They also hold for
    a problem that differs only in capacities and blocks.
    """

    prices: Floats  # (R,) the best prices
    bound: float  # D at these prices, which no plan exceeds
    evaluations: int  # number of times that all jobs replied
    blocks: Floats  # (B,) number of each block that is worth its price
    replies: tuple[tuple[Floats, Reply], ...] = ()
    answer: tuple[Ints, Floats] | None = None  # an answer that fits, and its blocks, if known


class DualFunction:
    """D(p) of a problem, with resources scaled so that prices are comparable.

    A scaled price is the value of a resource's whole capacity. It never has to exceed the value of
    all jobs together.
    """

    def __init__(self, problem: Separable, jobs: Jobs) -> None:
        self.problem, self.jobs = problem, jobs
        scale = np.where(problem.capacity != 0, np.abs(problem.capacity), problem.use.largest())
        self.scale = np.where(scale > 0, scale, 1.0)
        self.replies: list[tuple[Floats, Reply]] = []

    def blocks_at(self, prices: Floats) -> Floats:
        """Return the number of each block that is worth its price."""
        problem = self.problem
        if not len(problem.block_value):
            return problem.block_value
        gain = problem.block_value - prices @ problem.block_use
        return np.where(gain > 0, problem.block_count, 0.0)

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        """Return D and a subgradient (the unused capacity) at scaled prices."""
        prices = scaled / self.scale
        self.replies.append((prices, self.jobs.reply(prices)))
        return self.given(*self.replies[-1])

    def given(self, prices: Floats, reply: Reply) -> tuple[float, Floats]:
        """Return D and a subgradient at prices per unit, given the replies of jobs."""
        problem, left = self.problem, self.problem.capacity - reply.use
        value = float(prices @ problem.capacity) + reply.value
        if len(problem.block_value):
            blocks = self.blocks_at(prices)
            left = left - problem.block_use @ blocks
            value += float((problem.block_value - prices @ problem.block_use) @ blocks)
        return value, np.asarray(left / self.scale)


def solve_dual(
    problem: Separable,
    jobs: Jobs,
    search: Search,
    *,
    start: Floats | None = None,
    known: Sequence[tuple[Floats, Reply]] = (),
) -> Dual:
    """Find prices whose bound is within the search's relative tolerance of the least bound.

    Parameters
    ----------
    start
        Prices per unit to start from, shape (R,); NaN for an unknown price.
    known
        `Dual.replies` of a problem that differs only in capacities and blocks. The search continues
        from the best of their prices.
    """
    ask = DualFunction(problem, jobs)
    if known:
        value, slope = ask.given(*known[0])
    else:
        value, slope = ask(np.zeros(len(problem.capacity)))
    at = np.zeros_like(slope)
    if _clears(at, value, slope, search.tolerance):  # no resource is short
        return _found(ask, known, at, value)
    worth = max(largest(problem.value), largest(problem.block_value))
    ceiling = max(abs(value), worth) or 1.0
    planes, best, radius = [(at, value, slope)], value, np.full_like(slope, ceiling)
    for prices, reply in known[1:]:
        value, slope = ask.given(prices, reply)
        planes.append((prices * ask.scale, value, slope))
        if value < best:
            best, at = value, prices * ask.scale
            radius = np.maximum(DRIFT * at, LEAST_DRIFT * ceiling / len(slope))
    if start is not None and (start > 0).any():
        given = np.isfinite(start)
        at = np.where(given, np.clip(start * ask.scale, 0.0, ceiling), 0.0)
        best, slope = ask(at)
        if _clears(at, best, slope, search.tolerance):
            return _found(ask, known, at, best)
        planes.append((at, best, slope))
        near = np.maximum(DRIFT * at, LEAST_DRIFT * ceiling / len(slope))
        radius = np.where(given, near, radius)
    model: Line | Planes = Line() if len(at) == 1 else Planes(len(at), ceiling, search.deadline)
    for plane in planes:
        model.add(*plane)
    return _found(ask, known, *_lowest(ask, model, at, best, radius, ceiling, search))


def _lowest(
    ask: DualFunction,
    model: Line | Planes,
    at: Floats,
    best: float,
    radius: Floats,
    ceiling: float,
    search: Search,
) -> tuple[Floats, float]:
    """Return the scaled prices of least value, and that value, starting from a known point.

    Each step takes the lowest point of the model within a box, which grows while the model is
    right. The time of `ANSWER` replies is left for making an answer from the prices.
    """
    tolerance, stalled = search.tolerance, 0
    while True:
        low, point = model.lowest(np.maximum(at - radius, 0.0), np.minimum(at + radius, ceiling))
        floor = low
        slack = 1e-9 * ceiling
        on_edge = (point <= at - radius + slack) & (at - radius > 0.0)
        on_edge |= (point >= at + radius - slack) & (at + radius < ceiling)
        if on_edge.any():  # the box hides lower values: search without it
            floor = model.lowest(np.zeros_like(at), np.full_like(at, ceiling))[0]
        late = search.deadline.left() <= ANSWER * ask.jobs.reply_s
        if best - floor <= tolerance * abs(best) or stalled >= PATIENCE or late:
            return at, best
        value, slope = ask(point)
        model.add(point, value, slope)
        if best - value >= 0.3 * (best - low):
            radius = radius * 2.0
        elif value >= best:
            radius = radius * 0.4
        stalled = 0 if best - value > 0.01 * tolerance * abs(best) else stalled + 1
        if value < best:
            best, at = value, point


def _found(
    ask: DualFunction, known: Sequence[tuple[Floats, Reply]], at: Floats, best: float
) -> Dual:
    prices = at / ask.scale
    replies = (*known, *ask.replies)
    return Dual(prices, best, len(ask.replies), ask.blocks_at(prices), replies)


def _clears(at: Floats, value: float, slope: Floats, tolerance: float) -> bool:
    """Return whether jobs fit the capacities, and use all of each capacity with a price.

    In that case their choices are a plan of value D(p), so no prices have a lower D.
    """
    return bool((slope >= 0).all()) and float(at @ slope) <= tolerance * abs(value)


def bound_at(problem: Separable, prices: Floats) -> float:
    """Return D(p) rounded up, so that no plan is worth more, whatever the prices.

    Prices below 0 count as 0. Each number is increased by its possible rounding error, and sums are
    exact. So the bound holds for the problem in real numbers, whatever the source of the prices. A.
    Neumaier and O. Shcherbina (Math. Program. 99, 2004) give such bounds for any linear program.
    """
    prices = np.fmax(prices, 0.0)
    cost = prices @ np.abs(problem.block_use)
    gain = problem.block_value - prices @ problem.block_use
    gain += _lost(len(prices), np.abs(problem.block_value), cost)
    products = np.append(prices * problem.capacity, np.maximum(gain, 0.0) * problem.block_count)
    products = np.where(products == 0, 0.0, np.nextafter(products, np.inf))
    terms = [*products.tolist(), *Jobs(problem).most_surplus(prices)]
    total = math.fsum(terms)
    return total if math.fsum([*terms, -total]) <= 0 else math.nextafter(total, math.inf)


def _lost(products: int, value: Floats, cost: Floats) -> Floats:
    """Return the possible rounding error of values minus a sum of products of size `cost`.

    It is 0 where the products are 0.
    """
    return np.where(cost > 0, (products + 3) * EPSILON * (value + cost), 0.0)
