"""The core: the few jobs whose choice prices leave open, decided together by a small MILP.

At prices p every plan falls short of the dual bound by exactly::

    sum_j loss_j(choice) + sum_b loss of blocks + sum_r p_r (what is left of r)

All three sums have no negative terms. So the core takes the options of least loss while all other
jobs take their best one; and a plan that uses an option outside the core falls short by at least
that option's loss. Both together bound the optimum. The MILP minimises the shortfall as the dual
bound less the value, which is the same and needs no columns for what is left.
"""

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, vstack

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Ints
from ronda.solvers.prices.answer import Decided
from ronda.solvers.prices.jobs import Losses

HIGHS = {
    "output_flag": False,
    "threads": 1,
    "mip_feasibility_tolerance": 1e-8,
    "primal_feasibility_tolerance": 1e-9,
    "mip_allow_restart": False,
    "mip_heuristic_run_rins": False,
}
"""With few coupling rows the first relaxation says nearly all: to restart or to search around it
costs more than it gives."""


def solve_core(
    problem: Separable,
    bound: float,
    losses: Losses,
    *,
    target: float,
    cutoff: float,
    nodes: int,
    seconds: float,
    seed: int,
) -> Decided:
    """Decide the core.

    Parameters
    ----------
    bound, losses
        The problem's dual bound, and the options of the core.
    target
        Shortfall that is good enough to stop at, in units of value.
    cutoff
        Shortfall of the best answer known: only better ones matter.
    """
    columns = _columns(losses)
    if not len(columns.row) and not len(problem.block_value):  # nothing is open
        return Decided(losses.best, np.zeros(0), np.inf, True, 0, 0)
    worth = max(
        np.abs(problem.value).max(initial=0.0), np.abs(problem.block_value).max(initial=0.0)
    )
    unit = max(target, 1e-3 * float(worth)) or 1.0
    solver = _model(problem, bound, losses, columns, unit)
    solver.setOptionValue("random_seed", seed % 2**31)
    solver.setOptionValue("time_limit", max(seconds, 1e-3))
    solver.setOptionValue("mip_max_nodes", nodes)
    solver.setOptionValue("mip_rel_gap", 0.0)
    # Within the target of the core's own bound is near enough: both bounds then prove the gap.
    solver.setOptionValue("mip_abs_gap", target / unit)
    solver.setOptionValue("objective_target", target / unit)
    if np.isfinite(cutoff):
        solver.setOptionValue("objective_bound", cutoff / unit)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    states = highspy.HighsModelStatus
    none_left = status in (states.kInfeasible, states.kObjectiveBound)
    proven = none_left or status in (states.kOptimal, states.kObjectiveTarget)
    least = np.inf if none_left else max(0.0, float(info.mip_dual_bound) * unit)
    chosen = blocks = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        chosen, blocks = _read(problem, losses, columns, np.array(solver.getSolution().col_value))
    return Decided(chosen, blocks, least, proven, len(columns.row), int(info.mip_node_count))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The core's options: the best one and the alternatives of every job that has any."""

    jobs: Ints  # (F,) the free jobs
    job: Ints  # (C,) index into `jobs`
    row: Ints  # (C,) row of the problem
    may_wait: NDArray[np.bool_]  # (F,) whether taking none is in the core


def _columns(losses: Losses) -> _Columns:
    jobs = np.unique(losses.job)
    place = np.searchsorted(jobs, losses.job)
    best = losses.best[jobs]
    none = losses.row < 0
    may_wait = best < 0
    may_wait[place[none]] = True
    taken = np.flatnonzero(best >= 0)
    job = np.concatenate([taken, place[~none]])
    row = np.concatenate([best[taken], losses.row[~none]])
    order = np.lexsort((row, job))
    return _Columns(jobs, job[order], row[order], may_wait)


def _model(
    problem: Separable, bound: float, losses: Losses, columns: _Columns, unit: float
) -> highspy.Highs:
    """Build the MILP: the shortfall is the dual bound less the value of all jobs and blocks."""
    resources, blocks = len(problem.capacity), len(problem.block_value)
    fixed = np.delete(losses.best, columns.jobs)
    fixed = fixed[fixed >= 0]
    room = problem.capacity - problem.use[:, fixed].sum(axis=1)
    use = np.hstack([problem.use[:, columns.row], problem.block_use])
    scale = np.abs(use).max(axis=1, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    options, jobs = len(columns.row), len(columns.jobs)
    width = options + blocks
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = width, resources + jobs
    lp.col_cost_ = -np.concatenate([problem.value[columns.row], problem.block_value]) / unit
    lp.offset_ = (bound - float(problem.value[fixed].sum())) / unit
    lp.col_lower_ = np.zeros(width)
    lp.col_upper_ = np.concatenate([np.ones(options), problem.block_count])
    least = np.where(columns.may_wait, 0.0, 1.0)
    lp.row_lower_ = np.concatenate([np.full(resources, -highspy.kHighsInf), least])
    lp.row_upper_ = np.concatenate([room / scale, np.ones(jobs)])
    one_each = csc_array((np.ones(options), (columns.job, np.arange(options))), shape=(jobs, width))
    matrix = csc_array(vstack([csc_array(use / scale[:, None]), one_each]))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr
    lp.a_matrix_.index_ = matrix.indices
    lp.a_matrix_.value_ = matrix.data
    whole, any_amount = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    kinds = [whole if b else any_amount for b in problem.block_integer.tolist()]
    lp.integrality_ = [whole] * options + kinds
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in HIGHS.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    return solver


def _read(
    problem: Separable, losses: Losses, columns: _Columns, values: Floats
) -> tuple[Ints, Floats]:
    """Return the choice of all jobs and the count of all blocks."""
    options, blocks = len(columns.row), len(problem.block_value)
    chosen = losses.best.copy()
    chosen[columns.jobs] = -1
    taken = np.flatnonzero(values[:options] > 0.5)
    chosen[columns.jobs[columns.job[taken]]] = columns.row[taken]
    counts = values[options : options + blocks]
    return chosen, np.where(problem.block_integer, np.rint(counts), counts)
