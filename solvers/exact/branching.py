"""Branching on a few integer variables before HiGHS gets the model.

HiGHS has no priorities. Where a few integers (nodes that are awake) move the bound far more than
the many binaries do, branching on them first makes each of the remaining problems easy: generated
tight rounds of 160 and 400 jobs took 5 s and 10 s to a gap of 1e-4 in one piece, and take less than
half a second so.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ronda.instances.arrays import Floats
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.exact.highs import PROOF_GAP, Outcome, Relaxation, relax, solve_form
from ronda.solvers.exact.linear_form import LinearForm

MOST_SPLITS = 100
"""Splits after which HiGHS gets the open problems as they are."""

INTEGRAL = 1e-6


@dataclass(order=True, slots=True)
class _Open:
    """A part of the problem that is not decided yet; the one with the best bound comes first."""

    key: float
    number: int
    bound: float = field(compare=False)
    x: Floats = field(compare=False)
    form: LinearForm = field(compare=False)


def solve_branching(
    form: LinearForm,
    first: Sequence[int],
    *,
    deadline: Deadline,
    gap: float,
    seed: int,
    start: Floats | None = None,
    reserve_s: float = 0.0,
    options: Mapping[str, Any] | None = None,
) -> Outcome:
    """Solve a model by branching on some integer columns, best bound first, before all others.

    Parameters
    ----------
    form
        The model.
    first
        The columns to branch on.
    deadline, gap, seed, start, reserve_s, options
        As for `ronda.solvers.exact.highs.solve_form`.
    """
    began = deadline.elapsed()
    root = relax(form, deadline=deadline)
    if root is None:  # infeasible, unbounded, or no time: HiGHS says which
        return solve_form(form, deadline=deadline, gap=gap, seed=seed, reserve_s=reserve_s)
    tree = _Tree(form, np.array(first, dtype=np.int64), deadline, gap, reserve_s)
    tree.add(form, root)
    while (part := tree.next()) is not None:
        if tree.split(part):
            continue
        inside = start is not None and bool(
            ((start >= part.form.lower) & (start <= part.form.upper))[tree.first].all()
        )
        outcome = solve_form(
            part.form,
            deadline=deadline,
            gap=gap,
            seed=seed,
            start=start if inside else None,
            reserve_s=reserve_s,
            options=options,
        )
        tree.enter(part, outcome)
    return tree.outcome(deadline.elapsed() - began)


class _Tree:
    """The open parts, the best solution, and the bound of the parts that are decided."""

    def __init__(
        self,
        form: LinearForm,
        first: NDArray[np.int64],
        deadline: Deadline,
        gap: float,
        reserve_s: float,
    ) -> None:
        self.form, self.first, self.deadline, self.gap = form, first, deadline, gap
        self.reserve_s = reserve_s
        self.sign = 1.0 if form.maximize else -1.0
        self.open: list[_Open] = []
        self.best: Outcome | None = None
        self.decided = -np.inf  # best bound of decided parts, times sign
        self.splits = self.nodes = 0
        self.stop: StopReason | None = None
        self.message = "Optimal"
        self.incumbents: list[tuple[float, float]] = []

    def add(self, form: LinearForm, relaxed: Relaxation) -> None:
        """Open a part."""
        self.nodes += 1
        key = -self.sign * relaxed.objective
        heapq.heappush(self.open, _Open(key, self.nodes, relaxed.objective, relaxed.x, form))

    def next(self) -> _Open | None:
        """Return the part with the best bound; None if the gap is proven or time is up."""
        if self.stop is not None or not self.open or self._closed():
            return None
        if self._over():
            self.stop = StopReason.TIME_LIMIT
            return None
        return heapq.heappop(self.open)

    def split(self, part: _Open) -> bool:
        """Split a part at a column of `first` that is not integral yet; tell if there was one."""
        x = part.x[self.first]
        away = np.abs(x - np.round(x))
        if self.splits >= MOST_SPLITS or not len(x) or away.max() <= INTEGRAL:
            return False
        self.splits += 1
        worst = int(away.argmax())
        column = self.first[worst]
        low, high = part.form.lower.copy(), part.form.upper.copy()
        high[column], low[column] = np.floor(x[worst]), np.ceil(x[worst])
        for half in (replace(part.form, upper=high), replace(part.form, lower=low)):
            relaxed = relax(half, deadline=self.deadline)
            if relaxed is not None:
                self.add(half, relaxed)
            elif self._over():
                self.stop = StopReason.TIME_LIMIT
                self.decided = max(self.decided, self.sign * part.bound)
        return True

    def enter(self, part: _Open, outcome: Outcome) -> None:
        """Enter what HiGHS made of a part."""
        self.nodes += outcome.nodes
        if outcome.stop is StopReason.INFEASIBLE:
            return
        bound = part.bound if outcome.bound is None else outcome.bound
        self.decided = max(self.decided, self.sign * bound)
        if outcome.stop not in (StopReason.COMPLETE, StopReason.GAP):
            self.stop, self.message = outcome.stop, outcome.message
        for when, worth in outcome.incumbents:
            if not self.incumbents or self.sign * (worth - self.incumbents[-1][1]) > 0:
                self.incumbents.append((when, worth))
        if outcome.objective is None:
            return
        known = None if self.best is None else self.best.objective
        if known is None or self.sign * (outcome.objective - known) > 0:
            self.best = outcome

    def outcome(self, solve_s: float) -> Outcome:
        """Return the whole answer."""
        size = len(self.form.columns), len(self.form.rows)
        rest = (self.nodes, tuple(self.incumbents))
        bound = max([self.decided, *(self.sign * part.bound for part in self.open)])
        if self.best is None:
            stop = self.stop or StopReason.INFEASIBLE
            message = self.message if self.stop is StopReason.ERROR else stop.value
            known = None if not np.isfinite(bound) else self.sign * bound
            return Outcome(
                stop, SolutionStatus.NONE, None, None, known, *size, *rest, message, solve_s
            )
        objective = self.best.objective
        assert objective is not None
        bound = self.sign * max(bound, self.sign * objective)
        status, stop = SolutionStatus.FEASIBLE, self.stop or StopReason.COMPLETE
        if self.stop is None:
            status = SolutionStatus.OPTIMAL
            if abs(bound - objective) > PROOF_GAP * abs(objective):
                stop = StopReason.GAP
        message = self.message if self.stop in (None, StopReason.ERROR) else stop.value
        x = self.best.x
        return Outcome(stop, status, x, objective, bound, *size, *rest, message, solve_s)

    def _closed(self) -> bool:
        """Tell whether no open part can be better than the best solution by more than the gap."""
        if self.best is None or self.best.objective is None:
            return False
        better = self.sign * (self.open[0].bound - self.best.objective)
        return better <= self.gap * abs(self.best.objective)

    def _over(self) -> bool:
        return self.deadline.left() <= self.reserve_s
