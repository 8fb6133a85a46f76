"""Successive halving: of the trials that came to a rung, the best 1 / eta go on.

ASHA asks again with each report, Hyperband once all of a bracket have come to the rung, and
HyperSched pauses those above the percentile that this is.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import numpy as np

Losses = Sequence[float]
"""The losses that a trial has reported, that before the first epoch first; infinite: diverged."""


def rungs(first: int, eta: int, reports: int) -> tuple[int, ...]:
    """Return the reports at which trials are compared: first x eta^i, below the last one."""
    found = []
    while first < reports:
        found.append(first)
        first *= eta
    return tuple(found)


def at(rung: int, trials: Mapping[str, Losses]) -> dict[str, float]:
    """Return the loss at a rung of every trial that came to it, by name."""
    return {name: losses[rung] for name, losses in trials.items() if len(losses) > rung}


def best(losses: Mapping[str, float], eta: int, least: int = 0) -> list[str]:
    """Return the names of the best ``floor(n / eta)`` of n losses, `least` at least; ties by name.

    The best comes first.
    """
    ordered = sorted(losses, key=lambda name: (losses[name], name))
    return ordered[: max(least, len(ordered) // eta)]


def cutoff(losses: Iterable[float], eta: int) -> float:
    """Return the percentile 1 / eta of the losses at a rung, linear in between.

    It is infinite for fewer than two. Diverged trials are the last, and the largest loss that is
    finite stands for theirs.
    """
    known = np.array(sorted(losses))
    if len(known) < 2:
        return inf
    finite = known[np.isfinite(known)]
    place = (len(known) - 1) / eta
    if not len(finite) or place > len(finite) - 1:
        return float(finite[-1]) if len(finite) else inf
    return float(np.interp(place, np.arange(len(finite)), finite))
