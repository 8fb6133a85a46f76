"""A lower bound on what the judged jobs wait in any schedule of a space.

Let job j take a_j slots from its start to its end, and let the nodes have cap(t) slots beside all
jobs that are not judged. For any prices lambda(t) >= 0, no schedule waits less than

    sum_j min_{s >= ready_j} [w_j (s - ready_j) + a_j int_s^{s + p_j} lambda] - int lambda cap.

Prices are constant between moments, so that the minimum is where the job starts at once, or where
it starts or ends at a moment; all of these are tried. Good prices make the bound tight. They begin
with the worth of a slot while the replay has a queue, whose last job in line gains w / (a p) for
each second, and are improved by a quasi-Newton method (L-BFGS-B) on a bound in which each job's
minimum is smooth. The bound that counts has the true minima.

Where there is one slot, shortest remaining processing time bounds the sum of all ends as well
(`ronda.formulations.bounds.clairvoyant.srpt`).
"""

from collections.abc import Callable, Sequence
from math import floor, inf

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from ronda.formulations.bounds.clairvoyant import srpt
from ronda.instances.base import Floats
from ronda.questions.judge.queue import JudgedJobs
from ronda.questions.judge.space import NodeUse, Space

STAGES = ((200, 0.18, 40), (200, 0.06, 40), (500, 0.024, 60))
"""Number of moments, smoothing in mean lengths of jobs, and steps of each stage."""

AHEAD = 300
"""Moments after a job is ready that are tried; a later start costs at least the wait until then."""


def least_wait(
    jobs: JudgedJobs,
    space: Space,
    start_s: Floats,
    progress: Callable[[str], None],
) -> float:
    """Return a lower bound on what jobs wait in a space, rounded down to milliseconds.

    `start_s` are the starts of a schedule, shape (J,), from which the first prices follow.
    """
    slot = _Slots(jobs, space)
    bound = 0.0
    if slot.count.max(initial=0.0) <= 1.0 and (slot.size == 1.0).all():
        ends = srpt(jobs.ready_s, jobs.lasts_s)
        total = float(ends.sum() - (jobs.ready_s + jobs.lasts_s).sum())
        bound = max(0.0, total) * float(jobs.weight.min())
    else:
        prices, moments = np.zeros(1), np.array([0.0, inf])
        mean_s = max(1.0, float(jobs.lasts_s.mean()))
        for stage, (many, smooth, steps) in enumerate(STAGES):
            progress(f"bound: {stage + 1} of {len(STAGES)}, {bound / 3600:,.1f} h so far")
            # Half of the moments are even in time, and half where jobs come and go.
            events = np.concatenate([jobs.ready_s, start_s, start_s + jobs.lasts_s])
            busy = np.quantile(events, np.linspace(0, 1, many // 2))
            even = np.linspace(events.min(), events.max() + 1.0, many // 2)
            dual = _Dual(jobs, slot, np.unique(np.concatenate([busy, even])))
            middle = (dual.moments[1:] + dual.moments[:-1]) / 2
            prices = prices[np.searchsorted(moments, middle, side="right").clip(1, len(prices)) - 1]
            prices = prices if stage else dual.worth(start_s)
            bound = max(bound, dual.bound(prices))
            prices, moments = dual.improved(prices, smooth * mean_s, steps), dual.moments
            bound = max(bound, dual.bound(prices))
    return max(0.0, floor(1000.0 * bound * (1 - 1e-9)) / 1000.0)


class _Slots:
    """The sizes of jobs in slots, and the slots that there are from each moment to the next.

    If all jobs need the same of each node, a slot is that. Else it is a device, and a node has as
    many as the largest sum of the jobs' amounts that its free devices allow.
    """

    def __init__(self, jobs: JudgedJobs, space: Space) -> None:
        amounts = sorted({shape.amounts for shape in jobs.shapes})
        alike, need = len(amounts) == 1, np.array(amounts[0])
        made = _made_up([int(own[0]) for own in amounts], list(space.values()))
        self.times_s = np.unique(np.concatenate([use.times_s for use in space.values()]))
        self.count = np.zeros(len(self.times_s) - 1)
        for use in space.values():
            free = np.maximum(use.most[0] - use.used, 0.0) + 1e-6
            if alike:
                own = np.floor((free[:, need > 0] / need[need > 0]).min(axis=1))
            else:
                own = made[free[:, 0].astype(int)]
            last = np.searchsorted(use.times_s, self.times_s[:-1], side="right") - 1
            self.count += own[last]
        each = [shape.nodes * (1.0 if alike else shape.amounts[0]) for shape in jobs.shapes]
        self.size = np.array(each)

    def until(self, moments: Floats) -> Floats:
        """Return the slot-seconds before each of some moments, shape (G,)."""
        times_s = np.minimum(self.times_s, moments[-1])
        whole = np.concatenate([[0.0], np.cumsum(self.count * np.diff(times_s))])
        return np.asarray(np.interp(moments, times_s, whole))


def _made_up(amounts: Sequence[int], space: Sequence[NodeUse]) -> Floats:
    """Return the largest sum of amounts that is at most k, for each k up to a node's devices."""
    most = max(int(use.most[0, 0]) for use in space) + 1
    made = np.arange(most + 1) == 0
    for k in range(1, most + 1):
        made[k] = any(made[k - amount] for amount in amounts if amount <= k)
    return np.maximum.accumulate(np.where(made, np.arange(most + 1.0), 0.0))


class _Dual:
    """The bound as a function of prices."""

    def __init__(self, jobs: JudgedJobs, slot: _Slots, moments: Floats) -> None:
        self.jobs, self.size, self.moments = jobs, slot.size, moments
        self.lasts_s, self.supply = np.diff(moments), np.diff(slot.until(moments))
        ready, lasts, last = jobs.ready_s[:, None], jobs.lasts_s[:, None], len(moments) - 1
        first = np.searchsorted(moments, jobs.ready_s, side="right")
        at = np.minimum(first[:, None] + np.arange(AHEAD), last)
        starts = np.concatenate(
            [ready, moments[at], np.maximum(moments[at] - lasts, ready)], axis=1
        )
        self.wait = jobs.weight[:, None] * (starts - ready)
        tried_s = moments[at[:, -1]] - jobs.lasts_s - jobs.ready_s
        self.later = np.where(at[:, -1] == last, inf, jobs.weight * np.maximum(tried_s, 0.0))
        self.start, self.started_s = self._cell(starts)
        self.end, self.ended_s = self._cell(starts + lasts)

    def _cell(self, times_s: Floats) -> tuple[np.ndarray, Floats]:
        """Return the interval between moments of each time, and the seconds passed of it."""
        k = np.searchsorted(self.moments, times_s, side="right") - 1
        k = k.clip(0, len(self.lasts_s) - 1)
        return k, np.minimum(times_s, self.moments[-1]) - self.moments[k]

    def worth(self, start_s: Floats) -> Floats:
        """Return first prices from the starts of a schedule."""
        waits = (start_s > self.jobs.ready_s) & (self.jobs.lasts_s > 0)
        cells = self._cell(start_s)[0]
        gain = np.full(len(self.lasts_s), inf)
        each = self.jobs.weight / (self.size * np.maximum(self.jobs.lasts_s, 1.0))
        np.minimum.at(gain, cells[waits], each[waits])
        edges = np.searchsorted(np.sort(self.jobs.ready_s), self.moments)
        queue = edges - np.searchsorted(np.sort(start_s), self.moments)
        prices, ahead, last = np.zeros(len(gain)), 0.0, 0.0
        for k in range(len(gain) - 1, -1, -1):
            last = gain[k] if np.isfinite(gain[k]) else last
            ahead = ahead if queue[k + 1] > 0 else 0.0
            prices[k] = ahead + 0.5 * last * self.lasts_s[k] if queue[k] > 0 else 0.0
            ahead += last * self.lasts_s[k]
        return prices

    def _costs(self, prices: Floats) -> Floats:
        """Return what each tried start of each job costs, shape (J, S)."""
        paid = np.concatenate([[0.0], np.cumsum(prices * self.lasts_s)])
        until = paid[self.end] + self.ended_s * prices[self.end]
        since = paid[self.start] + self.started_s * prices[self.start]
        return np.asarray(self.wait + self.size[:, None] * (until - since))

    def bound(self, prices: Floats) -> float:
        least = np.minimum(self._costs(prices).min(axis=1), self.later)
        return float(least.sum() - prices @ self.supply)

    def improved(self, prices: Floats, smooth_s: float, steps: int) -> Floats:
        """Return better prices, after a number of steps that does not depend on the clock."""
        scale = np.sqrt(self.lasts_s)

        def value(x: Floats) -> tuple[float, Floats]:
            return self._smooth(x / scale, smooth_s, scale)

        free = [(0.0, None)] * len(prices)
        found = fmin_l_bfgs_b(value, prices * scale, bounds=free, m=20, maxiter=steps)[0]
        return np.asarray(np.maximum(found, 0.0) / scale)

    def _smooth(self, prices: Floats, smooth_s: float, scale: Floats) -> tuple[float, Floats]:
        """Return the smooth bound and its gradient, both negative and in units of 10^5 s."""
        costs = self._costs(prices)
        least = costs.min(axis=1)
        share = np.exp((least[:, None] - costs) / smooth_s)
        whole = share.sum(axis=1)
        value = (least - smooth_s * np.log(whole)).sum() - prices @ self.supply
        share *= (self.size / whole)[:, None]
        cells, many = len(prices), share.ravel()
        gradient = -self.supply
        passed = np.zeros(cells)
        for sign, cell, seconds in ((1, self.end, self.ended_s), (-1, self.start, self.started_s)):
            passed += sign * np.bincount(cell.ravel(), many, cells)
            gradient = gradient + sign * np.bincount(cell.ravel(), many * seconds.ravel(), cells)
        after = np.cumsum(passed[::-1])[::-1]
        gradient += self.lasts_s * np.append(after[1:], 0.0)
        return -value / 1e5, -gradient / scale / 1e5
