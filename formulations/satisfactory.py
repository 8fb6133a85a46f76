"""Minimum satisfactory shares: the fewest GPUs with which every deadline is met, over time.

ElasticFlow (Gu et al., ASPLOS 2023), progressive filling: jobs in order of their deadlines; each
takes the smallest level of GPUs at which it can still complete in time on what the jobs before it
leave free, as late as possible at that level and at the level below before.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class FutureGpus:
    """Free GPUs of one pool over time, until the last deadline.

    Parameters
    ----------
    gpus
        GPUs that are free now and stay free.
    due_s
        Deadlines, in seconds from now, above 0. Time is cut at them; at so many quantiles of them
        if there are more than `most_slots`.
    most_slots
        Upper limit on the number of slots.
    """

    def __init__(self, gpus: int, due_s: list[float], most_slots: int = 64) -> None:
        ends = np.unique(np.asarray(due_s, dtype=float))
        if len(ends) > most_slots:
            ends = ends[np.linspace(0, len(ends) - 1, most_slots).astype(int)]
        self._ends = ends
        self._length = np.diff(ends, prepend=0.0)
        self.free: Counts = np.full(len(ends), gpus, dtype=np.int64)

    def fill(self, due_s: float, work: float, gpus: Counts, rate: Floats) -> int | None:
        """Book GPUs for a job; return the step that it gets now (-1: none yet).

        Parameters
        ----------
        due_s
            Seconds until its deadline.
        work
            Its work left.
        gpus, rate
            (L,) its GPU counts, ascending, and work per second at each of them.

        Returns
        -------
        int or None
            None if no level meets the deadline: nothing is booked.
        """
        slots = int(np.searchsorted(self._ends, due_s, side="right"))
        if not slots or work > rate.max() * due_s:
            return None
        length = self._length[:slots]
        most = np.searchsorted(gpus, self.free[:slots], side="right")  # step + 1
        pace = np.concatenate([[0.0], rate])  # pace[step + 1]
        done = pace[most] * length
        if done.sum() < work:
            return None
        for level in range(1, len(gpus) + 1):  # step + 1
            booked = np.minimum(most, level)
            done = pace[booked] * length
            if done.sum() >= work:
                break
        late = np.cumsum(done[::-1])[::-1]  # done from each slot to the deadline
        first = int(np.flatnonzero(late >= work)[-1])
        booked[:first] = np.minimum(most[:first], level - 1)
        before = np.cumsum(pace[booked] * length) - pace[booked] * length
        booked[before >= work] = 0
        self.free[:slots] -= np.concatenate([[0], gpus])[booked]
        return int(booked[0]) - 1
