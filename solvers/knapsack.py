"""Few jobs and one resource in whole units: exact prices and the best answer, without a solver.

Most rounds of a small cluster couple their jobs by nothing but GPUs. With f_j(c) the most that the
first j jobs are worth on c units of them::

    f_j(c) = max(f_{j-1}(c), max_k v_jk + f_{j-1}(c - a_jk))

without the first term for a job that must run: the dynamic programme of the multiple-choice
knapsack (Kellerer, Pferschy and Pisinger, *Knapsack Problems*, 2004, section 11.5), a few array
operations a job. D(p), the dual bound, has one variable then, and its minimum is where two tangents
meet. Plain loops over numbers do for it: array operations would cost more than they save.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.separable import Separable
from ronda.solvers.shards import Ints

MOST_OPTIONS, MOST_JOBS = 400, 64
"""Options and jobs up to which this is the fastest way: about 2 ms at most."""

MOST_STEPS = 100_000
"""Options times units of capacity up to which it is, likewise."""

ROUNDING = 1e-9
"""Relative error of a capacity that is taken for rounding."""

PRECISE = 1e-12
"""Relative precision of the least dual bound."""


def fits(problem: Separable) -> bool:
    """Tell whether a problem is of this kind, and small enough.

    Parameters
    ----------
    problem
        In units of its own (`ronda.formulations.normalised`), so that amounts which can be whole
        are.
    """
    options = len(problem.value)
    if len(problem.capacity) != 1 or len(problem.block_value):
        return False
    if problem.jobs > MOST_JOBS or options > MOST_OPTIONS:
        return False
    use, capacity = problem.use[0], float(problem.capacity[0])
    if capacity < 0 or capacity * options > MOST_STEPS or (use < 0).any():
        return False
    return bool((use == np.rint(use)).all())


@dataclass(frozen=True, slots=True)
class Priced:
    """The price at which D is least.

    Attributes
    ----------
    price, bound
        Of a unit of the resource, and D there.
    evaluations
        How often all jobs were asked.
    """

    price: float
    bound: float
    evaluations: int


class Demand:
    """D(p) of a problem with one resource, as plain numbers.

    Parameters
    ----------
    problem
        One that `fits`, in any units.
    """

    def __init__(self, problem: Separable) -> None:
        self._problem, self._capacity = problem, float(problem.capacity[0])
        value, use = problem.value.tolist(), problem.use[0].tolist()
        start, must = problem.start.tolist(), problem.must.tolist()
        self._jobs = [
            (list(zip(value[begin:end], use[begin:end], strict=True)), firm)
            for begin, end, firm in zip(start, start[1:], must, strict=False)
        ]
        self.evaluations = 0

    def at(self, price: float) -> tuple[float, float]:
        """Return D at a price, and its slope: what is left of the resource."""
        self.evaluations += 1
        value, used = 0.0, 0.0
        for options, firm in self._jobs:
            most, amount = (-np.inf if firm else 0.0), 0.0
            for v, a in options:
                surplus = v - price * a
                if surplus > most:
                    most, amount = surplus, a
            value += most
            used += amount
        return value + price * self._capacity, self._capacity - used

    def _ceiling(self) -> float:
        """Return a price at which nobody who need not run takes anything."""
        use = self._problem.use[0]
        some = use > 0
        return float((self._problem.value[some] / use[some]).max(initial=0.0))

    def least(self) -> Priced:
        """Return the price at which D is least."""
        ceiling = self._ceiling()
        low, high = 0.0, ceiling
        d_low, fall = self.at(low)
        if fall >= 0:
            return Priced(low, d_low, self.evaluations)
        d_high, rise = self.at(high)
        while rise < 0:  # jobs that must run ask for more than there is: there is no least one
            if high > 1e6 * ceiling:
                return Priced(high, d_high, self.evaluations)
            low, d_low, fall, high = high, d_high, rise, 2.0 * high
            d_high, rise = self.at(high)
        while True:
            at = (d_low - fall * low - d_high + rise * high) / (rise - fall)
            model = d_low + fall * (at - low)
            value, slope = self.at(at)
            if value <= model + PRECISE * abs(model) or not low < at < high:
                return Priced(at, value, self.evaluations)
            if slope < 0:
                low, d_low, fall = at, value, slope
            else:
                high, d_high, rise = at, value, slope


def best_of_all(problem: Separable) -> Ints | None:
    """Return (J,) the option of each job (-1: none) in a best answer; None if there is no answer.

    Of equally good ones it is always the same. What is left of the capacity's last unit counts for
    nothing.

    Parameters
    ----------
    problem
        One that `fits`.
    """
    capacity, start = int(problem.capacity[0] * (1 + ROUNDING)), problem.start.tolist()
    amounts = problem.use[0].astype(np.int64)
    most = np.minimum(amounts, capacity + 1)  # more than there is: reaches into the padding
    before = (np.arange(capacity + 1) + capacity + 1)[None, :] - most[:, None]
    values = problem.value[:, None]
    padded = np.full(2 * capacity + 2, -np.inf)
    worth, columns = padded[capacity + 1 :], np.arange(capacity + 1)
    worth[:] = 0.0
    taken: list[Ints] = []
    for begin, end, firm in zip(start, start[1:], problem.must.tolist(), strict=False):
        trial = padded[before[begin:end]]
        trial += values[begin:end]
        if not firm:
            trial = np.concatenate([worth[None], trial])
        choice = trial.argmax(axis=0)
        worth[:] = trial[choice, columns]
        taken.append(choice if firm else choice - 1)
    return _back(start, amounts.tolist(), taken, capacity) if np.isfinite(worth[-1]) else None


def _back(start: Sequence[int], amounts: Sequence[int], taken: Sequence[Ints], room: int) -> Ints:
    """Return what every job takes when `room` units are left for all."""
    chosen = np.full(len(taken), -1, dtype=np.int64)
    for j in range(len(taken) - 1, -1, -1):
        k = int(taken[j][room])
        if k >= 0:
            chosen[j] = start[j] + k
            room -= amounts[start[j] + k]
    return chosen
