"""The reasons why a model has no solution: small sets of constraints that conflict.

If jobs that must run exceed the capacities, `ronda.formulations.allocation.rows.shortages` gives
the numbers without a solver.
"""

from collections.abc import Iterator
from dataclasses import replace

import highspy
import numpy as np

from ronda.instances.base import Rows
from ronda.instances.clock import Deadline
from ronda.instances.plan import Conflict, StopReason
from ronda.solvers.exact.highs import PRECISION, alone, highs_of, run, solve_form
from ronda.solvers.exact.linear_form import Effort, LinearForm

FEW = 64
"""The number of rows up to which they are left out one by one, which takes a solution each; HiGHS's
own search looks at the bounds of all columns besides, and has no time limit."""


def conflicts(form: LinearForm, deadline: Deadline) -> list[Conflict] | None:
    """Return sets of named constraints that conflict; [] if the model has a solution.

    The result is None if the time runs out first. If the model is infeasible even without
    integrality, HiGHS finds an irreducible set among the rows of a proof of that. Otherwise the
    search leaves out constraints one by one. If the deadline cuts this search short, the set may
    not be irreducible yet, and its message says so.
    """
    relaxed = _irreducible(form, deadline)
    if relaxed is not None:
        return [_named(form, relaxed, "cannot all hold")]
    possible = _possible(form, np.arange(len(form.rows)), deadline)
    if possible is not False:
        return [] if possible else None
    rows, complete = _deletion_filter(form, deadline)
    message = "cannot all hold with whole numbers"
    return [_named(form, rows, message if complete else f"{message} (time was up: perhaps fewer)")]


def _named(form: LinearForm, rows: list[int], message: str) -> Conflict:
    return Conflict(tuple(str(form.rows[i]) for i in rows), message)


def _irreducible(form: LinearForm, deadline: Deadline) -> list[int] | None:
    """Return an irreducible set of rows that conflict even without integrality, or None."""
    highs = highs_of(form, relaxed=True)
    if run(highs, deadline.left()) != highspy.HighsModelStatus.kInfeasible:
        return None
    _, proven, ray = alone(highs, highs.getDualRay)  # Farkas: these rows conflict by themselves
    some = np.flatnonzero(np.abs(np.array(ray)) > PRECISION) if proven else np.zeros(0, int)
    if 0 < len(some) <= FEW and _relaxed_fails(form, some, deadline):
        for row in some.tolist():
            rest = some[some != row]
            some = rest if _relaxed_fails(form, rest, deadline) else some
        return some.tolist()
    highs.setOptionValue("iis_strategy", int(highspy.IisStrategy.kIisStrategyIrreducible))
    status, found = alone(highs, highs.getIis)
    rows = sorted(found.row_index_)
    return rows if status == highspy.HighsStatus.kOk and found.valid_ and rows else None


def _relaxed_fails(form: LinearForm, rows: Rows, deadline: Deadline) -> bool:
    """Return whether some rows conflict even without integrality, as far as time allows to say."""
    highs = highs_of(_only(form, rows), relaxed=True)
    return bool(run(highs, deadline.left()) == highspy.HighsModelStatus.kInfeasible)


def components(form: LinearForm) -> Iterator[list[int]]:
    """Yield the rows of each part of the model that shares no variable with another part."""
    from scipy.sparse import csr_array  # slow to import, and only infeasible rounds need it
    from scipy.sparse.csgraph import connected_components

    shape = len(form.rows), len(form.columns)
    uses = csr_array((np.ones(len(form.index)), form.index, form.start), shape=shape)
    parts, part = connected_components(uses @ uses.T, directed=False)
    for number in range(parts):
        yield np.flatnonzero(part == number).tolist()


def _deletion_filter(form: LinearForm, deadline: Deadline) -> tuple[list[int], bool]:
    """Remove every row that the conflict does not need (J. Chinneck's deletion filter).

    Return the remaining rows, and whether all rows were tried.
    """
    # One component of jobs and shared rows conflicts by itself.
    parts = (part for part in components(form) if _possible(form, part, deadline) is False)
    kept = next(parts, list(range(len(form.rows))))
    # Try halves first, as most rows are not part of the conflict.
    size = max(1, len(kept) // 2)
    while size >= 1:
        at = 0
        while at < len(kept):
            if deadline.over():
                return kept, False
            rest = kept[:at] + kept[at + size :]
            if _possible(form, rest, deadline) is False:
                kept = rest
            else:
                at += size
        size //= 2
    return kept, True


def _possible(form: LinearForm, rows: Rows | list[int], deadline: Deadline) -> bool | None:
    """Return whether some rows have a common solution, or None if the time runs out first."""
    outcome = solve_form(
        _only(form, np.array(rows, dtype=np.int64)), Effort(deadline=deadline, gap=0.0)
    )
    if outcome.stop is StopReason.INFEASIBLE:
        return False
    return None if outcome.x is None else True


def _only(form: LinearForm, rows: Rows) -> LinearForm:
    """Return a model with some of the rows, and nothing to maximise."""
    entries = [np.arange(form.start[i], form.start[i + 1]) for i in rows]
    at = np.concatenate([np.empty(0, dtype=np.int64), *entries])
    return replace(
        form,
        rows=tuple(form.rows[i] for i in rows),
        cost=np.zeros_like(form.cost),
        offset=0.0,
        start=np.concatenate([[0], np.cumsum(np.diff(form.start)[rows])]).astype(np.int32),
        index=form.index[at],
        value=form.value[at],
        row_lower=form.row_lower[rows],
        row_upper=form.row_upper[rows],
    )
