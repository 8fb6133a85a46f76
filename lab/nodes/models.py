"""Models by HiGHS of a round of tasks: sums of each kind's resources, or whole slots on every node.

Tasks are of one slice, and each is a job of its own. Groups and what runs count for nothing, so
that both are relaxations of the round.
"""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import highspy
import numpy as np
from scipy.sparse import csc_array

from ronda.instances.base import Floats
from ronda.instances.plan import gap_between
from ronda.instances.tasks.arrays import TaskRound
from ronda.solvers.exact.highs import silent

TIERS = 24
"""Parts of like value that the tasks of a shape are cut into for prices."""


class _Column(NamedTuple):
    """What one unit is worth, how many there are at most, and what it takes of rows."""

    worth: float
    most: float
    whole: bool
    takes: list[tuple[int, float]]


def _slots(round_: TaskRound, tiers: int) -> tuple[list[_Column], list[float]]:
    """Return columns, and the limits of rows, those of the resources of each kind first.

    Kinds supply slots of shapes, in parts of what they have; tasks of a shape take these. Slots of
    a shape in pools of the same speed are the same. The tasks of a shape are cut into so many parts
    of like value at most, each worth its mean.
    """
    resources = round_.capacity.shape[1]
    fits = (round_.use[:, None] <= round_.capacity).all(axis=2)
    by_kind = np.where(fits, round_.speed[:, round_.pool], 0.0)
    limits = (round_.count[:, None] * (round_.capacity > 0)).astype(float).ravel().tolist()
    columns: list[_Column] = []
    for shape in np.unique(round_.shape).tolist():
        values = -np.sort(-round_.value[round_.shape == shape])
        row_of: dict[float, int] = {}
        for kind in np.flatnonzero(by_kind[shape] > 0).tolist():
            row = row_of.setdefault(float(by_kind[shape, kind]), len(limits))
            limits += [0.0] * (row == len(limits))
            part = round_.use[shape] / np.maximum(round_.capacity[kind], 1)
            taken = [(kind * resources + r, float(part[r])) for r in np.flatnonzero(part).tolist()]
            columns.append(_Column(0.0, np.inf, True, [(row, -1.0), *taken]))
        cuts = np.linspace(0, len(values), min(tiers, len(values)) + 1).astype(int).tolist()
        for low, high in pairwise(cuts) if row_of else ():
            mean, some = float(values[low:high].mean()), float(high - low)
            columns += [
                _Column(speed * mean, some, False, [(row, 1.0), (len(limits), 1.0)])
                for speed, row in row_of.items()
            ]
            limits.append(some)
    return columns, limits


def _model(columns: list[_Column], limits: list[float]) -> highspy.HighsLp:
    lp, entries = highspy.HighsLp(), [take for column in columns for take in column.takes]
    start = np.cumsum([0, *(len(column.takes) for column in columns)])
    rows, amounts = np.array(entries).reshape(-1, 2).T
    matrix = csc_array((amounts, rows, start), shape=(len(limits), len(columns)))
    matrix.sort_indices()
    lp.num_col_, lp.num_row_, lp.sense_ = len(columns), len(limits), highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array([column.worth for column in columns])
    lp.col_upper_ = np.array([column.most for column in columns])
    lp.col_lower_ = np.zeros(len(columns))
    lp.row_lower_, lp.row_upper_ = np.full(len(limits), -highspy.kHighsInf), np.array(limits)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    return lp


def relaxed_prices(round_: TaskRound) -> Floats:
    """Return prices (K, R) of a unit of each resource of each kind, by sums over its nodes."""
    highs = silent()
    highs.passModel(_model(*_slots(round_, TIERS)))
    highs.run()
    dual = np.abs(highs.getSolution().row_dual)[: round_.capacity.size]
    prices: Floats = dual.reshape(round_.capacity.shape) / np.maximum(round_.capacity, 1)
    return prices


class OnNodes(NamedTuple):
    """What HiGHS finds for the model on nodes: None where it has no answer in time."""

    objective: float | None
    bound: float
    gap: float | None
    columns: int


def whole_on_nodes(round_: TaskRound, gap: float, limit_s: float) -> OnNodes:
    """Solve a model of whole slots of each shape on each node, in which groups may be together."""
    kind = round_.node_kind
    apart = replace(
        round_,
        kinds=tuple(round_.kinds[k] for k in kind.tolist()),
        capacity=round_.capacity[kind],
        count=np.ones(round_.nodes, dtype=np.int64),
        pool=round_.pool[kind],
    )
    columns, limits = _slots(apart, round_.tasks)
    lp = _model(columns, limits)
    sort = {True: highspy.HighsVarType.kInteger, False: highspy.HighsVarType.kContinuous}
    lp.integrality_ = [sort[column.whole] for column in columns]
    highs = silent(mip_rel_gap=gap, time_limit=limit_s)
    highs.passModel(lp)
    highs.run()
    info = highs.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    objective = float(info.objective_function_value) if found else None
    bound = float(info.mip_dual_bound)
    reached = None if objective is None else gap_between(bound, objective)
    return OnNodes(objective, bound, reached, len(columns))
