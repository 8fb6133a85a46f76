"""The solution of a model by HiGHS, with a start and a deadline.

HiGHS gets the arrays directly, because Pyomo's own interface has no incumbent callback and
redirects the process's output. HiGHS runs in threads of its own (`ronda.solvers.exact.threads`).
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import highspy
import numpy as np

from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.exact.backends import LOG
from ronda.solvers.exact.linear_form import (
    PROOF_GAP,
    Effort,
    LinearForm,
    Outcome,
    found,
    known_start,
    too_late,
)
from ronda.solvers.exact.threads import Answer, SolverError, apart

PRECISE = ("mip", "primal", "dual")
PRECISION = 1e-9
"""The difference below which HiGHS treats solutions as equal, whatever the gap. With its default of
1e-6 a bound does not hold if values differ greatly in size."""


QUIET = {"output_flag": False, "threads": 1, "mip_heuristic_run_rins": False}
"""The options of HiGHS. HiGHS 1.15.1 has crashed in its search around the relaxation (RINS), even
with one thread. Without RINS, rounds of 64 to 256 jobs have the same plans in 13 % less time."""


class _Silent(highspy.Highs):
    """A HiGHS that prints nothing; version 1.16 prints its name when callbacks are enabled."""

    def enableCallbacks(self) -> None:  # noqa: N802
        """Enable callbacks without printing."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def silent(**options: Any) -> highspy.Highs:
    """Return a HiGHS on one thread that prints nothing, with options by their HiGHS names."""
    solver = _Silent()  # type: ignore[no-untyped-call]
    for name, value in (QUIET | options).items():
        if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS refuses {name} = {value!r}")
    return solver


def run(
    solver: highspy.Highs,
    seconds: float,
    call: Callable[[], highspy.HighsStatus] | None = None,
    patience_s: float = inf,
) -> highspy.HighsModelStatus:
    """Run HiGHS, or a call of it, for at most some seconds; return the model status.

    Raises SolverError if HiGHS failed, and TimeoutError if it has not returned after `patience_s`.
    In that case it runs until it reads its clock, and must not be used any more.
    """
    # HiGHS adds up the time of all runs.
    solver.setOptionValue("time_limit", solver.getRunTime() + max(seconds, 0.0))
    if alone(solver, call or solver.run, patience_s) == highspy.HighsStatus.kError:
        words = solver.modelStatusToString(solver.getModelStatus())
        raise SolverError(f"HiGHS {solver.version()} failed; of the model it says {words!r}")
    return solver.getModelStatus()


def alone(solver: highspy.Highs, call: Callable[[], Answer], patience_s: float = inf) -> Answer:
    """Return the result of a call to HiGHS in a separate thread."""
    stop = partial(solver.setOptionValue, "time_limit", 0.0)  # HiGHS reads the limit repeatedly
    return apart(call, stop, int(solver.getOptionValue("threads")[1]), patience_s)


def solve_form(form: LinearForm, effort: Effort, start: Floats | None = None) -> Outcome:
    """Solve a model, starting from values of the columns, shape (n,), with NaN if unknown.

    A start with an unknown integer is ignored.
    """
    deadline, gap = effort.deadline, effort.gap
    if effort.left_s <= 0:
        return too_late(form)
    began = deadline.elapsed()
    precise = {f"{what}_feasibility_tolerance": PRECISION for what in PRECISE}
    seed, told = effort.seed % 2**31, precise | dict(effort.options)
    highs = highs_of(form, mip_rel_gap=gap, mip_abs_gap=0.0, random_seed=seed, **told)
    hearers = [log] if (log := LOG.get()) else []
    if hearers:
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("output_flag", True)
        highs.cbLogging += lambda event: [one.write(event.message) for one in hearers]
    known = known_start(form, start)
    if start is not None and known is not None:
        highs.setSolution(len(known), known.astype(np.int32), start[known])
    incumbents: list[tuple[float, float]] = []
    newest: Floats | None = None

    def improved(event: Any) -> None:
        nonlocal newest
        worth = float(event.data_out.objective_function_value)
        better = worth if form.maximize else -worth
        if not incumbents or better > (incumbents[-1][1] if form.maximize else -incumbents[-1][1]):
            incumbents.append((deadline.elapsed(), worth))
            newest = np.array(event.data_out.mip_solution)

    def search() -> highspy.HighsStatus:
        try:
            status: highspy.HighsStatus = highs.run()
            if highs.getModelStatus() == highspy.HighsModelStatus.kUnboundedOrInfeasible:
                # Presolve cannot tell the two apart; the simplex method can.
                highs.setOptionValue("presolve", "off")
                status = highs.run()
        finally:
            highs.disableCallbacks()  # callbacks and solver refer to each other
        return status

    highs.cbMipImprovingSolution += improved
    try:
        run(highs, effort.left_s, search, effort.patience_s)
    except TimeoutError:
        hearers.clear()  # stop writing to the caller's log
        if newest is not None:
            newest[form.integer] = np.round(newest[form.integer])
        stop, message = StopReason.TIME_LIMIT, "HiGHS did not look at its clock in time"
        solve_s, trace = deadline.elapsed() - began, tuple(incumbents)
        return found(form, stop, newest, message=message, solve_s=solve_s, incumbents=trace)
    return _read(form, highs, tuple(incumbents), deadline.elapsed() - began)


RONDAS = (
    "mip_rel_gap",
    "mip_abs_gap",
    "random_seed",
    "time_limit",
    "output_flag",
    "log_to_console",
)
"""The options that ronda sets."""


def defaults() -> dict[str, Any]:
    """Return the options that users may set, with their defaults."""
    solver = silent()
    names = [name for name in dir(highspy.HighsOptions) if not name.startswith("_")]
    return {name: solver.getOptionValue(name)[1] for name in names if name not in RONDAS}


def takes(name: str, value: Any) -> bool:
    """Return whether HiGHS takes a value, of the right type, for an option."""
    return bool(silent().setOptionValue(name, value) == highspy.HighsStatus.kOk)


def highs_of(
    form: LinearForm,
    *,
    relaxed: bool = False,
    names: tuple[list[str], list[str]] | None = None,
    **options: Any,
) -> Any:
    """Return a silent HiGHS that holds the model, with options by their HiGHS names."""
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
    highs = silent(**options)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise InputError("model", "numbers that HiGHS refuses", "finite coefficients")
    return highs


_STOP = {
    highspy.HighsModelStatus.kOptimal: StopReason.COMPLETE,
    highspy.HighsModelStatus.kModelEmpty: StopReason.COMPLETE,
    highspy.HighsModelStatus.kTimeLimit: StopReason.TIME_LIMIT,
    highspy.HighsModelStatus.kSolutionLimit: StopReason.NODE_LIMIT,
    highspy.HighsModelStatus.kInfeasible: StopReason.INFEASIBLE,
}


def reduced_costs(form: LinearForm, effort: Effort) -> tuple[float, Floats]:
    """Return the optimum of a minimisation's relaxation, and the reduced cost of each column (n,).

    Any solution in which a column is 1 more than 0 costs at least the sum of the two. Without an
    optimum in time, all are 0, or minus infinity for the first.
    """
    highs = highs_of(dataclasses.replace(form, integer=np.zeros_like(form.integer)))
    if effort.left_s <= 0 or run(highs, effort.left_s) != highspy.HighsModelStatus.kOptimal:
        return -inf, np.zeros(len(form.cost))
    optimum = float(highs.getInfo().objective_function_value)
    return optimum, np.array(highs.getSolution().col_dual, dtype=float)


def _read(
    form: LinearForm, highs: Any, incumbents: tuple[tuple[float, float], ...], solve_s: float
) -> Outcome:
    status, info = highs.getModelStatus(), highs.getInfo()
    message = highs.modelStatusToString(status)
    stop = _STOP.get(status, StopReason.ERROR)
    feasible = info.primal_solution_status == highspy.kSolutionStatusFeasible
    if stop is StopReason.INFEASIBLE or stop is StopReason.ERROR:
        return found(form, stop, message=message, solve_s=solve_s)
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
