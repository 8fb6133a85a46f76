"""Stopping criteria for searches.

Each criterion reports its progress in 0..1, and criteria compose.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ronda.instances.clock import Deadline
from ronda.instances.plan import StopReason, closes, gap_between


@dataclass(frozen=True, slots=True)
class SearchStatus:
    """The progress of a search."""

    generations: int
    stagnant: int  # generations since the incumbent last improved
    best: float  # objective of the incumbent
    generation_s: float  # seconds that the last generation took


Criterion = Callable[[SearchStatus], tuple[float, StopReason]]
"""A function that returns the progress in 0..1 (1: stop) and the reason for a stop."""


def generations(limit: int) -> Criterion:
    """Stop after `limit` generations."""
    return lambda status: (min(1.0, status.generations / limit), StopReason.GENERATION_LIMIT)


def stagnation(limit: int) -> Criterion:
    """Stop when `limit` generations in a row have not improved the incumbent."""
    return lambda status: (min(1.0, status.stagnant / limit), StopReason.STAGNATION)


def deadline(deadline: Deadline, reserve_s: float = 0.0) -> Criterion:
    """Stop when one more generation would leave less than `reserve_s` seconds."""

    def criterion(status: SearchStatus) -> tuple[float, StopReason]:
        if deadline.limit_s is None:
            return 0.0, StopReason.TIME_LIMIT
        if deadline.left() <= reserve_s + status.generation_s:
            return 1.0, StopReason.TIME_LIMIT
        return min(1.0, deadline.elapsed() / deadline.limit_s), StopReason.TIME_LIMIT

    return criterion


def gap(bound: float, relative: float) -> Criterion:
    """Stop when the incumbent is within `relative` of an upper bound on every plan."""

    def criterion(status: SearchStatus) -> tuple[float, StopReason]:
        if closes(bound, status.best, relative):
            return 1.0, StopReason.GAP
        return relative / gap_between(bound, status.best), StopReason.GAP

    return criterion


def first_of(*criteria: Criterion) -> Criterion:
    """Stop as soon as one criterion stops; report the progress of the most advanced one."""
    return lambda status: max((each(status) for each in criteria), key=lambda told: told[0])
