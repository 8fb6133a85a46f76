"""The solution of a model with bounds through Pyomo's own interface to a solver.

The interface reports neither the times of solutions nor the size of the search tree, and takes no
start. Pyomo translates the model after the limit is set, so a large model is late. Pyomo kills a
program that does not stop within a second of the limit.
"""

import logging
import subprocess
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from io import TextIOBase
from math import floor, isfinite
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.tee import capture_output
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.opt import TerminationCondition

from ronda.instances.base import Floats
from ronda.instances.plan import StopReason
from ronda.solvers.exact.backends import LOG
from ronda.solvers.exact.linear_form import (
    Effort,
    LinearForm,
    Outcome,
    found,
    proof,
    too_late,
)


@dataclass(frozen=True, slots=True)
class Options:
    """A solver's names for gap, seed and threads, and its peculiarities."""

    gap: str
    seed: str
    threads: str = ""
    whole: bool = False  # its time limit is in whole seconds
    early: float = 0.0  # it may exceed its limit by this share of it
    bounds: bool = True  # it reports a bound before the search is over


OPTIONS = {
    "scip_direct": Options("limits/gap", "randomization/randomseedshift", "lp/threads"),
    # After a time limit, Pyomo 6.10 gives the bound of a maximum the wrong sign.
    "cbc": Options("ratioGap", "randomCbcSeed", "threads", early=0.2, bounds=False),
    "gurobi_direct": Options("MIPGap", "Seed", "Threads"),
    "cplex_direct": Options("mip_tolerances_mipgap", "randomseed", "threads"),
    "glpk": Options("mipgap", "seed", whole=True),
}
"""The options, keyed by Pyomo's name for the interface."""

_STOP = {
    TerminationCondition.optimal: StopReason.COMPLETE,
    TerminationCondition.maxTimeLimit: StopReason.TIME_LIMIT,
    TerminationCondition.feasible: StopReason.TIME_LIMIT,
    TerminationCondition.infeasible: StopReason.INFEASIBLE,
    TerminationCondition.infeasibleOrUnbounded: StopReason.INFEASIBLE,
}


class _Passed(TextIOBase):
    """A log without a file number, which Pyomo would confuse with its captured output."""

    def __init__(self, log: Any) -> None:
        self.log = log

    def write(self, text: str) -> int:
        """Write a piece of text at once."""
        self.log.write(text)
        self.log.flush()
        return len(text)


def defaults(through: str, program: str | None = None) -> dict[str, Any]:
    """Return the SCIP parameters that users may set, with their defaults."""
    if through != "scip_direct":
        return {}
    from pyscipopt import Model

    rondas = (OPTIONS[through].gap, OPTIONS[through].seed, "limits/time")
    return {name: each for name, each in Model().getParams().items() if name not in rondas}


_REFUSALS = ("No match for", "Possible options", "is illegal", "valid range")
"""The words with which CBC refuses an unknown option or an impossible value."""


def takes(name: str, value: Any, through: str, program: str | None = None) -> bool:
    """Return whether SCIP or CBC takes a value of an option; other solvers are not checked."""
    if program is not None:
        words = [program, f"-{name}", str(value), "-stop"]
        said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        return not any(refusal in said for refusal in _REFUSALS)
    if through != "scip_direct":
        return True
    from pyscipopt import Model

    try:
        with capture_output(capture_fd=True):  # SCIP prints its refusals
            Model().setParam(name, value)
    except ValueError:
        return False
    return True


def solve_form(
    form: LinearForm,
    effort: Effort,
    start: Floats | None = None,
    *,
    through: str,
    program: str | None = None,
) -> Outcome:
    """Solve a model as `ronda.solvers.exact.highs.solve_form` does, but without a start.

    `through` is Pyomo's name for the interface, and `program` is the path of the program that it
    calls.
    """
    deadline, began, named = effort.deadline, effort.deadline.elapsed(), OPTIONS[through]
    model = _model(form)
    solver = pyo.SolverFactory(through, **({"executable": program} if program else {}))
    left_s = effort.left_s * (1.0 - named.early)
    if named.whole and isfinite(left_s):
        left_s = floor(left_s)
    if left_s <= 0:
        return too_late(form)
    solver.options[named.gap], solver.options[named.seed] = effort.gap, effort.seed % 2**31
    if named.threads:
        solver.options[named.threads] = 1
    if through == "cbc":
        solver.options["preprocess"] = "off"
    solver.options.update(effort.options)
    limit = {"timelimit": left_s} if isfinite(left_s) else {}
    asked = LOG.get()
    log = None if asked is None else _Passed(asked)
    try:
        with redirect_stdout(log) if log else nullcontext():
            told = solver.solve(model, load_solutions=False, tee=log is not None, **limit)
    except subprocess.TimeoutExpired:
        message = f"did not stop in time (Pyomo's {through})"
        stop = StopReason.TIME_LIMIT
        return found(form, stop, message=message, solve_s=deadline.elapsed() - began)
    ended = told.solver.termination_condition
    if ended in (TerminationCondition.userInterrupt, TerminationCondition.resourceInterrupt):
        raise KeyboardInterrupt  # the solver has caught the signal
    message, stop = f"{ended} (Pyomo's {through})", _STOP.get(ended, StopReason.ERROR)
    if stop in (StopReason.INFEASIBLE, StopReason.ERROR):
        return found(form, stop, message=message, solve_s=deadline.elapsed() - began)
    x, bound = _point(model, form, told), _bound(form, told) if named.bounds else None
    if stop is StopReason.COMPLETE and x is not None:
        worth = form.objective(x)
        if not named.bounds:
            short = effort.gap / (1 - effort.gap) * abs(worth)
            bound = worth + short if form.maximize else worth - short
        if bound is not None:
            bound, stop = proof(form, worth, bound)
    return found(form, stop, x, bound, message=message, solve_s=deadline.elapsed() - began)


def _model(form: LinearForm) -> Any:
    """Return the model in Pyomo; an empty sum contains a variable fixed to 0."""
    # The garbage collector would visit all new expressions repeatedly, 5 to 15 times as slow.
    with PauseGC():
        model = pyo.ConcreteModel()
        model.x, model.nothing = pyo.Var(range(len(form.cost))), pyo.Var(bounds=(0, 0))
        x = list(model.x.values())
        domains = zip(x, form.lower.tolist(), form.upper.tolist(), form.integer, strict=True)
        for each, low, high, whole in domains:
            each.domain, each.bounds = pyo.Integers if whole else pyo.Reals, (low, high)

        def total(columns: Any, numbers: Floats) -> Any:
            own = [x[k] for k in columns.tolist()] or [model.nothing]
            return LinearExpression(linear_coefs=numbers.tolist() or [1.0], linear_vars=own)

        model.rows = pyo.Constraint(range(len(form.rows)))
        limits = zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
        for i, (low, high) in enumerate(limits):
            part = slice(form.start[i], form.start[i + 1])
            model.rows[i] = (low, total(form.index[part], form.value[part]), high)
        worthy = np.flatnonzero(form.cost)
        worth = total(worthy, form.cost[worthy]) + form.offset
        sense = pyo.maximize if form.maximize else pyo.minimize
        model.worth = pyo.Objective(expr=worth, sense=sense)
    return model


def _point(model: Any, form: LinearForm, told: Any) -> Floats | None:
    """Return the solution (n,) or None; variables without a value get the one nearest to 0."""
    if not len(told.solution):
        return None
    warnings, level = logging.getLogger("pyomo.core"), logging.getLogger("pyomo.core").level
    warnings.setLevel(logging.ERROR)  # it warns about solutions that are not optimal
    try:
        model.solutions.load_from(told)
    finally:
        warnings.setLevel(level)
    values = [each.value for each in model.x.values()]
    if values and all(value is None for value in values):
        return None
    x = np.array([np.nan if value is None else value for value in values], dtype=float)
    x = np.where(np.isnan(x), np.clip(0.0, form.lower, form.upper), x)
    return np.where(form.integer, np.round(x), x)


def _bound(form: LinearForm, told: Any) -> float | None:
    bound = told.problem.upper_bound if form.maximize else told.problem.lower_bound
    return float(bound) if isinstance(bound, float | int) and isfinite(bound) else None
