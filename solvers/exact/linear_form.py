"""The arrays of a model as input for solvers, and the outcome of a solver.

This module turns a problem of options (`Separable`) into arrays. They have the columns and rows of
its Pyomo model; `ronda.formulations.allocation.pyomo_model` explains them.
`ronda.solvers.exact.from_pyomo` reads any other Pyomo model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.separable import Separable
from ronda.formulations.options.stated_rows import ROUNDED
from ronda.instances.base import Floats, Mask
from ronda.instances.clock import Deadline
from ronda.instances.plan import SolutionStatus, StopReason


@dataclass(frozen=True, slots=True)
class LinearForm:
    """A model: maximise or minimise c'x + offset with lower ≤ Ax ≤ upper, x (n,) bounded.

    Some x may be integer. ``columns`` and ``rows`` are the objects behind the arrays, and ``str``
    gives their names. Row i of A has the coefficients ``value[start[i]:start[i + 1]]`` in the
    columns ``index[...]``. Bounds of integers are made whole. With other bounds HiGHS 1.15 reports
    feasible models as infeasible, and another solver may round them outwards.
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

    def __post_init__(self) -> None:
        """Round the bounds of integers inwards to whole numbers."""
        for name, whole in (("lower", np.ceil), ("upper", np.floor)):
            bound = getattr(self, name)
            object.__setattr__(self, name, np.where(self.integer, whole(bound), bound))

    def objective(self, x: Floats) -> float:
        """Return the objective of a point."""
        return float(self.cost @ x + self.offset)

    def keeps(self, x: Floats) -> bool:
        """Return whether a point satisfies all rows, up to a millionth of the terms of each row."""
        row = np.arange(len(self.rows)).repeat(np.diff(self.start))
        terms, sums, sizes, most = self.value * x[self.index], *np.zeros((3, len(self.rows)))
        np.add.at(sums, row, terms)
        np.add.at(sizes, row, np.abs(terms))
        np.maximum.at(most, row, np.abs(self.value))
        slack = ROUNDED * (sizes + np.minimum(1.0, most))
        low, high = (np.where(np.isfinite(b), b, 0.0) for b in (self.row_lower, self.row_upper))
        under = np.isfinite(self.row_lower) & (sums < low - slack - ROUNDED * np.abs(low))
        over = np.isfinite(self.row_upper) & (sums > high + slack + ROUNDED * np.abs(high))
        return not (under | over).any()


def form_of(problem: Separable, jobs: Sequence[str] = ()) -> LinearForm:
    """Return a problem as arrays, with a column x for each option and z for each block.

    The first rows are ``one_option`` for jobs, named by `jobs`, that have several options or must
    run. The rows of the resources follow, with their names.
    """
    counts, options, blocks = np.diff(problem.start), len(problem.value), len(problem.block_value)
    tied = (counts > 1) | (problem.must & (counts > 0))
    own, count = np.flatnonzero(tied.repeat(counts)), counts[tied]
    use = problem.use.plain()
    slot, option = np.nonzero(use.amount)
    resource, block = np.nonzero(problem.block_use)
    row = np.concatenate([use.resource[slot, option], resource]) + len(count)
    row = np.concatenate([np.arange(len(count)).repeat(count), row])
    column = np.concatenate([own, option, options + block])
    value = (np.ones(len(own)), use.amount[slot, option], problem.block_use[resource, block])
    order = np.lexsort((column, row))
    called = list(jobs) or range(problem.jobs)
    rows = (*(f"one_option[{called[j]}]" for j in np.flatnonzero(tied)), *problem.names)
    none = np.full(len(problem.names), -np.inf)
    return LinearForm(
        columns=(*(f"x[{k}]" for k in range(options)), *(f"z[{b}]" for b in range(blocks))),
        rows=rows,
        maximize=True,
        cost=np.concatenate([problem.value, problem.block_value]),
        offset=0.0,
        lower=np.zeros(options + blocks),
        upper=np.concatenate([np.ones(options), problem.block_count]),
        integer=np.concatenate([np.ones(options, dtype=np.bool_), problem.block_integer]),
        start=np.searchsorted(row[order], np.arange(len(rows) + 1)).astype(np.int32),
        index=column[order].astype(np.int32),
        value=np.concatenate(value)[order],
        row_lower=np.concatenate([np.where(problem.must[tied], 1.0, -np.inf), none]),
        row_upper=np.concatenate([np.ones(len(count)), problem.capacity]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The time and the gap of a search.

    ``reserve_s`` seconds of the ``deadline`` are left on return. For ``blind_s`` seconds before
    that the solver may fail to read its clock. The search stops at the relative ``gap`` between
    solution and bound. ``options`` are the solver's, by its own names.
    """

    deadline: Deadline = field(default_factory=Deadline)
    gap: float = 1e-4
    seed: int = 0
    reserve_s: float = 0.0
    blind_s: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """The seconds that a solver has left, infinite without a limit."""
        return self.deadline.left() - self.reserve_s - self.blind_s

    @property
    def patience_s(self) -> float:
        """The seconds after which the caller no longer waits for a solver.

        A solver with a long `blind_s` that is late is given up early, as its next steps may be slow
        too.
        """
        late_s = max(0.02, 0.03 * (self.deadline.limit_s or 0.0))  # acceptable delay of a solver
        return self.left_s + max(late_s, self.blind_s - 2 * late_s)


PROOF_GAP = 1e-9
"""The gap below which a solution counts as the optimum, up to rounding."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a solver on a model.

    ``x`` (n,) has exact integers, and is None without a solution. ``objective`` and ``bound`` are
    in the model's unit, or None if unknown; the bound is an upper bound for a maximisation.
    ``nodes`` is the size of the branch-and-bound tree. ``incumbents`` are pairs (seconds since the
    deadline's entry, objective). ``message`` is in the solver's own words, and ``solve_s`` is the
    time in the solver.
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


def too_late(form: LinearForm) -> Outcome:
    """Return the outcome of a search that has no time to begin."""
    return found(form, StopReason.TIME_LIMIT, message="no time left to solve", solve_s=0.0)


def known_start(form: LinearForm, start: Floats | None) -> NDArray[np.int64] | None:
    """Return the columns with known values in a start (n,), or None if an integer has none.

    A solver would solve a MILP to complete a start with unknown integers, which may take all the
    time.
    """
    if start is None or not np.isfinite(start[form.integer]).all():
        return None
    return np.flatnonzero(np.isfinite(start))


def proof(form: LinearForm, objective: float, bound: float) -> tuple[float, StopReason]:
    """Return the bound, no tighter than the solution, and the reason why the search stopped."""
    bound = max(bound, objective) if form.maximize else min(bound, objective)
    met = abs(bound - objective) <= PROOF_GAP * max(abs(bound), 1.0)
    return bound, StopReason.COMPLETE if met else StopReason.GAP


def found(
    form: LinearForm,
    stop: StopReason,
    x: Floats | None = None,
    bound: float | None = None,
    *,
    message: str,
    solve_s: float,
    nodes: int = 0,
    incumbents: tuple[tuple[float, float], ...] = (),
) -> Outcome:
    """Return the outcome of a search that has stopped, with or without a solution.

    A point that breaks a row is not a solution, whatever the solver says.
    """
    status = SolutionStatus.NONE
    if x is not None and not form.keeps(x):
        x, message = None, f"{message}; its solution breaks a row"
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
