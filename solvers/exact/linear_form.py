"""A Pyomo model as arrays: what HiGHS needs of it, with the model's own names."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.base.constraint import Constraint
from pyomo.core.base.objective import Objective
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression
from pyomo.core.expr.numvalue import value
from pyomo.repn.standard_repn import generate_standard_repn

from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Max or min c'x + offset with lower ≤ Ax ≤ upper and bounds on x, some x integer.

    Attributes
    ----------
    columns, rows
        The Pyomo variables and constraints in the order of the arrays.
    maximize
        The sense.
    cost, offset
        (n,) coefficients of the objective, and its constant.
    lower, upper, integer
        (n,) bounds of the variables and whether they must be integers.
    start, index, value
        A by rows: the coefficients of row i are ``value[start[i]:start[i + 1]]``, of the columns
        ``index[...]``.
    row_lower, row_upper
        (m,) limits of the rows.
    """

    columns: tuple[Any, ...]
    rows: tuple[Any, ...]
    maximize: bool
    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    start: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats
    row_lower: Floats
    row_upper: Floats

    def row_names(self) -> tuple[str, ...]:
        """Return the constraints' names, as in ``gpus[default/V100]``."""
        return tuple(row.name for row in self.rows)

    def column_names(self) -> tuple[str, ...]:
        """Return the variables' names."""
        return tuple(column.name for column in self.columns)

    def objective(self, x: Floats) -> float:
        """Return the objective of a point."""
        return float(self.cost @ x + self.offset)


def linear_form(model: Any) -> LinearForm:
    """Read a Pyomo model with linear constraints and one linear objective.

    Fixed variables count as constants. Variables that appear nowhere are left out.

    Raises
    ------
    InputError
        If an expression is not linear, a variable is neither continuous nor integer, or there is
        not exactly one active objective.
    """
    objectives = list(model.component_data_objects(Objective, active=True, descend_into=True))
    if len(objectives) != 1:
        raise InputError(f"model {model.name}", f"{len(objectives)} objectives", "exactly one")
    columns = _Columns()
    goal = objectives[0]
    offset, coefficients, at = columns.terms(goal.expr, goal)
    start, index, numbers = [0], list[int](), list[float]()
    rows, lower, upper = [], [], []
    for row in model.component_data_objects(Constraint, active=True, descend_into=True):
        constant, values, where = columns.terms(row.body, row)
        index += where
        numbers += values
        start.append(len(index))
        rows.append(row)
        low, high = row.lower, row.upper
        lower.append(-np.inf if low is None else value(low) - constant)
        upper.append(np.inf if high is None else value(high) - constant)
    low_x, high_x, integer = columns.domains()
    cost = np.zeros(len(low_x))
    np.add.at(cost, np.array(at, dtype=np.int64), coefficients)
    return LinearForm(
        columns=tuple(columns.variables),
        rows=tuple(rows),
        maximize=goal.sense == -1,
        cost=cost,
        offset=offset,
        lower=low_x,
        upper=high_x,
        integer=integer,
        start=np.array(start, dtype=np.int32),
        index=np.array(index, dtype=np.int32),
        value=np.array(numbers, dtype=float),
        row_lower=np.array(lower, dtype=float),
        row_upper=np.array(upper, dtype=float),
    )


class _Columns:
    """The variables met so far, numbered in the order of appearance."""

    def __init__(self) -> None:
        self.variables: list[Any] = []
        self._number: dict[int, int] = {}

    def number(self, variable: Any) -> int:
        key = id(variable)
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self.variables)
            self.variables.append(variable)
        return found

    def terms(self, expression: Any, owner: Any) -> tuple[float, list[float], list[int]]:
        """Return the constant, the coefficients and the columns of a linear expression."""
        if expression.__class__ is LinearExpression:
            plain = self._plain(expression)
            if plain is not None:
                return plain
        found = generate_standard_repn(expression, quadratic=False)
        if not found.is_linear():
            raise InputError(f"model: {owner.name}", "an expression that is not linear", "linear")
        coefficients = [float(value(c)) for c in found.linear_coefs]
        return float(value(found.constant)), coefficients, [*map(self.number, found.linear_vars)]

    def _plain(self, expression: Any) -> tuple[float, list[float], list[int]] | None:
        """Read an expression that is a list of number × unfixed variable; None for any other."""
        coefficients, at = [], []
        number = self.number
        for term in expression.args:
            if term.__class__ is not MonomialTermExpression:
                return None
            coefficient, variable = term.args
            if coefficient.__class__ is not float or variable.fixed:
                return None
            coefficients.append(coefficient)
            at.append(number(variable))
        if len(set(at)) < len(at):
            return None  # a variable appears twice: let Pyomo collect its terms
        return 0.0, coefficients, at

    def domains(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return bounds and integrality of all variables."""
        lower, upper, integer = [], [], []
        for variable in self.variables:
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
