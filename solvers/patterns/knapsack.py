"""The pattern of a class of nodes that is worth most at prices of slots: a small knapsack."""

from typing import NamedTuple

import highspy
import numpy as np

from ronda.formulations.patterns.model import TOLERANCE, NodeModel
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import left_s
from ronda.solvers.exact.highs import PRECISE, PRECISION, run, silent

MOST_NODES = 1000
"""The most nodes of a branch and bound."""

EPSILON = 1e-15
"""The relative rounding error of a product that a bound adds up."""

MIP_ERROR = 1e-6
"""The relative error that is allowed for in a bound from branch and bound."""


class BestPattern(NamedTuple):
    """An upper bound on a node's worth, patterns found (n, q), and prices of its resources (R,)."""

    bound: float
    patterns: list[Floats]
    unit: Floats


class Knapsack:
    """The patterns of one class of nodes, over the `slots` that it supplies."""

    def __init__(self, model: NodeModel, k: int) -> None:
        self.slots: Rows = np.flatnonzero(model.most[:, k] > 0)
        self.capacity, self.most = model.capacity[k], model.most[self.slots, k]
        self.spread = np.minimum(self.most, model.spread[self.slots])
        self.cost, self.size = float(model.cost[k]), model.size[self.slots]
        self._unit = np.where(self.capacity > 0, self.capacity, 1.0)
        self._scaled = self.size / self._unit
        self._lp: highspy.Highs | None = None

    def pattern(self, profit: Floats, most: Floats) -> Floats:
        """Return a good pattern (q,) at a profit per slot (q,), of at most so many of each (q,)."""
        most = np.minimum(self.spread, most)
        share, duals = self._relaxed(profit, most)
        return self._filled(profit, most, share, duals)

    def best(self, profit: Floats, gap: float | None = None) -> BestPattern:
        """Return a bound on the worth of a node, its cost subtracted, and good patterns.

        The bound is that of the relaxation, or of branch and bound to a relative `gap` if given.
        """
        if not len(self.slots):
            return BestPattern(0.0, [], np.zeros(len(self.capacity)))
        found = [self.pattern(profit, self.spread)]
        _, duals = self._relaxed(profit, self.most)
        # By duality this holds for any duals, however inexact the linear program is.
        paid = self._scaled @ duals
        loss = paid - profit
        top = float(duals @ (self.capacity > 0) + np.maximum(0.0, -loss) @ self.most)
        top += EPSILON * float((profit + paid) @ self.most)
        low = float(profit @ found[0])
        if gap is not None and top > low * (1 + gap) + TOLERANCE:
            useful = np.flatnonzero(loss < top - low)  # any other slot makes a worse pattern
            told, pattern = self._exact(useful, profit, gap)
            top = min(top, max(low, told))
            if profit @ pattern > low:
                found.append(pattern)
        return BestPattern(max(0.0, top - self.cost), found, duals / self._unit)

    def _exact(self, useful: Rows, profit: Floats, gap: float) -> tuple[float, Floats]:
        """Return a bound and a pattern by branch and bound, of some slots only."""
        precise = {f"{name}_feasibility_tolerance": PRECISION for name in PRECISE}
        solver = silent(
            mip_rel_gap=gap,
            mip_abs_gap=0.0,
            mip_heuristic_effort=0.0,
            mip_max_nodes=MOST_NODES,
            **precise,
        )
        unit = float(profit[useful].max())
        lp = self._model(useful, profit[useful] / unit, self.most[useful])
        lp.integrality_ = [highspy.HighsVarType.kInteger] * len(useful)
        solver.passModel(lp)
        run(solver, left_s())
        info, pattern = solver.getInfo(), np.zeros(len(self.slots))
        if info.primal_solution_status == highspy.kSolutionStatusFeasible:
            pattern[useful] = np.round(solver.getSolution().col_value)
        if (pattern @ self.size > self.capacity * (1 + TOLERANCE)).any():
            pattern[:] = 0.0
        return -info.mip_dual_bound * unit * (1 + MIP_ERROR), pattern

    def _relaxed(self, profit: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Return the fractional optimum (q,) and duals of the node's resources (R,)."""
        n = len(self.slots)
        if self._lp is None:
            self._lp = silent(presolve="off")
            self._lp.passModel(self._model(np.arange(n), profit, most))
        every = np.arange(n, dtype=np.int32)
        self._lp.changeColsCost(n, every, -profit)
        self._lp.changeColsBounds(n, every, np.zeros(n), most)
        self._lp.run()
        answer = self._lp.getSolution()
        return np.array(answer.col_value), np.maximum(0.0, -np.array(answer.row_dual))

    def _model(self, slots: Rows, profit: Floats, most: Floats) -> highspy.HighsLp:
        lp, n, resources = highspy.HighsLp(), len(slots), len(self.capacity)
        lp.num_col_, lp.num_row_ = n, resources
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = -profit, np.zeros(n), most
        lp.row_lower_ = np.full(resources, -highspy.kHighsInf)
        lp.row_upper_ = (self.capacity > 0).astype(float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.arange(n + 1) * resources
        lp.a_matrix_.index_ = np.tile(np.arange(resources), n)
        lp.a_matrix_.value_ = self._scaled[slots].ravel()
        return lp

    def _filled(self, profit: Floats, most: Floats, share: Floats, duals: Floats) -> Floats:
        """Return the whole part of a fractional pattern, and what pays best in the rest."""
        pattern = np.floor(share + 1e-9)
        free = self.capacity * (1 + TOLERANCE) - pattern @ self.size
        density = np.where(profit > 0, profit / (self._scaled @ duals + 1e-9), 0.0)
        fits = (density > 0) & (pattern < most) & (self.size <= free).all(axis=1)
        wanted = np.flatnonzero(fits)
        wanted = wanted[np.argsort(-density[wanted], kind="stable")]
        while len(wanted):
            i, wanted = wanted[0], wanted[1:]
            size = self.size[i]
            room = np.floor(free[size > 0] / size[size > 0]).min(initial=np.inf)
            n = min(room, most[i] - pattern[i])
            pattern[i] += n
            free -= n * size
            wanted = wanted[(self.size[wanted] <= free).all(axis=1)]
        return pattern
