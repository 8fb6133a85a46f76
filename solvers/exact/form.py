"""A Pyomo model as arrays, which solvers get, and what a solver made of it.

The Pyomo model stays the formulation of record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.enums import maximize
from pyomo.common.errors import InvalidConstraintError, InvalidExpressionError
from pyomo.core.base.objective import Objective
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from ronda.formulations.clock import Deadline
from ronda.instances.arrays import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus, StopReason


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Max or min c'x + offset with lower ≤ Ax ≤ upper and bounds on x (n,), some x integer.

    ``columns`` and ``rows`` are the Pyomo variables and constraints in the order of the arrays.
    Row i of A has the coefficients ``value[start[i]:start[i + 1]]`` in the columns ``index[...]``.
    """

    columns: tuple[Any, ...]
    rows: tuple[Any, ...]
    maximize: bool
    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    integer: Mask
    start: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats
    row_lower: Floats
    row_upper: Floats

    def objective(self, x: Floats) -> float:
        """Return the objective of a point."""
        return float(self.cost @ x + self.offset)


def linear_form(model: Any) -> LinearForm:
    """Read a Pyomo model with linear constraints and one linear objective.

    Fixed variables count as constants. Variables that appear nowhere are left out; a constraint
    with two different limits has two rows. InputError if an expression is not linear, a variable is
    neither continuous nor integer, or there is not exactly one active objective.
    """
    goals = list(model.component_data_objects(Objective, active=True, descend_into=True))
    if len(goals) != 1:
        raise InputError(f"model {model.name}", f"{len(goals)} objectives", "exactly one")
    try:
        read = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except (InvalidConstraintError, InvalidExpressionError) as error:
        raise InputError(f"model {model.name}", str(error), "linear expressions") from error
    kinds = np.array([row.bound_type for row in read.rows], dtype=int)  # 1: ≤, -1: ≥, 0: =
    rhs, matrix = np.asarray(read.rhs, dtype=float), read.A.tocsr()
    lower, upper, integer = _domains(read.columns)
    return LinearForm(
        columns=tuple(read.columns),
        rows=tuple(row.constraint for row in read.rows),
        maximize=goals[0].sense == maximize,
        cost=read.c.toarray()[0],
        offset=float(read.c_offset[0]),
        lower=lower,
        upper=upper,
        integer=integer,
        start=matrix.indptr,
        index=matrix.indices,
        value=matrix.data,
        row_lower=np.where(kinds <= 0, rhs, -np.inf),
        row_upper=np.where(kinds >= 0, rhs, np.inf),
    )


def _domains(variables: Sequence[Any]) -> tuple[Floats, Floats, Mask]:
    """Return bounds and integrality of variables."""
    lower, upper, integer = [], [], []
    for variable in variables:
        low, high = variable.bounds
        step = variable.domain.get_interval()[2]
        if step not in (0, 1):
            raise InputError(
                f"model: {variable.name}", "a domain of other steps", "reals or integers"
            )
        lower.append(-np.inf if low is None else low)
        upper.append(np.inf if high is None else high)
        integer.append(step == 1)
    bounds = np.array(lower, dtype=float), np.array(upper, dtype=float)
    return *bounds, np.array(integer, dtype=bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to search, and how far.

    ``reserve_s`` seconds of the ``deadline`` are left on return; ``gap`` is the relative one
    between solution and bound at which to stop.
    """

    deadline: Deadline = field(default_factory=Deadline)
    gap: float = 1e-4
    seed: int = 0
    reserve_s: float = 0.0

    @property
    def left_s(self) -> float:
        """Return the seconds that a solver has from now on; infinite without a limit."""
        return self.deadline.left() - self.reserve_s


SolveForm = Callable[[LinearForm, Effort, Floats | None], "Outcome"]
"""A solver of models as arrays, from values (n,) of the columns on, NaN where there is none.

A start that lacks an integer does not count.
"""

PROOF_GAP = 1e-9
"""Gaps below this are rounding: the solution is the optimum, not one within the gap asked for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solver made of a model.

    ``x`` (n,) has exact integers and is None without a solution; ``objective`` and ``bound`` (an
    upper one when maximising) are in the model's unit, None if not known. ``nodes`` is the size of
    the branch-and-bound tree, ``incumbents`` are pairs (seconds since the deadline's entry,
    objective), ``message`` is the solver's own words and ``solve_s`` the seconds in the solver.
    """

    stop: StopReason
    status: SolutionStatus
    x: Floats | None
    objective: float | None
    bound: float | None
    variables: int
    constraints: int
    nodes: int
    incumbents: tuple[tuple[float, float], ...]
    message: str
    solve_s: float


def nothing(form: LinearForm, stop: StopReason, message: str, solve_s: float) -> Outcome:
    """Return the outcome without a solution."""
    size = len(form.columns), len(form.rows)
    return Outcome(stop, SolutionStatus.NONE, None, None, None, *size, 0, (), message, solve_s)


def too_late(form: LinearForm) -> Outcome:
    """Return the outcome of a search that has no time to begin."""
    return nothing(form, StopReason.TIME_LIMIT, "no time left to solve", 0.0)


def known_start(form: LinearForm, start: Floats | None) -> NDArray[np.int64] | None:
    """Return the columns whose values (n,) a search may start from; None if an integer has none.

    A start without all integers a solver would complete by a MILP that may take all the time.
    """
    if start is None or not np.isfinite(start[form.integer]).all():
        return None
    return np.flatnonzero(np.isfinite(start))


def proof(form: LinearForm, objective: float, bound: float) -> tuple[float, StopReason]:
    """Return the bound, no tighter than the solution, and whether a search that is over met it."""
    bound = max(bound, objective) if form.maximize else min(bound, objective)
    met = abs(bound - objective) <= PROOF_GAP * max(abs(bound), 1.0)
    return bound, StopReason.COMPLETE if met else StopReason.GAP


def found(
    form: LinearForm,
    stop: StopReason,
    x: Floats | None,
    bound: float | None,
    *,
    message: str,
    solve_s: float,
    nodes: int = 0,
    incumbents: tuple[tuple[float, float], ...] = (),
) -> Outcome:
    """Return the outcome of a search that stopped for a reason with, or without, a solution."""
    status = SolutionStatus.NONE
    if x is not None:
        over = stop in (StopReason.COMPLETE, StopReason.GAP)
        status = SolutionStatus.OPTIMAL if over else SolutionStatus.FEASIBLE
    return Outcome(
        stop=stop,
        status=status,
        x=x,
        objective=None if x is None else form.objective(x),
        bound=bound,
        variables=len(form.columns),
        constraints=len(form.rows),
        nodes=nodes,
        incumbents=incumbents,
        message=message,
        solve_s=solve_s,
    )


def solved(model: Any, solve_form: SolveForm, effort: Effort) -> Outcome:
    """Solve a Pyomo model by a solver of arrays, and load the solution into its variables."""
    form = linear_form(model)
    start = [np.nan if each.value is None else each.value for each in form.columns]
    outcome = solve_form(form, effort, np.array(start, dtype=float))
    if outcome.x is not None:
        for variable, number in zip(form.columns, outcome.x.tolist(), strict=True):
            variable.set_value(number, skip_validation=True)
    return outcome
