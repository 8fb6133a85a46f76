"""Few jobs and one resource in whole units: exact prices and the best answer, without a solver.

Most rounds of a small cluster couple their jobs by nothing but GPUs. D(p), the dual bound, has one
variable then. As the price falls, every job goes from corner to corner of the upper hull of its
options, and D is least where all together begin to take more than there is. At that price an
answer falls short of D by the losses of its choices and by what is left of the resource, at its
price. Often an answer at hand falls short by nothing. Otherwise the best one is found label by
label: job after job, the least loss with each amount in use, but no more than that of the answer
at hand. Both are classic for the multiple-choice knapsack (Kellerer, Pferschy and Pisinger,
*Knapsack Problems*, 2004, sections 11.2 and 11.5): its linear relaxation, and its dynamic programme
held down by reduced costs, as in `ronda.solvers.prices.labels` for any resources. Plain loops over
numbers do for it: array operations would cost more than they save.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MOST_LABELS = 20_000
"""Labels in all after which the search is given up: about 5 ms."""

PARTS = (1 / 16, 1 / 4, 1)
"""Parts of the shortfall of the answer at hand within which a better one is looked for in turn."""

PRECISE = 1e-12
"""Relative precision, by the least dual bound, of what an answer falls short of it."""

Option = tuple[float, int, int]
"""What a job may take: its value or its loss, the units it uses, and its name (-1: nothing)."""

NOTHING: Option = (0.0, 0, -1)
"""What a job may take that need not take anything."""

Offer = tuple[Sequence[Option], bool]
"""All that a job may take, by units, ascending, and whether it must take something."""

Step = tuple[float, int, int, int, float]
"""From corner to corner of an upper hull: value a unit, units, job, name, and the value before."""

Stage = list[Option]
"""All that a job may take, by loss."""

Path = tuple[int, "Path"] | None
"""What the last job takes, and the path of the jobs before."""

Label = tuple[float, Path]
"""The losses of a choice of the jobs so far, and the choice."""


class Priced(NamedTuple):
    """The lowest price at which D is least, and an answer to it.

    Attributes
    ----------
    price, bound
        Of a unit of the resource, and D there.
    taken
        The name of what each job takes (-1: nothing): one of the options that it likes best at the
        price, as large a one as there is room for when jobs go up their hulls together.
    room
        Units that are left.
    """

    price: float
    bound: float
    taken: list[int]
    room: int


class Best(NamedTuple):
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


def least_bound(offers: Iterable[Offer], capacity: int) -> Priced | None:
    """Return the price at which D is least.

    None if the jobs that must take something need more than there is: D has no least value then.

    Parameters
    ----------
    offers
        What each job may take; a job that must take something has an option.
    capacity
        Units that there are for all.
    """
    steps: list[Step] = []
    taken: list[int] = []
    bound, room = 0.0, capacity
    for j, (options, firm) in enumerate(offers):
        value, units, name = _climb(steps, j, options, firm)
        bound += value
        room -= units
        taken.append(name)
    if room < 0:
        return None
    steps.sort(reverse=True)
    for price, more, j, name, _ in steps:
        if more > room:
            return Priced(price, bound + price * room, taken, room)
        bound += price * more
        room -= more
        taken[j] = name
    return Priced(0.0, bound, taken, room)


def _climb(steps: list[Step], j: int, options: Sequence[Option], firm: bool) -> Option:
    """Add the steps of job j from corner to corner of its upper hull; return where it begins."""
    first, begin = len(steps), options[0] if firm else NOTHING
    value, units, _ = begin  # of the corner that is reached
    for v, u, name in options:
        if v <= value:
            continue
        while True:
            per_unit = (v - value) / (u - units) if u > units else math.inf
            if len(steps) == first or per_unit < steps[-1][0]:
                break
            _, more, _, _, value = steps.pop()
            units -= more
        if u > units:
            steps.append((per_unit, u - units, j, name, value))
        else:  # more for as much as the job takes in any case
            begin = (v, u, name)
        value, units = v, u
    return begin


def best_answer(offers: Sequence[Offer], capacity: int, priced: Priced) -> Best | None:
    """Return a best answer; None if there are too many labels.

    Of equally good ones it is always the same.

    Parameters
    ----------
    offers, capacity
        As for `least_bound`.
    priced
        As it returns it.
    """
    price, rounding = priced.price, PRECISE * abs(priced.bound)
    if price * priced.room <= rounding:
        return Best(priced.taken, 0)
    stages = [_stage(options, firm, price) for options, firm in offers]
    shortfall, taken = _first_fit(stages, price, capacity)
    if shortfall <= rounding:
        return Best(taken, 0)
    shortfall = min(shortfall, price * priced.room)
    for part in PARTS:
        best = _best_within(stages, price, capacity, part * shortfall + rounding)
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
