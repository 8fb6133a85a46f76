"""Stopping criteria: progress, reasons, composition."""

import time

import pytest

from ronda.instances.clock import Deadline
from ronda.instances.plan import StopReason
from ronda.solvers import stopping


def status(**fields):
    """Return the status of a search that has just begun, but for what is given."""
    start = {"generations": 0, "stagnant": 0, "best": 0.0, "generation_s": 0.0}
    return stopping.SearchStatus(**(start | fields))


@pytest.mark.parametrize(
    ("criterion", "half", "done", "reason"),
    [
        (stopping.generations(10), {"generations": 5}, {"generations": 10}, "generation_limit"),
        (stopping.stagnation(4), {"stagnant": 2}, {"stagnant": 4}, "stagnation"),
        # 1 % of 100 is asked for; at 98 the gap is 2 %: half way.
        (stopping.gap(100.0, 0.01), {"best": 98.0}, {"best": 99.0}, "gap"),
    ],
)
def test_progress_grows_from_0_to_1(criterion, half, done, reason):
    """Every criterion tells how far it is, stops at 1, and says why."""
    assert criterion(status(**half)) == (pytest.approx(0.5), StopReason(reason))
    assert criterion(status(**done)) == (1.0, StopReason(reason))


def test_a_gap_of_zero_needs_the_bound_itself():
    """Without tolerance only the bound will do."""
    criterion = stopping.gap(100.0, 0.0)
    assert criterion(status(best=99.999))[0] < 1
    assert criterion(status(best=100.0))[0] == 1


def test_the_deadline_leaves_room_for_a_generation_and_the_reserve():
    """Of 10 s, one generation of 6 s fits into what is left, but not beside 5 s of reserve."""
    now = time.perf_counter()
    assert stopping.deadline(Deadline(10, started=now))(status(generation_s=6.0))[0] < 1
    told = stopping.deadline(Deadline(10, started=now), 5.0)(status(generation_s=6.0))
    assert told == (1.0, StopReason.TIME_LIMIT)
    assert stopping.deadline(Deadline(10, started=now - 11))(status())[0] == 1
    assert stopping.deadline(Deadline())(status(generation_s=1e9))[0] == 0


def test_the_first_criterion_that_is_met_gives_the_reason():
    """A combination stops with any of its parts, and is as far as the most advanced one."""
    both = stopping.first_of(stopping.generations(10), stopping.stagnation(4))
    assert both(status(generations=2, stagnant=2))[0] == 0.5
    assert both(status(generations=2, stagnant=4)) == (1.0, StopReason.STAGNATION)
    assert both(status(generations=10, stagnant=1)) == (1.0, StopReason.GENERATION_LIMIT)
