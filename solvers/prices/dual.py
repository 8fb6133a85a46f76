"""The Lagrangian dual of a separable round: prices at which no resource is asked for too much.

With prices p >= 0 for the resources, jobs decide alone and::

    D(p) = sum_r p_r c_r + sum_j max_k (v_jk - p.a_jk) + sum_b n_b max(0, v_b - p.a_b)

bounds every plan from above. D is convex and piecewise linear; each evaluation gives a cutting
plane. Prices minimise the model of all planes within a box around the best prices so far
(a trust region: planes alone make prices jump from one corner to the other), which grows when
the model was right and shrinks when it was wrong. The model without the box bounds the least D
from below, so that the method knows when to stop.

With one variable two planes say all: those at the ends of the bracket around the minimum. With
more a small LP in HiGHS finds the lowest point.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats
from ronda.solvers.prices.jobs import Jobs, Reply
from ronda.solvers.prices.search import Search


class Line:
    """The lower model of a function of one variable, without a solver.

    Of the points so far, ``left`` is the rightmost one where the function falls and ``right`` the
    leftmost one where it does not. Between them no other plane is above both of theirs: these
    are tangents of a convex function. Outside, theirs are still below the function.
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
        """Return the least value of the model in an interval, and where."""
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
    """The lower model of a function of several variables, as a small LP in HiGHS.

    Values are divided by the ceiling, the greatest value that any variable may take, so that the LP
    is well scaled whatever the unit of value.
    """

    def __init__(self, variables: int, ceiling: float) -> None:
        self._n, self._unit = variables, ceiling
        self._lp = highspy.Highs()  # type: ignore[no-untyped-call]
        self._lp.setOptionValue("output_flag", False)
        self._lp.setOptionValue("threads", 1)
        self._lp.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._lp.setOptionValue("dual_feasibility_tolerance", 1e-10)
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
        """Return the least value of the model in a box, and where."""
        unit, columns = self._unit, np.arange(self._n, dtype=np.int32)
        self._lp.changeColsBounds(self._n, columns, low / unit, high / unit)
        self._lp.run()
        solution = np.array(self._lp.getSolution().col_value)
        return float(solution[-1]) * self._unit, np.clip(solution[:-1] * self._unit, low, high)


PATIENCE = 15
"""Evaluations in a row without progress after which the best prices are taken as they are."""

DRIFT, LEAST_DRIFT = 0.1, 1e-3
"""How far prices are expected to be from those of an earlier, similar problem: a share of them, and
for low ones a share of what all jobs are worth together, over the number of resources."""


@dataclass(frozen=True, slots=True)
class Dual:
    """What the dual found.

    `replies` are what the jobs took at all prices that were tried, zero first: they say the same of
    a problem that differs in its capacities and blocks only.
    """

    prices: Floats  # (R,) the best
    bound: float  # D at these prices: no plan is worth more
    evaluations: int  # how often all jobs were asked
    blocks: Floats  # (B,) how many of each block are worth their price
    replies: tuple[tuple[Floats, Reply], ...] = ()


class Prices:
    """D(p) of a problem, with resources scaled so that prices are comparable.

    A scaled price is the value of all there is of a resource; it never needs to exceed what all
    jobs are worth together.
    """

    def __init__(self, problem: Separable, jobs: Jobs) -> None:
        self.problem, self.jobs = problem, jobs
        most = np.abs(problem.use).max(axis=1, initial=0.0)
        scale = np.where(problem.capacity != 0, np.abs(problem.capacity), most)
        self.scale = np.where(scale > 0, scale, 1.0)
        self.replies: list[tuple[Floats, Reply]] = []

    def blocks_at(self, prices: Floats) -> Floats:
        """Return how many of each block are worth their price."""
        problem = self.problem
        if not len(problem.block_value):
            return problem.block_value
        gain = problem.block_value - prices @ problem.block_use
        return np.where(gain > 0, problem.block_count, 0.0)

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        """Return D and a subgradient (what is left of each resource) at scaled prices."""
        prices = scaled / self.scale
        self.replies.append((prices, self.jobs.reply(prices)))
        return self.given(*self.replies[-1])

    def given(self, prices: Floats, reply: Reply) -> tuple[float, Floats]:
        """Return D and a subgradient at prices per unit, given what the jobs take there."""
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
    """Find prices whose bound is within the search's tolerance, relative, of the least there is.

    Parameters
    ----------
    start
        (R,) prices to start from, per unit; NaN where there is none.
    known
        `Dual.replies` of a problem that differs in its capacities and blocks only: the search goes
        on from them, at the best of their prices.
    """
    tolerance, deadline = search.tolerance, search.deadline
    ask = Prices(problem, jobs)
    if known:
        value, slope = ask.given(*known[0])
    else:
        value, slope = ask(np.zeros(len(problem.capacity)))
    if (slope >= 0).all():  # nothing is short: no price is needed, and none can be better
        zero = np.zeros_like(slope)
        return Dual(zero, value, 1, ask.blocks_at(zero), (*known, *ask.replies))
    worth = max(
        np.abs(problem.value).max(initial=0.0), np.abs(problem.block_value).max(initial=0.0)
    )
    ceiling = max(abs(value), float(worth)) or 1.0
    model: Line | Planes = Line() if len(slope) == 1 else Planes(len(slope), ceiling)
    model.add(np.zeros_like(slope), value, slope)
    best, at = value, np.zeros_like(slope)
    radius = np.full_like(slope, ceiling)
    for prices, reply in known[1:]:
        value, slope = ask.given(prices, reply)
        model.add(prices * ask.scale, value, slope)
        if value < best:
            best, at = value, prices * ask.scale
            radius = np.maximum(DRIFT * at, LEAST_DRIFT * ceiling / len(slope))
    if start is not None and (start > 0).any():
        given = np.isfinite(start)
        at = np.where(given, np.clip(start * ask.scale, 0.0, ceiling), 0.0)
        best, slope = ask(at)
        model.add(at, best, slope)
        near = np.maximum(DRIFT * at, LEAST_DRIFT * ceiling / len(slope))
        radius = np.where(given, near, radius)
    floor, stalled = -np.inf, 0
    while True:
        low, point = model.lowest(np.maximum(at - radius, 0.0), np.minimum(at + radius, ceiling))
        floor = low
        if _on_edge(point, at, radius, ceiling):  # the box hides lower values: look without it
            floor = model.lowest(np.zeros_like(at), np.full_like(at, ceiling))[0]
        if best - floor <= tolerance * abs(best) or stalled >= PATIENCE or deadline.over():
            break
        value, slope = ask(point)
        model.add(point, value, slope)
        if best - value >= 0.3 * (best - low):
            radius = radius * 2.0
        elif value >= best:
            radius = radius * 0.4
        stalled = 0 if best - value > 0.01 * tolerance * abs(best) else stalled + 1
        if value < best:
            best, at = value, point
    prices = at / ask.scale
    replies = (*known, *ask.replies)
    return Dual(prices, best, len(ask.replies), ask.blocks_at(prices), replies)


def _on_edge(point: Floats, at: Floats, radius: Floats, ceiling: float) -> bool:
    """Tell whether a point is on an edge of the box that is no limit of the prices themselves."""
    slack = 1e-9 * ceiling
    low = (point <= at - radius + slack) & (at - radius > 0.0)
    high = (point >= at + radius - slack) & (at + radius < ceiling)
    return bool((low | high).any())


def bound_at(problem: Separable, prices: Floats) -> float:
    """Return D(p): no plan is worth more than this, whatever the prices (>= 0)."""
    gain = problem.block_value - prices @ problem.block_use
    blocks = float((np.maximum(gain, 0.0) * problem.block_count).sum())
    return float(prices @ problem.capacity) + Jobs(problem).reply(prices).value + blocks
