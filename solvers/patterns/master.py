"""The linear program of patterns: tiers of jobs take slots, nodes with patterns supply them."""

from collections.abc import Sequence

import highspy
import numpy as np

from ronda.formulations.patterns.model import Form, NodeModel
from ronda.instances.base import Floats, Ints, Rows
from ronda.instances.clock import OutOfTimeError, left_s
from ronda.solvers.exact.highs import run, silent
from ronda.solvers.exact.threads import SolverError
from ronda.solvers.patterns.knapsack import Knapsack

FIRST_TIERS = 8
"""The number of tiers of each form before prices are known."""


def tiers(form: Form, prices: Floats | None, widths: Sequence[float]) -> Rows:
    """Return the tier of each job of a form, shape (n,), numbered from 0.

    Jobs of a tier have the same best and second best way at the prices, and gain as much more by
    the best one, as a share of their value up to the `widths`. Jobs that nearly change their minds
    are thus told apart, and others count by their mean value without an error.
    """
    if prices is None:
        order = np.argsort(np.argsort(form.value.max(axis=1), kind="stable"), kind="stable")
        return np.asarray(order * min(FIRST_TIERS, len(order)) // len(order))
    net, row = form.net(prices), np.arange(len(form.jobs))
    best = net.argmax(axis=1)
    top = net[row, best]
    net[row, best] = -np.inf
    second = net.argmax(axis=1)
    margin = (top - net[row, second]) / form.value.max(axis=1)
    key = (best * net.shape[1] + second) * (len(widths) + 1) + np.searchsorted(widths, margin)
    _, tier = np.unique(key, return_inverse=True)
    return np.asarray(tier.reshape(-1))


class PatternMaster:
    """The relaxation with some patterns, in HiGHS.

    Its columns are tiers of jobs in each way, then patterns. Its rows are slots, classes of nodes,
    and tiers of several ways. `tiers` has the tier of each job of each form, `owner` the class of
    each pattern, and `patterns` its numbers of slots, over the slots of the class's knapsack.

    Slots come from patterns alone, or also from a given `supply` (Q,) of them.
    """

    def __init__(
        self,
        model: NodeModel,
        sacks: Sequence[Knapsack],
        prices: Floats | None = None,
        widths: Sequence[float] = (),
        supply: Floats | None = None,
    ) -> None:
        self.model, self.sacks = model, sacks
        self.owner, self.patterns = list[int](), list[Floats]()
        self.tiers = list[Rows]()
        self._known = set[tuple[int, bytes]]()
        self._lp = silent(
            simplex_strategy=1, presolve="off"
        )  # the primal simplex is 5 times slower
        self._lp.passModel(self._tiers(prices, widths, supply))
        self._demand = self._lp.getNumCol()

    def _tiers(
        self, prices: Floats | None, widths: Sequence[float], supply: Floats | None
    ) -> highspy.HighsLp:
        slots, classes, coupling = len(self.model.size), len(self.model.count), self.model.coupling
        rows = self.model.priced
        cost, upper, amount = list[float](), list[float](), list[float]()
        start, index = [0], list[int]()
        limit = list[float]()
        for form in self.model.forms:
            tier = tiers(form, prices, widths)
            self.tiers.append(tier)
            n = np.bincount(tier).astype(float)
            mean = np.array([np.bincount(tier, v) for v in form.value.T]).T / n[:, None]
            several = len(form.slot) > 1
            uses = [
                (way[way >= 0].tolist(), times[way >= 0].tolist())
                for way, times in zip(form.slot, form.times, strict=True)
            ]
            for (way, times), use in zip(uses, [] if form.use is None else form.use, strict=False):
                way += (slots + np.flatnonzero(use)).tolist()
                times += use[use != 0].tolist()
            for jobs, values in zip(n.tolist(), mean.tolist(), strict=True):
                row = rows + classes + len(limit)
                for value, (way, times) in zip(values, uses, strict=True):
                    cost.append(-value)
                    upper.append(jobs)
                    index += [*way, row] if several else way
                    amount += [*times, 1.0] if several else times
                    start.append(len(index))
                if several:
                    limit.append(jobs)
        cost += (-coupling.value).tolist()
        upper += coupling.most.tolist()
        for use in coupling.use.T:
            index += (slots + np.flatnonzero(use)).tolist()
            amount += use[use != 0].tolist()
            start.append(len(index))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(cost), rows + classes + len(limit)
        lp.col_cost_, lp.col_lower_ = np.array(cost), np.zeros(len(cost))
        lp.col_upper_ = np.array(upper)
        lp.row_lower_ = np.full(lp.num_row_, -highspy.kHighsInf)
        given = np.zeros(slots) if supply is None else supply
        count = self.model.count.astype(float)
        lp.row_upper_ = np.concatenate([given, coupling.limit, count, limit])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = np.array(start), np.array(index)
        lp.a_matrix_.value_ = np.array(amount, dtype=np.float64)
        return lp

    def enter(self, found: Sequence[tuple[int, Floats]]) -> int:
        """Add patterns of classes that are new; return how many were."""
        index, amount, cost = list[Rows](), list[Floats](), list[float]()
        for k, pattern in found:
            used = np.flatnonzero(pattern)
            key = (k, pattern.tobytes())
            if not len(used) or key in self._known:
                continue
            self._known.add(key)
            self.owner.append(k)
            self.patterns.append(pattern)
            index.append(np.append(self.sacks[k].slots[used], self.model.priced + k))
            amount.append(np.append(-pattern[used], 1.0))
            cost.append(self.sacks[k].cost)
        if n := len(cost):
            rows, numbers = np.concatenate(index).astype(np.int32), np.concatenate(amount)
            begin = np.cumsum([0, *map(len, index[:-1])]).astype(np.int32)
            most = np.full(n, highspy.kHighsInf)
            self._lp.addCols(n, np.array(cost), np.zeros(n), most, len(rows), begin, rows, numbers)
        return len(cost)

    def solve(self) -> tuple[float, Floats, Floats]:
        """Return the optimum, prices of slots (Q,) and the number of nodes of each pattern.

        Raises
        ------
        OutOfTimeError
            If the time ends.
        """
        _run(self._lp)
        answer = self._lp.getSolution()
        prices = np.maximum(0.0, -np.array(answer.row_dual[: self.model.priced]))
        share = np.array(answer.col_value[self._demand :])
        return -self._lp.getInfo().objective_function_value, prices, share

    def shares(self) -> list[Floats]:
        """Return the jobs of each tier in each way, shape (tiers, W), of each form."""
        every, found, at = np.array(self._lp.getSolution().col_value), list[Floats](), 0
        for form, tier in zip(self.model.forms, self.tiers, strict=True):
            shape = int(tier.max()) + 1, len(form.slot)
            found.append(every[at : at + shape[0] * shape[1]].reshape(shape))
            at += shape[0] * shape[1]
        return found

    def fix(self, whole: Ints) -> None:
        """Demand at least so many nodes of each pattern, shape (n,)."""
        n = len(whole)
        columns = np.arange(self._demand, self._demand + n, dtype=np.int32)
        most = np.full(n, highspy.kHighsInf)
        self._lp.changeColsBounds(n, columns, whole.astype(float), most)

    def by_sums(self) -> tuple[Floats, Floats, Floats]:
        """Return prices of slots (Q,) and of resources of classes (K, R), and slots (Q, K).

        All nodes of a class count as one, which is a weaker relaxation than that of patterns. The
        slots are those that all nodes of a class hold together.
        """
        model, lp = self.model, silent()
        lp.passModel(self._lp.getLp())
        (classes, resources), rows, at = model.capacity.shape, lp.getNumRow(), lp.getNumCol()
        unit = np.where(model.capacity > 0, model.capacity, 1.0)
        nodes = model.count[:, None] * (model.capacity > 0)
        n = classes * resources
        none = np.zeros(0, dtype=np.int32)
        least = np.full(n, -highspy.kHighsInf)
        lp.addRows(
            n, least, nodes.ravel().astype(float), 0, np.zeros(n, np.int32), none, np.zeros(0)
        )
        for k, sack in enumerate(self.sacks):
            m, width = len(sack.slots), resources + 1
            own = np.tile(rows + k * resources + np.arange(resources), (m, 1))
            index = np.hstack([sack.slots[:, None], own]).astype(np.int32).ravel()
            amount = np.hstack([np.full((m, 1), -1.0), sack.size / unit[k]]).ravel()
            begin, most = (np.arange(m) * width).astype(np.int32), np.full(m, highspy.kHighsInf)
            lp.addCols(m, np.zeros(m), np.zeros(m), most, len(index), begin, index, amount)
        _run(lp)
        answer, amount = lp.getSolution(), np.zeros(model.supplied.shape)
        for k, sack in enumerate(self.sacks):
            amount[sack.slots, k] = answer.col_value[at : at + len(sack.slots)]
            at += len(sack.slots)
        duals = np.maximum(0.0, -np.array(answer.row_dual))
        return duals[: model.priced], duals[rows:].reshape(classes, resources) / unit, amount


def _run(lp: highspy.Highs) -> None:
    """Solve a linear program; raise OutOfTimeError if the time ends, SolverError if it fails."""
    status = run(lp, left_s())
    if status == highspy.HighsModelStatus.kTimeLimit:
        raise OutOfTimeError
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kModelEmpty):
        raise SolverError(
            f"HiGHS says of the program of patterns: {lp.modelStatusToString(status)}"
        )
