"""Any Pyomo model through HiGHS: solve with a start and a deadline.

HiGHS gets the arrays of a model directly, because Pyomo's own interface has no incumbent callback
and redirects the process's output. One thread always: two solves in two threads of one process can
block each other indefinitely, so nothing here may be called from two threads.
"""

from typing import Any

import highspy
import numpy as np

from ronda.formulations.clock import Deadline
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.exact.form import (
    PROOF_GAP,
    Effort,
    LinearForm,
    Outcome,
    found,
    known_start,
    nothing,
    solved,
    too_late,
)

PRECISE = ("mip", "primal", "dual")
PRECISION = 1e-9
"""HiGHS takes solutions this close for equal, and what is worth less for nothing, whatever the gap:
by default 1e-6, with which a bound does not hold where values are of very different size."""


def solve_form(form: LinearForm, effort: Effort, start: Floats | None = None) -> Outcome:
    """Solve a model given as arrays."""
    deadline, gap = effort.deadline, effort.gap
    left_s = effort.left_s
    if left_s <= 0:
        return too_late(form)
    began = deadline.elapsed()
    highs = highs_of(form)
    _set(highs, mip_rel_gap=gap, mip_abs_gap=0.0, random_seed=effort.seed % 2**31)
    _set(highs, **{f"{what}_feasibility_tolerance": PRECISION for what in PRECISE})
    if np.isfinite(left_s):
        _set(highs, time_limit=left_s)
    known = known_start(form, start)
    if start is not None and known is not None:
        highs.setSolution(len(known), known.astype(np.int32), start[known])
    incumbents: list[tuple[float, float]] = []

    def improved(event: Any) -> None:
        worth = float(event.data_out.objective_function_value)
        better = worth if form.maximize else -worth
        if not incumbents or better > (incumbents[-1][1] if form.maximize else -incumbents[-1][1]):
            incumbents.append((deadline.elapsed(), worth))

    highs.cbMipImprovingSolution += improved
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        # Presolve cannot tell which; the simplex method can.
        _set(highs, presolve="off")
        highs.run()
    outcome = _read(form, highs, tuple(incumbents), deadline.elapsed() - began)
    highs.disableCallbacks()  # they hold the solver, and it holds them
    return outcome


def highs_of(
    form: LinearForm, *, relaxed: bool = False, names: tuple[list[str], list[str]] | None = None
) -> Any:
    """Return a silent HiGHS that holds the model."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(form.cost), len(form.row_lower)
    lp.sense_ = highspy.ObjSense.kMaximize if form.maximize else highspy.ObjSense.kMinimize
    lp.col_cost_, lp.offset_ = form.cost, form.offset
    lp.col_lower_, lp.col_upper_ = form.lower, form.upper
    lp.row_lower_, lp.row_upper_ = form.row_lower, form.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = form.start, form.index
    lp.a_matrix_.value_ = form.value
    if not relaxed and form.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[i] for i in form.integer.astype(int).tolist()]
    if names is not None:
        lp.col_names_, lp.row_names_ = names
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    _set(highs, output_flag=False, threads=1)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise InputError("model", "numbers that HiGHS refuses", "finite coefficients")
    return highs


def _set(highs: Any, **options: Any) -> None:
    """Set options; a name that HiGHS does not know is our defect."""
    for name, given in options.items():
        if highs.setOptionValue(name, given) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS refuses {name} = {given!r}")


_STOP = {
    highspy.HighsModelStatus.kOptimal: StopReason.COMPLETE,
    highspy.HighsModelStatus.kModelEmpty: StopReason.COMPLETE,
    highspy.HighsModelStatus.kTimeLimit: StopReason.TIME_LIMIT,
    highspy.HighsModelStatus.kSolutionLimit: StopReason.NODE_LIMIT,
    highspy.HighsModelStatus.kInfeasible: StopReason.INFEASIBLE,
}


def _read(
    form: LinearForm, highs: Any, incumbents: tuple[tuple[float, float], ...], solve_s: float
) -> Outcome:
    """Translate what HiGHS has."""
    status, info = highs.getModelStatus(), highs.getInfo()
    message = highs.modelStatusToString(status)
    stop = _STOP.get(status, StopReason.ERROR)
    feasible = info.primal_solution_status == highspy.kSolutionStatusFeasible
    if stop is StopReason.INFEASIBLE or stop is StopReason.ERROR:
        return nothing(form, stop, message, solve_s)
    is_mip = bool(form.integer.any())
    x = objective = bound = None
    if feasible or not len(form.cost):
        x = np.array(highs.getSolution().col_value, dtype=float)
        x[form.integer] = np.round(x[form.integer])
        objective = form.objective(x)
    if is_mip and np.isfinite(info.mip_dual_bound):
        bound = float(info.mip_dual_bound)
    elif stop is StopReason.COMPLETE:
        bound = objective
    if stop is StopReason.COMPLETE and is_mip and info.mip_gap > PROOF_GAP:
        stop = StopReason.GAP
    return found(
        form,
        stop,
        x,
        bound,
        message=message,
        solve_s=solve_s,
        nodes=max(0, int(info.mip_node_count)),
        incumbents=incumbents,
    )


def solve(
    model: Any,
    *,
    deadline: Deadline | float | None = None,
    gap: float = 1e-4,
    seed: int = 0,
    reserve_s: float = 0.0,
) -> Outcome:
    """Solve a Pyomo model and load the solution into its variables.

    Values that the variables have beforehand are the warm start, if all integer ones have one.
    Without a solution they are left as they are. The same model, seed and start give the same
    solution, unless the clock cut the search. InputError if the model is not linear.

    Parameters
    ----------
    deadline
        Seconds until the return, or a `Deadline` that has begun before; None: no limit.
    gap
        Relative gap between solution and bound at which to stop.
    reserve_s
        Seconds that must be left when HiGHS returns.
    """
    until = Deadline.of(deadline)
    return solved(
        model, solve_form, Effort(deadline=until, gap=gap, seed=seed, reserve_s=reserve_s)
    )
