"""Successive halving: the best 1 / eta of the trials that have reached a rung go on.

ASHA applies the rule at each report, Hyperband once all trials of a bracket have reached the rung.
HyperSched pauses trials above the corresponding percentile.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import numpy as np

Losses = Sequence[float]
"""The losses that a trial has reported, from before its first epoch on; infinite if diverged."""


def rungs(first: int, eta: int, reports: int) -> tuple[int, ...]:
    """Return the reports at which trials are compared: first x eta^i below `reports`."""
    found = []
    while first < reports:
        found.append(first)
        first *= eta
    return tuple(found)


def at(rung: int, trials: Mapping[str, Losses]) -> dict[str, float]:
    """Return the loss at a rung of every trial that has reached it, keyed by name."""
    return {name: losses[rung] for name, losses in trials.items() if len(losses) > rung}


def best(losses: Mapping[str, float], eta: int, least: int = 0) -> list[str]:
    """Return the names of the best ``floor(n / eta)`` of n losses, at least `least`, best first.

    Ties are broken by name.
    """
    ordered = sorted(losses, key=lambda name: (losses[name], name))
    return ordered[: max(least, len(ordered) // eta)]


def cutoff(losses: Iterable[float], eta: int) -> float:
    """Return the percentile 1 / eta of the losses at a rung, linearly interpolated.

    It is infinite for fewer than two losses. Diverged trials count with the largest finite loss.
    """
    known = np.array(sorted(losses))
    if len(known) < 2:
        return inf
    finite = known[np.isfinite(known)]
    place = (len(known) - 1) / eta
    if not len(finite) or place > len(finite) - 1:
        return float(finite[-1]) if len(finite) else inf
    return float(np.interp(place, np.arange(len(finite)), finite))
