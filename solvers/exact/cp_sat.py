"""The solution of a model by OR-Tools' CP-SAT, in whole numbers.

CP-SAT knows only integers. A row of whole numbers stays unchanged. Any other row is multiplied by a
power of two s and rounded so that no solution of the model is cut off:

    sum round(s a_k) x_k <= floor(s b + slack),   slack = sum |round(s a_k) - s a_k| max |x_k|

A solution may exceed the row by at most 2 slack / s. The factor s keeps `BITS` bits of the largest
number, or fewer if sums would need more than `MOST` bits. The objective is rounded in the same way.
The objective of a solution is computed from the original numbers, and the bound holds for them:

    (CP-SAT's bound + sum |round(s c_k) - s c_k| max |x_k|) / s + offset

CP-SAT 9.15 runs without its presolve. With presolve it has reported solutions as optimal that were
5 % short of the optimum. Without presolve the models of rounds take half the time.

Continuous variables are on a grid of `GRID` steps. Rows may be exceeded by one step of each, and
the bound is weaker by the same amount. HiGHS then finds their best values for the integers of
CP-SAT.
"""

import importlib
import os
import sys
from dataclasses import replace
from math import ceil, floor, isfinite, log2
from types import ModuleType
from typing import Any

import numpy as np

from ronda.instances.base import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.instances.violation import ROUNDING
from ronda.solvers.exact.backends import LOG
from ronda.solvers.exact.linear_form import (
    Effort,
    LinearForm,
    Outcome,
    found,
    known_start,
    proof,
    too_late,
)
from ronda.solvers.versions import versions

BITS, MOST = 32, 45
"""The bits of the largest number in a row, and of the largest sum. Numbers of a model have 30 bits.
With sums of 2^48 CP-SAT 9.15 has reported a solution as optimal that was not."""

GRID = 2**20
"""The number of steps of a continuous variable."""

FAR = 2.0**62
"""The size above which a limit of a row counts as infinite."""


def _cp_model() -> ModuleType:
    """Import CP-SAT's module after HiGHS's.

    Both wheels contain different versions of a library ``libhighs.so.1``, and a process loads only
    one. HiGHS calls the library, so its own version is loaded first. CP-SAT does not call it, so
    its symbols are looked up lazily.
    """
    importlib.import_module("highspy")
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags & ~os.RTLD_NOW | os.RTLD_LAZY)
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise InputError("cp-sat", str(error), "OR-Tools that can be loaded") from error
    finally:
        sys.setdlopenflags(flags)
    return cp_model


RONDAS = ("relative_gap_limit", "random_seed", "max_time_in_seconds", "catch_sigint_signal")
"""The parameters that ronda sets."""


def defaults() -> dict[str, Any]:
    """Return the parameters that users may set, with their defaults; enumerations are names."""
    parameters = _cp_model().CpSolver().parameters
    kind = type(parameters)
    names = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
    found = {name: getattr(parameters, name) for name in names if name not in RONDAS}
    told = {name: getattr(value, "name", value) for name, value in found.items()}
    return {
        name: value for name, value in told.items() if isinstance(value, bool | int | float | str)
    }


def takes(name: str, value: Any) -> bool:
    """Return whether CP-SAT takes a value, of the right type, for a parameter."""
    parameters = _cp_model().CpSolver().parameters
    try:
        setattr(parameters, name, _told(parameters, value))
    except (TypeError, ValueError):
        return False
    return True


def _told(parameters: Any, value: Any) -> Any:
    """Return a value for CP-SAT; the name of a member of an enumeration becomes the member."""
    return getattr(parameters, value, value) if isinstance(value, str) else value


def solve_form(form: LinearForm, effort: Effort, start: Floats | None = None) -> Outcome:
    """Solve a model as `highs.solve_form` does; raise InputError for a variable without bounds."""
    cp_model = _cp_model()
    clock = effort.deadline
    began = clock.elapsed()
    whole = _Whole(form)
    model, factor, error = whole.model(cp_model)
    known = known_start(form, start)
    if start is not None and known is not None:
        model.proto.solution_hint.vars.extend(known.tolist())
        model.proto.solution_hint.values.extend(whole.steps(np.nan_to_num(start))[known].tolist())
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.catch_sigint_signal = 1, False
    parameters.cp_model_presolve = False
    parameters.relative_gap_limit, parameters.random_seed = effort.gap, effort.seed % 2**31
    for name, value in effort.options.items():
        setattr(parameters, name, _told(parameters, value))
    if log := LOG.get():
        parameters.log_search_progress, parameters.log_to_stdout = True, False
        solver.log_callback = lambda line: log.write(f"{line}\n")
    left_s = effort.left_s
    if left_s <= 0:
        return too_late(form)
    if np.isfinite(left_s):
        parameters.max_time_in_seconds = left_s
    incumbents: list[tuple[float, float]] = []

    class Seen(cp_model.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
        """A callback that records the time and the objective of each better solution."""

        def on_solution_callback(self) -> None:
            """Record a solution."""
            worth = self.objective_value / factor + whole.offset
            incumbents.append((clock.elapsed(), worth))

    status = solver.solve(model, Seen())
    message = f"{solver.status_name(status)} (CP-SAT {versions()['ortools']})"
    solve_s = clock.elapsed() - began
    if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
        invalid = status == cp_model.MODEL_INVALID
        stop = StopReason.ERROR if invalid else StopReason.INFEASIBLE
        return found(form, stop, message=message, solve_s=solve_s)
    x = bound = None
    stop = StopReason.COMPLETE if status == cp_model.OPTIMAL else StopReason.TIME_LIMIT
    if status != cp_model.UNKNOWN:  # otherwise its bound may be 0 for any model
        x = _off_the_grid(form, whole.point(np.array(solver.response_proto.solution, dtype=float)))
        side = 1.0 if form.maximize else -1.0
        bound = (solver.best_objective_bound + side * error) / factor + whole.offset
        if x is not None:
            bound, met = proof(form, form.objective(x), bound)
            stop = met if stop is StopReason.COMPLETE else stop
    return found(
        form,
        stop,
        x,
        bound,
        message=message,
        solve_s=solve_s,
        nodes=int(solver.num_branches),
        incumbents=tuple(incumbents),
    )


def _off_the_grid(form: LinearForm, x: Floats) -> Floats | None:
    """Return a point with the best continuous values for its integers, or None."""
    if form.integer.all():
        return x
    from ronda.solvers.exact.highs import solve_form as solved

    least, most = (np.where(form.integer, x, bound) for bound in (form.lower, form.upper))
    linear = replace(form, lower=least, upper=most, integer=np.zeros_like(form.integer))
    return solved(linear, Effort()).x


class _Whole:
    """A linear form in whole numbers: variables, rows and the objective."""

    def __init__(self, form: LinearForm) -> None:
        self.form = form
        if not np.isfinite(form.lower).all() or not np.isfinite(form.upper).all():
            k = int(np.argmin(np.isfinite(form.lower) & np.isfinite(form.upper)))
            raise InputError("cp-sat", f"{form.columns[k]} without bounds", "finite bounds")
        self.step = np.where(form.integer, 1.0, (form.upper - form.lower) / GRID)
        self.step[self.step == 0] = 1.0
        self.base = np.where(form.integer, 0.0, form.lower)
        self.low, self.high = self.steps(form.lower), self.steps(form.upper)
        self.size = np.maximum(np.abs(self.low), np.abs(self.high)).astype(float)
        self.offset = form.offset + float(form.cost @ self.base)

    def steps(self, x: Floats) -> Any:
        """Return values as whole numbers of steps, shape (n,)."""
        return np.rint((x - self.base) / self.step).astype(np.int64)

    def point(self, steps: Floats) -> Floats:
        """Return the values of whole numbers of steps, shape (n,)."""
        return np.asarray(self.base + self.step * steps)

    def model(self, cp_model: Any) -> tuple[Any, float, float]:
        """Return CP-SAT's model, and the factor and rounding error of its objective."""
        form, model = self.form, cp_model.CpModel()
        for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True):
            model.proto.variables.add().domain.extend([low, high])
        for i in range(len(form.rows)):
            own = slice(form.start[i], form.start[i + 1])
            columns = form.index[own]
            numbers, factor, slack = self._rounded(form.value[own], columns)
            shift = float(form.value[own] @ self.base[columns])
            lower, upper = form.row_lower[i] - shift, form.row_upper[i] - shift
            largest = float(np.abs(form.value[own]).max(initial=0.0))
            low, high = (
                limit + side * ROUNDING * max(largest, abs(limit)) if isfinite(limit) else limit
                for limit, side in ((lower, -1.0), (upper, 1.0))
            )
            low, high = np.clip((low * factor - slack, high * factor + slack), -FAR, FAR)
            least, most = ceil(low), floor(high)
            if least > most:  # no whole number in between: add 0 = 1
                columns, numbers, least, most = columns[:0], numbers[:0], 1, 1
            row = model.proto.constraints.add().linear
            row.vars.extend(columns.tolist())
            row.coeffs.extend(numbers.tolist())
            row.domain.extend([least, most])
        worthy = np.flatnonzero(form.cost)
        numbers, factor, error = self._rounded(form.cost[worthy], worthy)
        variables = [model.get_int_var_from_proto_index(int(k)) for k in worthy]
        worth = cp_model.LinearExpr.weighted_sum(variables, numbers.tolist())
        (model.maximize if form.maximize else model.minimize)(worth)
        return model, factor, error

    def _rounded(self, numbers: Floats, columns: Any) -> tuple[Any, float, float]:
        """Return rounded multiples of the columns' numbers, the factor, and the possible error.

        The error allows one step for each variable on a grid.
        """
        exact = numbers * self.step[columns]
        loose: Mask = ~self.form.integer[columns]
        factor = 1.0
        largest = float(np.abs(exact).max(initial=0.0))
        total = max(largest, float(np.abs(exact) @ self.size[columns]))
        if (exact != np.rint(exact)).any() or total > 2.0**MOST:
            factor = 2.0 ** min(BITS - ceil(log2(largest)), MOST - ceil(log2(total)))
        rounded = np.rint(exact * factor)
        error = float(np.abs(rounded - exact * factor) @ self.size[columns])
        error += float(np.abs(exact[loose]).sum()) * factor
        return rounded.astype(np.int64), factor, error
