"""The conversion of Pyomo models to arrays, and of solutions to values of their variables.

Pyomo models are the authoritative formulation of problems with more than options.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyomo.common.enums import maximize
from pyomo.core.base.objective import Objective
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from ronda.instances.base import Floats, Mask
from ronda.instances.errors import InputError
from ronda.solvers.exact.backends import SOLVERS
from ronda.solvers.exact.linear_form import Effort, LinearForm, Outcome


def solve(model: Any, effort: Effort | None = None, solver: str = "highs") -> Outcome:
    """Solve a Pyomo model with a known solver, and load the solution into its variables.

    Existing values of the variables are the warm start, if all integer variables have one. Without
    a solution the values do not change. The same model, seed and start give the same solution,
    unless the deadline cut the search short. Raises InputError if the model is not linear.
    """
    form = linear_form(model)
    start = [np.nan if each.value is None else each.value for each in form.columns]
    asked = Effort() if effort is None else effort
    outcome = SOLVERS[solver].solve_form(form, asked, np.array(start, dtype=float))
    set_values(form, outcome.x)
    return outcome


def set_values(form: LinearForm, x: Floats | None) -> None:
    """Give the variables of the Pyomo model the values `x` (n,), unless `x` is None."""
    if x is not None:
        for variable, number in zip(form.columns, x.tolist(), strict=True):
            variable.set_value(number, skip_validation=True)


def linear_form(model: Any) -> LinearForm:
    """Read a Pyomo model with linear constraints and one linear objective.

    Fixed variables count as constants. Unused variables are left out. A constraint with two
    different limits has two rows. Raises InputError if an expression is not linear, if a variable
    is neither continuous nor integer, or unless there is exactly one active objective.
    """
    goals = list(model.component_data_objects(Objective, active=True, descend_into=True))
    if len(goals) != 1:
        raise InputError(f"model {model.name}", f"{len(goals)} objectives", "exactly one")
    try:
        read = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except ValueError as error:
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
