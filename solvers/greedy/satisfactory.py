"""Minimum satisfactory shares: the fewest GPUs with which every deadline is met, over time.

ElasticFlow (Gu et al., ASPLOS 2023), progressive filling: jobs in order of their deadlines; each
takes the smallest level of GPUs at which it can still complete in time on what the jobs before it
leave free, as late as possible at that level and at the level below before.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class FutureGpus:
    """Free GPUs of one pool over time, until the last deadline.

    Time is cut at the deadlines `due_s` (seconds from now, above 0), or at quantiles of them if
    there are more than `most_slots`.
    """

    def __init__(self, gpus: int, due_s: list[float], most_slots: int = 64) -> None:
        ends = np.unique(np.asarray(due_s, dtype=float))
        if len(ends) > most_slots:
            ends = ends[np.linspace(0, len(ends) - 1, most_slots).astype(int)]
        self._ends: list[float] = ends.tolist()
        self._length = np.diff(ends, prepend=0.0)
        self.free: Counts = np.full(len(ends), gpus, dtype=np.int64)
        self._counts: dict[tuple[int, ...], Counts] = {}

    def fill(
        self, due_s: float, work: float, gpus: tuple[int, ...], rate: tuple[float, ...]
    ) -> int | None:
        """Book GPUs for a job; return the step that it gets now (-1: none yet).

        None if no level meets the deadline: nothing is booked. `gpus` and `rate` (L,) are the
        job's GPU counts, ascending, and its work per second at each of them.
        """
        slots = bisect_right(self._ends, due_s)
        if not slots or work > max(rate) * due_s:
            return None
        length, free = self._length[:slots], self.free[:slots]
        counts, pace = self._of(gpus), np.array((0.0, *rate))  # of step + 1
        most = counts.searchsorted(free, side="right") - 1
        if np.add.reduce(pace.take(most) * length) < work:
            return None
        for level in range(1, len(counts)):
            booked = np.minimum(most, level)
            done = pace.take(booked) * length
            if np.add.reduce(done) >= work:
                break
        late = done[::-1].cumsum()[::-1]  # done from each slot to the deadline
        first = max(int(np.count_nonzero(late >= work)) - 1, 0)
        if first:
            booked[:first] = np.minimum(most[:first], level - 1)
            done = pace.take(booked) * length
        before = done.cumsum() - done
        booked[before >= work] = 0
        free -= counts.take(booked)
        return int(booked[0]) - 1

    def _of(self, gpus: tuple[int, ...]) -> Counts:
        """Return GPU counts after a 0, as an array; many jobs have the same."""
        if gpus not in self._counts:
            self._counts[gpus] = np.array((0, *gpus))
        return self._counts[gpus]
