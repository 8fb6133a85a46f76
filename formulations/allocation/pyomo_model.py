"""The allocation MILP of a round in Pyomo, which chooses an option for every job.

`ronda.formulations.allocation.rows` makes the rows. This is the reference model, which
`ronda export` writes; any other `Separable` problem becomes a model in the same way. Solvers get
the same problem as arrays (`ronda.solvers.exact.linear_form`).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression

from ronda.formulations.allocation.model_data import Case, whole_case
from ronda.formulations.allocation.rows import named_blocks, separable
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.options.table import SPANS, OptionTable
from ronda.instances.base import Floats, Rows
from ronda.instances.round import Round

Blocks = Sequence[tuple[str, Hashable]]
"""The name of the variable of each block, and the index of the block in it."""


def build(round: Round, table: OptionTable, values: Floats) -> Any:
    """Return the Pyomo model of a round, which finds the most valuable options within the limits.

    `values` (K,) are the values of options; a job that does not run has the value 0. Numbers are in
    GPUs, watts, joules and the unit of the values. Options are indexed by their job, pool, GPUs,
    clock and batch (`option_names`).
    """
    case = whole_case(round, table, values)
    model = build_separable(
        separable(case, both_limits=True),
        options=option_names(case),
        jobs=[state.job.id for state in case.table.jobs],
        blocks=named_blocks(case),
    )
    model.case = case
    return model


def option_names(case: Case) -> list[Hashable]:
    """Return the index of each x, which consists of job, pool, GPUs, clock and batch.

    Where several options share these, the span follows; where they share the span as well, the
    current option ends in ``current``.
    """
    t, rows = case.table, case.rows
    jobs = [t.jobs[j].job.id for j in t.job[rows].tolist()]
    numbers = (t.pool[rows].tolist(), t.gpus[rows].tolist(), t.clock[rows], t.batch[rows])
    pool, gpus, *others = numbers
    clock, batch = ([int(x) if x == int(x) else x for x in column.tolist()] for column in others)
    named: list[tuple[Hashable, ...]] = list(zip(jobs, pool, gpus, clock, batch, strict=True))
    spans = [(SPANS[span],) for span in t.span[rows].tolist()]
    current = [("current",) * now for now in t.current[rows].tolist()]
    for more in (spans, current):
        times = Counter(named)
        named = [(*x, *(y if times[x] > 1 else ())) for x, y in zip(named, more, strict=True)]
    return list(named)


def build_separable(
    problem: Separable,
    *,
    options: Sequence[Hashable] | None = None,
    jobs: Sequence[Hashable] | None = None,
    blocks: Blocks | None = None,
) -> Any:
    """Return the Pyomo model of a separable problem, with the problem as attribute ``problem``.

    `options`, `jobs` and `blocks` are the indices of x, of ``one_option`` and of the variables of
    blocks. By default, these are x[k], job j and z[b].
    """
    # The garbage collector would walk all new expressions again and again: 5 to 15 times slower.
    with PauseGC():
        model = pyo.ConcreteModel("allocation")
        model.problem = problem
        variables(model, options, blocks)
        objective(model)
        one_option(model, jobs)
        resources(model)
    return model


def variables(model: Any, options: Sequence[Hashable] | None, blocks: Blocks | None) -> None:
    """Add x_k ∈ {0, 1} and 0 ≤ z_b ≤ n_b, where z_b is an integer if block b is whole."""
    problem: Separable = model.problem
    named_by = range(len(problem.value)) if options is None else options
    model.option = pyo.Set(initialize=named_by, dimen=None)  # some names are longer than others
    model.x = pyo.Var(model.option, domain=pyo.Binary)
    most, whole = problem.block_count.tolist(), problem.block_integer.tolist()
    named = [("z", b) for b in range(len(most))] if blocks is None else blocks
    for kind in dict.fromkeys(kind for kind, _ in named):
        model.add_component(kind, pyo.Var([index for one, index in named if one == kind]))
    model.blocks = [getattr(model, kind)[index] for kind, index in named]
    for variable, count, integer in zip(model.blocks, most, whole, strict=True):
        variable.domain = pyo.NonNegativeIntegers if integer else pyo.NonNegativeReals
        variable.setub(count)
    model.all = [*model.x.values(), *model.blocks]


def objective(model: Any) -> None:
    """Add the objective, max Σ_k v_k x_k + Σ_b v_b z_b."""
    worth = np.concatenate([model.problem.value, model.problem.block_value])
    model.value = pyo.Objective(expr=_linear(model, worth), sense=pyo.maximize)


def one_option(model: Any, jobs: Sequence[Hashable] | None) -> None:
    """Add Σ_{k of job j} x_k ≤ 1, or = 1 if the job must run; leave out rows that say x_k ≤ 1."""
    problem: Separable = model.problem
    x, start, must = list(model.x.values()), problem.start.tolist(), problem.must.tolist()
    model.one_option = pyo.Constraint(pyo.Any)
    for j in range(problem.jobs):
        own = x[start[j] : start[j + 1]]
        if own and (must[j] or len(own) > 1):
            body = LinearExpression(linear_coefs=[1.0] * len(own), linear_vars=own)
            model.one_option[j if jobs is None else jobs[j]] = (1 if must[j] else None, body, 1)


def resources(model: Any) -> None:
    """Add Σ_k a_rk x_k + Σ_b a_rb z_b ≤ c_r for each resource r, named ``family[index]``."""
    problem: Separable = model.problem
    model.rows = []
    for r, name in enumerate(problem.names):
        family, bracket, index = name.removesuffix("]").partition("[")
        used = _linear(model, np.concatenate([problem.use.of_resource(r), problem.block_use[r]]))
        row = (None, used, float(problem.capacity[r]))
        if not bracket:
            model.add_component(family, pyo.Constraint(expr=row))
            model.rows.append(getattr(model, family))
            continue
        if model.component(family) is None:
            model.add_component(family, pyo.Constraint(pyo.Any))
        # Pyomo prints a key as text in brackets, and numbers in it are integers.
        keys = [int(key) if key.isdecimal() else key for key in index.split(",")]
        key = tuple(keys) if len(keys) > 1 else keys[0]
        getattr(model, family)[key] = row
        model.rows.append(getattr(model, family)[key])


def answer(model: Any) -> tuple[Rows, Floats]:
    """Return the option (J,) of each job, -1 for none, and the blocks (B,) of a solved model."""
    problem: Separable = model.problem
    return problem.answer(np.array([variable.value for variable in model.all], dtype=float))


def chosen_rows(model: Any) -> Rows:
    """Return the table row that a solved model chooses for each job or -1, shape (J,)."""
    chosen, _ = answer(model)
    runs = chosen >= 0
    chosen[runs] = model.case.rows[chosen[runs]]
    return chosen


def _linear(model: Any, numbers: Floats) -> Any:
    used = np.flatnonzero(numbers).tolist()
    if not used:  # the row may be broken all the same
        if model.component("nothing") is None:
            model.nothing = pyo.Var(bounds=(0, 0))
        return LinearExpression(linear_coefs=[1.0], linear_vars=[model.nothing])
    every = model.all
    return LinearExpression(
        linear_coefs=numbers[used].tolist(), linear_vars=[every[i] for i in used]
    )
