"""A separable problem as one Pyomo model: all its options in a single MILP.

What the price engine is measured against and tested with (`ronda.formulations.allocation.separable`
has the formulas). Numbers go in as they are; `ronda.formulations.allocation.units` scales a problem
beforehand.
"""

from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats


def build(problem: Separable) -> Any:
    """Return the Pyomo model of a separable problem.

    Parameters
    ----------
    problem
        A problem that `Separable.validate` accepts.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With variables ``x[k]`` and ``z[b]``, the objective ``value`` and the constraints
        ``one_option[j]`` and ``resource[name]``.
    """
    # The garbage collector would walk all new expressions again and again: several times slower.
    with PauseGC():
        model = pyo.ConcreteModel("separable")
        variables(model, problem)
        objective(model, problem)
        one_option(model, problem)
        resources(model, problem)
    return model


def variables(model: Any, problem: Separable) -> None:
    """x_k ∈ {0, 1}; 0 ≤ z_b ≤ n_b, integer where blocks are whole."""
    model.x = pyo.Var(range(len(problem.value)), domain=pyo.Binary)
    whole = problem.block_integer.tolist()
    most = problem.block_count.tolist()
    model.z = pyo.Var(
        range(len(most)),
        domain=lambda _, b: pyo.NonNegativeIntegers if whole[b] else pyo.NonNegativeReals,
        bounds=lambda _, b: (0, most[b]),
    )
    if not len(model.x) + len(model.z):
        model.nothing = pyo.Var(bounds=(0, 0))  # rows need a variable, to be broken or not


def objective(model: Any, problem: Separable) -> None:
    """Max Σ_k v_k x_k + Σ_b v_b z_b."""
    worth = _linear(problem.value, problem.block_value, _all(model))
    model.value = pyo.Objective(expr=worth, sense=pyo.maximize)


def one_option(model: Any, problem: Separable) -> None:
    """Σ_{k of job j} x_k ≤ 1; = 1 if the job must run. Jobs without options have no row."""
    x, start, must = list(model.x.values()), problem.start.tolist(), problem.must.tolist()

    def rule(_: Any, j: int) -> Any:
        own = x[start[j] : start[j + 1]]
        body = LinearExpression(linear_coefs=[1.0] * len(own), linear_vars=own)
        return (1 if must[j] else None, body, 1)

    filled = [j for j in range(problem.jobs) if start[j + 1] > start[j]]
    model.one_option = pyo.Constraint(filled, rule=rule)


def resources(model: Any, problem: Separable) -> None:
    """Σ_k a_rk x_k + Σ_b a_rb z_b ≤ c_r for each resource r, by its name."""
    everything = _all(model)
    rows = dict(zip(problem.names, range(len(problem.names)), strict=True))

    def rule(_: Any, name: str) -> Any:
        r = rows[name]
        used = _linear(problem.use[r], problem.block_use[r], everything)
        return (None, used, float(problem.capacity[r]))

    model.resource = pyo.Constraint(problem.names, rule=rule)


def answer(model: Any, problem: Separable) -> tuple[NDArray[np.int64], Floats]:
    """Return (J,) the option of each job (-1: none) and (B,) the blocks of a solved model."""
    taken = np.array([v.value for v in model.x.values()], dtype=float)
    rows = np.flatnonzero(taken > 0.5)
    chosen = np.full(problem.jobs, -1, dtype=np.int64)
    chosen[np.searchsorted(problem.start, rows, side="right") - 1] = rows
    return chosen, np.array([v.value for v in model.z.values()], dtype=float)


def _all(model: Any) -> list[Any]:
    return [*model.x.values(), *model.z.values()] or [model.nothing]


def _linear(options: Floats, blocks: Floats, variables: list[Any]) -> Any:
    """Return Σ coefficient × variable over options and blocks."""
    numbers = np.concatenate([options, blocks])
    used = np.flatnonzero(numbers)
    if not len(used):
        return LinearExpression(linear_coefs=[0.0], linear_vars=variables[:1])
    return LinearExpression(
        linear_coefs=numbers[used].tolist(), linear_vars=[variables[i] for i in used.tolist()]
    )
