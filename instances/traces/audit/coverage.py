"""The times that a log covers: holes in its submissions, and jobs missing at its ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.traces.recorded import Recorded

RARE = 1e-3
"""The expected number of such holes, or of such ends, below which one is no chance."""

HOUR_S, DAY, WEEK = 3600.0, 24, 168


@dataclass(frozen=True)
class Hole:
    """A time without submissions, between two of them, and how many such were to be expected."""

    start_s: float
    end_s: float
    expected: float


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
    for before, after in pairwise(np.flatnonzero(busy).tolist()):
        expected = count * float(np.exp(idle[after] - idle[before + 1]))
        if after > before + 1 and expected < RARE:
            first = int(np.searchsorted(hour, after))
            yield Hole(float(submit_s[first - 1]), float(submit_s[first]), expected)


def only_ended(recorded: Recorded) -> tuple[float | None, float | None]:
    """Return from and until when a log has only jobs that ended; None where it does not look so.

    If a log had all that was submitted, of the jobs that began well before its first end some would
    have ended earlier: each does with the frequency of shorter runs in the log. In the same way, of
    the jobs that began before its last moment some would go on.
    """
    runs = [run for own in recorded.runs.values() for run in own]
    ended = [(run.start_s, run.end_s) for run in runs if run.end_s is not None]
    if len(ended) < 2:
        return None, None
    start_s, end_s = np.array(ended).T
    lasted, many = np.sort(end_s - start_s), len(ended) + 1.0
    first_s, last_s = float(end_s.min()), recorded.until_s
    young_s = first_s - start_s[start_s < first_s]
    longer = (many - np.searchsorted(lasted, young_s, side="left")) / many
    shorter = (np.searchsorted(lasted, last_s - start_s, side="right") + 1.0) / many
    begins = np.log(longer).sum() < np.log(RARE)
    stops = len(ended) == len(runs) and np.log(shorter).sum() < np.log(RARE)
    return first_s if begins else None, last_s if stops else None
