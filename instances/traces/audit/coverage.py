"""The times that a log covers: holes in its submissions, and jobs missing at its ends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.traces.logs.instance import ReadLog

RARE = 1e-3
"""The expected number of such holes, or of such ends, below which one is no chance."""

HOUR_S, DAY, WEEK = 3600.0, 24, 168


@dataclass(frozen=True)
class Hole:
    """A time without submissions, between two of them, and how many such were to be expected."""

    start_s: float
    end_s: float
    expected: float


@dataclass(frozen=True)
class LogEnds:
    """What is missing at the ends of a log.

    Attributes
    ----------
    only_ended_from_s, only_ended_until_s
        The log has only jobs that ended from the one time on, and until the other; None if it does
        not look so.
    running
        Jobs that ran when the log ended.
    half_from_s, half_until_s
        First and last time at which half of the usual GPUs were in use: before and after them, the
        log tells of only a part of what ran. None without starts.
    """

    only_ended_from_s: float | None
    only_ended_until_s: float | None
    running: int
    half_from_s: float | None
    half_until_s: float | None


def holes(submit_s: Floats) -> Iterator[Hole]:
    """Yield the holes between submissions (ascending) that chance does not explain.

    An hour has a submission with the frequency of all hours of its place in the week; in a log of
    less than three weeks, of the day; of less than three days, of any. A hole's hours are taken as
    independent, and its expected number is that of all hours of the log to begin such a one.
    """
    hour = np.floor((submit_s - submit_s[0]) / HOUR_S).astype(int)
    count = int(hour[-1]) + 1
    busy = np.zeros(count, bool)
    busy[hour] = True
    cycle = next((long for long in (WEEK, DAY) if count >= 3 * long), 1)
    place = np.arange(count) % cycle
    often = (np.bincount(place, busy) + 1.0) / (np.bincount(place) + 2.0)
    idle = np.append(0.0, np.cumsum(np.log1p(-often)[place]))
    active = np.flatnonzero(busy)
    for before, after in pairwise(active.tolist()):
        expected = count * float(np.exp(idle[after] - idle[before + 1]))
        if after > before + 1 and expected < RARE:
            first = int(np.searchsorted(hour, after))
            yield Hole(float(submit_s[first - 1]), float(submit_s[first]), expected)


def ends_of(read: ReadLog, held_s: Floats, held: Floats) -> LogEnds:
    """Return what is missing at the ends of a log, of which so many GPUs were in use over time.

    If a log had all that was submitted, of the jobs that began well before its first end some would
    have ended earlier: each does with the frequency of shorter runs in the log. In the same way, of
    the jobs that began before its last moment some would go on.
    """
    runs = [run for own in read.recorded.runs.values() for run in own]
    ended = [(run.start_s, run.end_s) for run in runs if run.end_s is not None]
    running = len(runs) - len(ended)
    only: list[float | None] = [None, None]
    if len(ended) > 1:
        start_s, end_s = np.array(ended).T
        lasted = np.sort(end_s - start_s)
        first_s, last_s, many = float(end_s.min()), read.recorded.until_s, len(lasted) + 1.0
        young = first_s - start_s[start_s < first_s]
        longer = (many - np.searchsorted(lasted, young, side="left")) / many
        only[0] = first_s if np.log(longer).sum() < np.log(RARE) else None
        shorter = (np.searchsorted(lasted, last_s - start_s, side="right") + 1.0) / many
        only[1] = last_s if not running and np.log(shorter).sum() < np.log(RARE) else None
    half = _half(held_s, held)
    return LogEnds(only[0], only[1], running, half[0], half[1])


def _half(held_s: Floats, held: Floats) -> Sequence[float | None]:
    """Return the first and last time with half of the median use, by time, while there was any."""
    if not held.any():
        return None, None
    lasts = np.diff(held_s)
    order = np.argsort(held[:-1])
    through = np.cumsum((lasts * (held[:-1] > 0))[order])
    usual = held[order[np.searchsorted(through, through[-1] / 2)]]
    enough = np.flatnonzero(held >= usual / 2)
    return float(held_s[enough[0]]), float(held_s[min(enough[-1] + 1, len(held_s) - 1)])
