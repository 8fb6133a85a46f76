"""Any Pyomo model through Pyomo's own interface to a solver.

It tells neither when solutions were found nor the size of the search tree, and is given no start.
Pyomo translates the model after the limit was set, so a large one comes late.
"""

import logging
from dataclasses import dataclass
from math import floor, isfinite
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.opt import TerminationCondition

from ronda.formulations.clock import Deadline
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.exact.form import PROOF_GAP, LinearForm, Outcome, linear_form, nothing


@dataclass(frozen=True, slots=True)
class Options:
    """How a solver calls its limit in seconds, its relative gap, its seed and its threads."""

    limit: str
    gap: str
    seed: str
    threads: str = ""
    whole: bool = False  # seconds


OPTIONS = {
    "gurobi_direct": Options("TimeLimit", "MIPGap", "Seed", "Threads"),
    "cplex_direct": Options("timelimit", "mip_tolerances_mipgap", "randomseed", "threads"),
    "glpk": Options("tmlim", "mipgap", "seed", whole=True),
}
"""By Pyomo's name of the interface."""

_STOP = {
    TerminationCondition.optimal: StopReason.COMPLETE,
    TerminationCondition.maxTimeLimit: StopReason.TIME_LIMIT,
    TerminationCondition.feasible: StopReason.TIME_LIMIT,
    TerminationCondition.infeasible: StopReason.INFEASIBLE,
}


def solve(
    model: Any,
    *,
    through: str,
    deadline: Deadline | None = None,
    gap: float = 1e-4,
    seed: int = 0,
    reserve_s: float = 0.0,
) -> Outcome:
    """Solve a Pyomo model and load the solution; as `ronda.solvers.exact.highs.solve`.

    `through` is Pyomo's name of the interface.
    """
    deadline = deadline or Deadline()
    began = deadline.elapsed()
    form = linear_form(model)
    named, solver = OPTIONS[through], pyo.SolverFactory(through)
    left_s = deadline.left() - reserve_s
    if named.whole and isfinite(left_s):
        left_s = floor(left_s)
    if left_s <= 0:
        return nothing(form, StopReason.TIME_LIMIT, "no time left to solve", 0.0)
    solver.options[named.gap], solver.options[named.seed] = gap, seed % 2**31
    if named.threads:
        solver.options[named.threads] = 1
    if isfinite(left_s):
        solver.options[named.limit] = left_s
    found = solver.solve(model, load_solutions=False)
    message = f"{found.solver.termination_condition} (Pyomo's {through})"
    stop = _STOP.get(found.solver.termination_condition, StopReason.ERROR)
    if stop in (StopReason.INFEASIBLE, StopReason.ERROR):
        return nothing(form, stop, message, deadline.elapsed() - began)
    x = _loaded(model, form, found)
    return _outcome(form, x, _bound(form, found), stop, message, deadline.elapsed() - began)


def _loaded(model: Any, form: LinearForm, found: Any) -> Any:
    """Load a solution into the model and return it as (n,); None, and nothing loaded, if none."""
    before = [each.value for each in form.columns]
    warnings, level = logging.getLogger("pyomo.core"), logging.getLogger("pyomo.core").level
    warnings.setLevel(logging.ERROR)  # it warns of a solution that is not optimal
    try:
        if len(found.solution):
            model.solutions.load_from(found)
    finally:
        warnings.setLevel(level)
    values = [each.value for each in form.columns] if len(found.solution) else [None]
    complete = not any(value is None for value in values)
    x = np.array(values, dtype=float) if complete else None
    if x is not None:
        x[form.integer] = np.round(x[form.integer])
    for variable, value in zip(form.columns, before if x is None else x.tolist(), strict=True):
        variable.set_value(value, skip_validation=True)
    return x


def _bound(form: LinearForm, found: Any) -> float | None:
    """Return the bound that the solver told; None if it told none."""
    told = found.problem.upper_bound if form.maximize else found.problem.lower_bound
    return float(told) if isinstance(told, float | int) and isfinite(told) else None


def _outcome(
    form: LinearForm, x: Any, bound: float | None, stop: StopReason, message: str, solve_s: float
) -> Outcome:
    objective = None if x is None else form.objective(x)
    complete = stop is StopReason.COMPLETE
    if complete and objective is not None and bound is not None:
        bound = max(bound, objective) if form.maximize else min(bound, objective)
        if abs(bound - objective) > PROOF_GAP * max(abs(bound), 1.0):
            stop = StopReason.GAP
    known = SolutionStatus.NONE if x is None else SolutionStatus.FEASIBLE
    return Outcome(
        stop=stop,
        status=SolutionStatus.OPTIMAL if complete and x is not None else known,
        x=x,
        objective=objective,
        bound=bound,
        variables=len(form.columns),
        constraints=len(form.rows),
        nodes=0,
        incumbents=(),
        message=message,
        solve_s=solve_s,
    )
