"""Rungs of successive halving: at which reports a trial must be among the best to go on.

A trial's record at a rung is its loss at that report, so that rungs follow from the logs of all
trials, ended ones included, and nothing has to be kept.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

import numpy as np

Losses = Sequence[float]


def rungs(first: int, eta: int, reports: int) -> tuple[int, ...]:
    """Return the reports at which trials are compared: first x eta^i, below the last one."""
    found = []
    while first < reports:
        found.append(first)
        first *= eta
    return tuple(found)


def records(rung: int, trials: Mapping[str, Losses]) -> dict[str, float]:
    """Return the loss at a rung of every trial that has reached it, by name."""
    return {name: losses[rung] for name, losses in trials.items() if len(losses) > rung}


def top(found: Mapping[str, float], eta: int) -> set[str]:
    """Return the names of the best ``floor(n / eta)`` of n records; ties by name.

    A trial that has diverged is never among them.
    """
    ordered = sorted(found, key=lambda name: (found[name], name))
    return {name for name in ordered[: len(ordered) // eta] if found[name] < inf}


def promoted(trials: Mapping[str, Losses], levels: Iterable[int], eta: int) -> dict[str, int]:
    """Return the rung that each trial stands at and may leave by ASHA's rule.

    ASHA (Li et al., MLSys 2020): of the n trials that have reached a rung the best floor(n / eta)
    go on, whenever that is.
    """
    best = {level: top(records(level, trials), eta) for level in levels}
    stand = {name: len(losses) - 1 for name, losses in trials.items()}
    return {n: rung for n, rung in stand.items() if rung in best and n in best[rung]}


def cutoff(found: Iterable[float], eta: int) -> float:
    """Return the loss above which a trial is paused by HyperSched's rule.

    The percentile 1 / eta of what was recorded at the rung, which is 1 - 1 / eta of an accuracy;
    none (infinite) of fewer than two records. Diverged trials are the last.
    """
    known = np.array(sorted(found))
    if len(known) < 2:
        return inf
    finite = known[np.isfinite(known)]
    place = (len(known) - 1) / eta
    if not len(finite) or place > len(finite) - 1:
        return float(finite[-1]) if len(finite) else inf
    return float(np.interp(place, np.arange(len(finite)), finite))


def survivors(
    trials: Mapping[str, Losses], live: Collection[str], levels: Sequence[int], eta: int
) -> tuple[set[str], set[str]]:
    """Return which live trials of a bracket must wait at a rung, and which fail there.

    Successive halving: at each rung the best 1 / eta, one at least, of those that came to it go on,
    once all have come. One that has ended before, or diverged, is among the last.
    """
    waits: set[str] = set()
    lost: set[str] = set()
    field = dict(trials)
    for rung in levels:
        here = {n: losses[rung] if len(losses) > rung else inf for n, losses in field.items()}
        missing = [n for n in field if n in live and len(field[n]) <= rung]
        if missing:
            waits |= {n for n in field if n in live and len(field[n]) - 1 == rung}
            break
        ordered = sorted(here, key=lambda name: (here[name], name))
        kept = ordered[: max(1, len(ordered) // eta)]
        lost |= {n for n in ordered if n not in set(kept) and n in live}
        field = {n: field[n] for n in kept}
    return waits, lost
