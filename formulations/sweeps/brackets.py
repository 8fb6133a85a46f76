"""Hyperband's brackets for trials that keep their progress from rung to rung."""

from collections.abc import Sequence
from dataclasses import dataclass

from ronda.formulations.fusion.waves import hyperband


@dataclass(frozen=True, slots=True)
class Bracket:
    """The trials at first, and the reports at which the best 1 / eta of them go on."""

    trials: int
    rungs: tuple[int, ...]


def brackets(reports: int, eta: int) -> tuple[Bracket, ...]:
    """Return the brackets of Hyperband (Li et al., JMLR 2018) for trials of `reports` reports.

    They are those of `ronda.formulations.fusion.waves.hyperband` for the largest power of eta that
    is not above `reports`, their epochs stretched to them; a bracket ends with whole trials.
    """
    whole = 1
    while whole * eta <= reports:
        whole *= eta
    found: list[Bracket] = []
    for wave in hyperband(whole, eta, skip_last=0):
        rung = round(wave.epochs * reports / whole)
        if wave.fresh:
            found.append(Bracket(wave.trials, ()))
        last = found[-1]
        if rung < reports:
            found[-1] = Bracket(last.trials, (*last.rungs, rung))
    return tuple(found)


def bracket_of(place: int, all_: Sequence[Bracket]) -> tuple[int, Bracket]:
    """Return the bracket of the trial submitted after `place` others, and its number.

    After the last bracket the first one comes again.
    """
    number = 0
    while True:
        for bracket in all_:
            if place < bracket.trials:
                return number, bracket
            place -= bracket.trials
            number += 1
