"""Preemptive scheduling of a single machine: the relaxations behind the clairvoyant bounds."""

import heapq

import numpy as np

from ronda.instances.arrays import Floats


def srpt(release: Floats, size: Floats) -> Floats:
    """Return the completion times (J,) under shortest remaining processing time.

    The machine works at speed 1 and may be interrupted at no cost. At every moment SRPT has
    completed at least as many jobs as any other rule could have (Schrage 1968), so no schedule's
    k-th completion is earlier than SRPT's, for any k.
    """
    order = np.argsort(release, kind="stable")
    arrivals: list[tuple[float, float, int]] = list(
        zip(release[order].tolist(), size[order].tolist(), order.tolist(), strict=True)
    )
    done = np.empty(len(release))
    waiting: list[tuple[float, int]] = []  # remaining size, job
    now = 0.0
    for k, (arrival, work, job) in enumerate(arrivals):
        now = max(now, arrival)
        heapq.heappush(waiting, (work, job))
        until = arrivals[k + 1][0] if k + 1 < len(arrivals) else float("inf")
        while waiting and now < until:
            left, first = waiting[0]
            if now + left <= until:
                heapq.heappop(waiting)
                now += left
                done[first] = now
            else:
                heapq.heapreplace(waiting, (left - (until - now), first))
                now = until
    return done


class Supply:
    """How much of a resource there is until each time: continuous, piecewise linear, increasing.

    It is `initial` at time 0 and grows by `rates` (K,) per second from breakpoints `times_s` (K,)
    on, ascending from 0; the last rate holds indefinitely. Rates are not negative.
    """

    def __init__(self, times_s: Floats, rates: Floats, initial: float = 0.0) -> None:
        self.times_s, self.rates = times_s, rates
        steps = np.diff(times_s) * rates[:-1]
        self._total = initial + np.concatenate([[0.0], np.cumsum(steps)])

    def until(self, time_s: Floats) -> Floats:
        """Return what has been supplied until `time_s`."""
        k = np.searchsorted(self.times_s, time_s, side="right") - 1
        return np.asarray(self._total[k] + self.rates[k] * (time_s - self.times_s[k]))

    def when(self, amount: Floats) -> Floats:
        """Return the first time by which there is `amount`; infinite if there never is."""
        k = np.maximum(np.searchsorted(self._total, amount, side="left") - 1, 0)
        short = np.maximum(amount - self._total[k], 0.0)
        rate = self.rates[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = np.where(short > 0, short / np.where(rate > 0, rate, np.nan), 0.0)
        return np.asarray(self.times_s[k] + np.nan_to_num(wait, nan=np.inf))
