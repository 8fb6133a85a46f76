"""Any Pyomo model through SCIP (PySCIPOpt), as through HiGHS.

SCIP gets the arrays of a model (`LinearForm`). Pyomo's own interface to it makes the objective a
constraint, does not count building as time, and redirects the process's output.
"""

from typing import Any

import numpy as np
import pyscipopt
from pyscipopt.scip import PY_SCIP_EVENTTYPE, PY_SCIP_PARAMSETTING

from ronda.formulations.clock import Deadline
from ronda.instances.arrays import Floats
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

_STOP = {
    "optimal": StopReason.COMPLETE,
    "gaplimit": StopReason.COMPLETE,
    "timelimit": StopReason.TIME_LIMIT,
    "infeasible": StopReason.INFEASIBLE,
}


class _Incumbents(pyscipopt.Eventhdlr):
    """Notes when each better solution was found, and what it is worth."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.found: list[tuple[float, float]] = []

    def eventinit(self) -> None:
        """Ask for the event."""
        self.model.catchEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

    def eventexec(self, event: Any) -> None:
        """Note a solution."""
        worth = self.model.getSolObjVal(self.model.getBestSol())
        self.found.append((self.deadline.elapsed(), float(worth)))


def solve_form(form: LinearForm, effort: Effort, start: Floats | None = None) -> Outcome:
    """Solve a model given as arrays."""
    deadline, gap = effort.deadline, effort.gap
    began = deadline.elapsed()
    scip, variables = _model_of(form)
    scip.setParams(
        {
            "limits/gap": gap,
            "lp/threads": 1,
            "misc/catchctrlc": True,
            "randomization/randomseedshift": effort.seed % 2**31,
        }
    )
    if gap < 1e-6:
        scip.setParam("numerics/feastol", 1e-9)
    known = known_start(form, start)
    if start is not None and known is not None:
        first = scip.createPartialSol()
        for k in known.tolist():
            scip.setSolVal(first, variables[k], start[k])
        scip.addSol(first)
    seen = _Incumbents(deadline)
    scip.includeEventhdlr(seen, "incumbents", "notes when solutions are found")
    left_s = effort.left_s
    if left_s <= 0:
        return too_late(form)
    if np.isfinite(left_s):
        scip.setParam("limits/time", left_s)
    scip.optimize()
    if scip.getStatus() == "userinterrupt":
        raise KeyboardInterrupt  # SCIP has taken the signal
    if scip.getStatus() == "inforunbd":  # presolve cannot tell which
        scip.freeTransform()
        scip.setPresolve(PY_SCIP_PARAMSETTING.OFF)
        scip.optimize()
    return _read(form, scip, variables, tuple(seen.found), deadline.elapsed() - began)


def _model_of(form: LinearForm) -> tuple[Any, list[Any]]:
    """Return a silent SCIP that holds the model, and its variables."""
    scip = pyscipopt.Model()
    scip.hideOutput()
    kinds = np.where(form.integer, "I", "C")
    kinds[form.integer & (form.lower == 0) & (form.upper == 1)] = "B"
    columns = zip(kinds, form.lower.tolist(), form.upper.tolist(), form.cost.tolist(), strict=True)
    variables = [
        scip.addVar(vtype=str(kind), lb=_end(lower), ub=_end(upper), obj=cost)
        for kind, lower, upper, cost in columns
    ]
    ends = zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
    for i, (lower, upper) in enumerate(ends):
        own = slice(form.start[i], form.start[i + 1])
        entries = zip(form.value[own].tolist(), form.index[own].tolist(), strict=True)
        body = pyscipopt.quicksum(number * variables[k] for number, k in entries)
        scip.addCons(pyscipopt.ExprCons(body, _end(lower), _end(upper)))
    scip.addObjoffset(form.offset)
    if form.maximize:
        scip.setMaximize()
    return scip, variables


def _end(limit: float) -> float | None:
    """Return a limit as SCIP has it: None for none."""
    return limit if np.isfinite(limit) else None


def _read(
    form: LinearForm,
    scip: Any,
    variables: list[Any],
    incumbents: tuple[tuple[float, float], ...],
    solve_s: float,
) -> Outcome:
    """Translate what SCIP has."""
    message = f"{scip.getStatus()} (SCIP {scip.version()})"
    stop = _STOP.get(scip.getStatus(), StopReason.ERROR)
    if stop in (StopReason.INFEASIBLE, StopReason.ERROR):
        return nothing(form, stop, message, solve_s)
    x = bound = None
    if scip.getNSols() > 0:
        best = scip.getBestSol()
        x = np.array([scip.getSolVal(best, each) for each in variables], dtype=float)
        x[form.integer] = np.round(x[form.integer])
    if not scip.isInfinity(abs(scip.getDualbound())):
        bound = float(scip.getDualbound())
    if stop is StopReason.COMPLETE and form.integer.any() and scip.getGap() > PROOF_GAP:
        stop = StopReason.GAP
    return found(
        form,
        stop,
        x,
        bound,
        message=message,
        solve_s=solve_s,
        nodes=int(scip.getNTotalNodes()),
        incumbents=incumbents,
    )


def solve(model: Any, **effort: Any) -> Outcome:
    """Solve a Pyomo model and load the solution; as `ronda.solvers.exact.highs.solve`."""
    return solved(model, solve_form, Effort(**effort))
