"""Few jobs and one resource in whole units: exact prices and the best answer, without a solver.

Most rounds of a small cluster couple their jobs by nothing but GPUs. D(p), the dual bound, has one
variable then, and its minimum is where two tangents meet. At that price an answer falls short of D
by the losses of its choices and by what is left of the resource, at its price. Often an answer at
hand falls short by nothing. Otherwise the best one is found label by label: job after job, the
least loss with each amount in use, but no more than that of the answer at hand. This is the dynamic
programme of the multiple-choice knapsack (Kellerer, Pferschy and Pisinger, *Knapsack Problems*,
2004, section 11.5), held down by reduced costs, as `ronda.solvers.labels` is for any resources.
Plain loops over numbers do for it: array operations would cost more than they save.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_LABELS = 20_000
"""Labels in all after which the search is given up: about 5 ms."""

PARTS = (1 / 16, 1 / 4, 1)
"""Parts of the shortfall of the answer at hand within which a better one is looked for in turn."""

PRECISE = 1e-12
"""Relative precision of the least dual bound, and of what an answer falls short of it."""

Option = tuple[float, int, int]
"""What a job may take: its value or its loss, the units it uses, and its name (-1: nothing)."""

NOTHING: Option = (0.0, 0, -1)
"""What a job may take that need not take anything."""

Offer = tuple[Sequence[Option], bool]
"""All that a job may take, by value, and whether it must take something."""

Stage = list[Option]
"""All that a job may take, by loss."""

Path = tuple[int, "Path"] | None
"""What the last job takes, and the path of the jobs before."""

Label = tuple[float, Path]
"""The losses of a choice of the jobs so far, and the choice."""


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


@dataclass(frozen=True, slots=True)
class Best:
    """A best answer.

    Attributes
    ----------
    chosen
        The name of each job's option, -1 for none; None if there is no answer.
    labels
        How many labels were looked at.
    """

    chosen: list[int] | None
    labels: int


class Demand:
    """What jobs with one resource in common take at a price.

    Parameters
    ----------
    offers
        What each job may take; a job that must take something has an option.
    capacity
        Units that there are for all.
    """

    def __init__(self, offers: Sequence[Offer], capacity: int) -> None:
        self._offers, self._capacity = offers, capacity
        self.evaluations = 0

    def at(self, price: float) -> tuple[float, int]:
        """Return D at a price, and its slope: what is left of the resource."""
        self.evaluations += 1
        value, used = 0.0, 0
        for options, firm in self._offers:
            most, amount = (-math.inf if firm else 0.0), 0
            for v, a, _ in options:
                surplus = v - price * a
                if surplus > most:
                    most, amount = surplus, a
            value += most
            used += amount
        return value + price * self._capacity, self._capacity - used

    def _ceiling(self) -> float:
        """Return a price at which nobody who need not run takes anything."""
        per_unit = [v / a for options, _ in self._offers for v, a, _ in options if a > 0]
        return max(0.0, max(per_unit, default=0.0))

    def least(self) -> Priced:
        """Return the price at which D is least."""
        d_low, fall = self.at(0.0)
        if fall >= 0:
            return Priced(0.0, d_low, self.evaluations)
        ceiling = self._ceiling()
        low, high = 0.0, ceiling
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

    def best(self, priced: Priced) -> Best | None:
        """Return a best answer; None if there are too many labels.

        Of equally good ones it is always the same.

        Parameters
        ----------
        priced
            As `least` returns it.
        """
        price, room = priced.price, self._capacity
        stages = [_stage(options, firm, price) for options, firm in self._offers]
        rounding = PRECISE * abs(priced.bound)
        shortfall, taken = _first_fit(stages, price, room)
        if shortfall <= rounding:
            return Best(taken, 0)
        for part in PARTS:
            best = _best_within(stages, price, room, part * shortfall + rounding)
            if best is None or best.chosen is not None:
                break
        return best


def _stage(options: Sequence[Option], firm: bool, price: float) -> Stage:
    """Return what a job may take at a price, and what it loses by it."""
    if not firm:
        options = [*options, NOTHING]
    surplus = [v - price * a for v, a, _ in options]
    most = max(surplus)
    return [(most - s, a, k) for s, (_, a, k) in zip(surplus, options, strict=True)]


def _first_fit(stages: Sequence[Stage], price: float, room: int) -> tuple[float, list[int]]:
    """Return an answer, and what it falls short of D: each job takes the best that is left for it.

    The shortfall is infinite if nothing is left for a job that must run.
    """
    shortfall, taken = 0.0, []
    for stage in stages:
        least, units, name = math.inf, 0, -1
        for loss, amount, option in stage:
            if loss < least and amount <= room:
                least, units, name = loss, amount, option
        shortfall += least
        room -= units
        taken.append(name)
    return shortfall + price * room, taken


def _best_within(stages: list[Stage], price: float, room: int, shortfall: float) -> Best | None:
    """Return the best answer with at most some shortfall; None if there are too many labels."""
    near = [[option for option in stage if option[0] <= shortfall] for stage in stages]
    chosen = [stage[0][2] for stage in near]
    room -= sum([stage[0][1] for stage in near if len(stage) == 1])  # they lose nothing
    free = [j for j, stage in enumerate(near) if len(stage) > 1]
    free.sort(key=lambda j: len(near[j]))
    most = [max([amount for _, amount, _ in near[j]]) for j in free]
    labels: dict[int, Label] = {0: (0.0, None)}
    ahead, count = sum(most), 0  # units that the other jobs can use at most
    if room < 0 or price * (room - ahead) > shortfall:
        return Best(None, count)
    for j, units in zip(free, most, strict=True):
        ahead -= units
        count += len(labels) * len(near[j])
        if count > MOST_LABELS:
            return None
        labels = _extended(labels, near[j], price, room, ahead, shortfall)
    if not labels:
        return Best(None, count)
    used = min(labels, key=lambda used: labels[used][0] - price * used)
    path = labels[used][1]
    for j in reversed(free):
        assert path is not None  # one step a job
        chosen[j], path = path
    return Best(chosen, count)


def _extended(
    labels: Mapping[int, Label],
    stage: Stage,
    price: float,
    room: int,
    ahead: int,
    shortfall: float,
) -> dict[int, Label]:
    """Return the labels with one more job: of each amount in use the one of least loss."""
    reached: dict[int, Label] = {}
    for used, (before, path) in labels.items():
        for loss, amount, row in stage:
            loss += before
            now = used + amount
            if now > room or loss > shortfall:
                continue
            unused = room - now - ahead
            if unused > 0 and loss + price * unused > shortfall:
                continue
            known = reached.get(now)
            if known is None or loss < known[0]:
                reached[now] = (loss, (row, path))
    return reached
