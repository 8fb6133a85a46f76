"""Any bounded Pyomo model through Pyomo's own interface to a solver.

It tells neither when solutions were found nor the size of the search tree, and is given no start.
Pyomo translates the model after the limit was set, so a large one comes late, and it stops a
program that does not stop by itself a second after that.
"""

import logging
from dataclasses import dataclass
from math import floor, isfinite
from subprocess import TimeoutExpired
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.opt import TerminationCondition

from ronda.instances.plan import StopReason
from ronda.solvers.exact.form import (
    Effort,
    LinearForm,
    Outcome,
    found,
    linear_form,
    nothing,
    proof,
    too_late,
)


@dataclass(frozen=True, slots=True)
class Options:
    """How a solver calls its relative gap, its seed and its threads, and what is odd about it."""

    gap: str
    seed: str
    threads: str = ""
    whole: bool = False  # its limit is in whole seconds
    early: float = 0.0  # it looks at its clock late by up to this share of the limit
    bounds: bool = True  # it tells a bound before the search is over


OPTIONS = {
    "scip_direct": Options("limits/gap", "randomization/randomseedshift", "lp/threads"),
    # Stopped by the clock, Pyomo 6.10 gives the bound of a maximum the wrong sign.
    "cbc": Options("ratioGap", "randomCbcSeed", "threads", early=0.2, bounds=False),
    "gurobi_direct": Options("MIPGap", "Seed", "Threads"),
    "cplex_direct": Options("mip_tolerances_mipgap", "randomseed", "threads"),
    "glpk": Options("mipgap", "seed", whole=True),
}
"""By Pyomo's name of the interface."""

_STOP = {
    TerminationCondition.optimal: StopReason.COMPLETE,
    TerminationCondition.maxTimeLimit: StopReason.TIME_LIMIT,
    TerminationCondition.feasible: StopReason.TIME_LIMIT,
    TerminationCondition.infeasible: StopReason.INFEASIBLE,
    TerminationCondition.infeasibleOrUnbounded: StopReason.INFEASIBLE,
}


def solve(model: Any, *, through: str, program: str | None = None, **effort: Any) -> Outcome:
    """Solve a Pyomo model and load the solution; as `ronda.solvers.exact.highs.solve`.

    `through` is Pyomo's name of the interface, `program` what that calls if it does not know.
    """
    asked = Effort(**effort)
    deadline, began = asked.deadline, asked.deadline.elapsed()
    form, named = linear_form(model), OPTIONS[through]
    solver = pyo.SolverFactory(through, **({"executable": program} if program else {}))
    left_s = asked.left_s * (1.0 - named.early)
    if named.whole and isfinite(left_s):
        left_s = floor(left_s)
    if left_s <= 0:
        return too_late(form)
    solver.options[named.gap], solver.options[named.seed] = asked.gap, asked.seed % 2**31
    if named.threads:
        solver.options[named.threads] = 1
    limit = {"timelimit": left_s} if isfinite(left_s) else {}
    try:
        told = solver.solve(model, load_solutions=False, **limit)
    except TimeoutExpired:
        message = f"did not stop in time (Pyomo's {through})"
        return nothing(form, StopReason.TIME_LIMIT, message, deadline.elapsed() - began)
    ended = told.solver.termination_condition
    if ended in (TerminationCondition.userInterrupt, TerminationCondition.resourceInterrupt):
        raise KeyboardInterrupt  # the solver has taken the signal
    message, stop = f"{ended} (Pyomo's {through})", _STOP.get(ended, StopReason.ERROR)
    if stop in (StopReason.INFEASIBLE, StopReason.ERROR):
        return nothing(form, stop, message, deadline.elapsed() - began)
    x, bound = _loaded(model, form, told), _bound(form, told) if named.bounds else None
    if stop is StopReason.COMPLETE and x is not None:
        worth = form.objective(x)
        if not named.bounds:
            bound = worth + (1 if form.maximize else -1) * asked.gap / (1 - asked.gap) * abs(worth)
        if bound is not None:
            bound, stop = proof(form, worth, bound)
    return found(form, stop, x, bound, message=message, solve_s=deadline.elapsed() - began)


def _loaded(model: Any, form: LinearForm, told: Any) -> Any:
    """Load a solution into the model and return it as (n,); None, and nothing loaded, if none."""
    before = [each.value for each in form.columns]
    warnings, level = logging.getLogger("pyomo.core"), logging.getLogger("pyomo.core").level
    warnings.setLevel(logging.ERROR)  # it warns of a solution that is not optimal
    try:
        if len(told.solution):
            model.solutions.load_from(told)
    finally:
        warnings.setLevel(level)
    values = [each.value for each in form.columns] if len(told.solution) else [None]
    complete = not any(value is None for value in values)
    x = np.array(values, dtype=float) if complete else None
    if x is not None:
        x[form.integer] = np.round(x[form.integer])
    for variable, value in zip(form.columns, before if x is None else x.tolist(), strict=True):
        variable.set_value(value, skip_validation=True)
    return x


def _bound(form: LinearForm, told: Any) -> float | None:
    """Return the bound that the solver told; None if it told none."""
    bound = told.problem.upper_bound if form.maximize else told.problem.lower_bound
    return float(bound) if isinstance(bound, float | int) and isfinite(bound) else None
