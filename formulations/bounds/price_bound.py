"""A lower bound on the sum of completion times from prices of the cluster's resources.

Let every second t have a price pi_m(t) >= 0 for each resource m (GPUs of a pool; watts).
A schedule uses no more of a resource than its supply u_m(t). So with the use e_jm(t) of job j::

    sum_j C_j  >=  sum_j [ C_j + sum_m int pi_m e_jm dt ]  -  sum_m int pi_m u_m dt

and the bracket is at least v_j, the cost of job j alone if it completes at the time that is the
cheapest under the prices. Energy that accrues can be stored: for every t, the energy used by t
never exceeds the energy supplied by t. Multipliers of these inequalities add up to a price that
never rises, and the formula above holds for it with int pi du, which includes the initial supply.

**Cost of a job alone.** Job j is released at r (submission plus its first pause) and does w_s
units of work in stages s = 1…S. In mode n it pays c_n(t) = sum_m pi_m(t) e_nm per second and works
at rate a_sn. For any multipliers nu_s >= 0 of the work and any completion C::

    C + cost  >=  f(C) = C + sum_s nu_s w_s - int_r^C max(0, max_sn (nu_s a_sn - c_n(t))) dt

because in each second at most one stage advances in one mode. For prices that are constant on
intervals, f is linear on each interval, so its minimum there is at an end. We try several nu and
take the best for each interval, which is valid as the inequality holds for every nu. The least over
all intervals bounds v_j, and so does the job's critical path.

**Choice of nu.** If the job ends where the costs are c', a later end is neither better nor worse
with the right nu: max_sn (nu_s a_sn - c'_n) = 1. So we try nu_s = y_s min_n (1 + c'_n)/b_n for
costs c' that occur, with b_n = max_s y_s a_sn and y fixed by mean prices. The proof does not depend
on this choice.

Steps improve the prices (`ronda.formulations.bounds.price_ascent`). The prices of every step give a
valid bound; the best is returned. Where a job is equally cheap in two modes or seconds, the last
bit of a rate would decide where the steps lead. Processors differ in the last bits of a power,
which has moved a bound by 0.3 %. So all inputs of the steps are rounded to the side that keeps the
bound valid, and sums are made in a fixed order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.bounds.least_needs import Alike, Needs
from ronda.formulations.bounds.price_ascent import Ascent
from ronda.formulations.bounds.resources import Resource, rounded
from ronda.formulations.options.table import unbeaten
from ronda.instances.base import Floats


def total_by_prices(
    needs: Needs, resources: Sequence[Resource], times: Floats, steps: int
) -> tuple[float, Floats]:
    """Return a lower bound on the sum of all completion times, and the prices (M, K) that prove it.

    Parameters
    ----------
    resources
        The resources that jobs share. If some are left out, the bound is weaker.
    times
        The ascending ends (K + 1,) of the intervals of the prices, from 0 s on. After the last,
        which no submission follows, all prices are zero.
    """
    markets = [_Market(alike, needs, resources, times) for alike in needs.kinds]
    ascent = Ascent(resources, times)
    best = -np.inf, ascent.prices
    for _ in range(steps):
        tried, mean = _trial_costs(ascent.prices), mean_prices(ascent.prices, times)
        total, use = 0.0, np.zeros_like(ascent.prices)
        for market in markets:
            value, of_kind = market.cheapest(ascent.prices, tried, mean)
            total += value
            use += of_kind
        total -= float((ascent.prices * ascent.supply).sum())
        best = max(best, (total, ascent.prices), key=lambda pair: pair[0])
        if not ascent.step(total, use, float(needs.submit_s.sum())):
            break
    return best


def mean_prices(prices: Floats, times: Floats) -> Floats:
    """Return the mean of prices (M, K) over time, shape (M,), where they are high."""
    weight = prices.sum(axis=0) * np.diff(times)
    mass = weight.sum()
    return np.asarray((prices * weight).sum(axis=1) / mass if mass > 0 else prices[:, 0])


def product(a: Floats, b: Floats) -> Floats:
    """Return the matrix product of (..., M) and (M, N), the same to the last bit everywhere."""
    return np.asarray(sum(a[..., m, None] * row for m, row in enumerate(b)))


def _trial_costs(prices: Floats) -> Floats:
    """Return the price vectors (Q, M) that give multipliers, first of zeros, then low to high."""
    level = prices.sum(axis=0)
    order = np.argsort(level, kind="stable")
    order = order[level[order] > 0]
    none = np.zeros((1, len(prices)))
    if not len(order):
        return none
    picked = order[np.unique(np.linspace(0, len(order) - 1, 31).astype(int))]
    return np.concatenate([none, prices[:, picked].T])


class Unbeaten(NamedTuple):
    """Modes that may be best for jobs of a kind, and the jobs' shares of work in each stage.

    `use` (M, N) is of each resource in its units; `rate` (S, N); `pause_s` (N,); `share` (J, S).
    """

    use: Floats
    rate: Floats
    pause_s: Floats
    share: Floats


def unbeaten_modes(
    alike: Alike, resources: Sequence[Resource], pause_s: Floats | float = 0.0
) -> Unbeaten:
    """Return the modes of a kind, entered after pauses (N,), that may be best under some prices."""
    some, reached = alike.modes, alike.share.sum(axis=0) > 0
    columns = [
        alike.extra_w if r.pool is None else np.where(some.pool == r.pool, some.gpus, 0.0)
        for r in resources
    ]
    use = rounded(np.stack([c / r.unit for c, r in zip(columns, resources, strict=True)]), -1)
    rate, same = rounded(some.rate, 1)[reached], np.zeros(use.shape[1])
    pause_s = same + pause_s
    keep = unbeaten(same.astype(np.int64), same, np.concatenate([use, -rate, pause_s[None]]))
    share = rounded(alike.share[:, reached], -1)
    return Unbeaten(use[:, keep], rate[:, keep], pause_s[keep], share)


class _Market:
    def __init__(
        self, alike: Alike, needs: Needs, resources: Sequence[Resource], times: Floats
    ) -> None:
        self.use, self.rate, _, self.share = unbeaten_modes(alike, resources)
        self.release = needs.submit_s[alike.rows] + needs.start_s[alike.rows]
        self.earliest = needs.submit_s[alike.rows] + rounded(needs.seconds[alike.rows], -1)
        self.times = times
        self.first = np.searchsorted(times, self.release, side="right") - 1

    def cheapest(self, prices: Floats, tried: Floats, mean: Floats) -> tuple[float, Floats]:
        """Return a lower bound on the total cost of the jobs, and their approximate use (M, K)."""
        weight = ((1.0 + product(mean, self.use)) / np.maximum(self.rate, 1e-300)).min(axis=1)
        pace = (weight[:, None] * self.rate).max(axis=0, initial=1e-300)  # (N,)
        scale = ((1.0 + product(tried, self.use)) / pace).min(axis=1)  # (Q,)
        gain = scale[:, None, None] * pace - product(prices.T, self.use)  # (Q, K, N)
        way = gain.argmax(axis=2)
        slope = np.maximum(np.take_along_axis(gain, way[..., None], axis=2)[..., 0], 0.0)
        work = (self.share * weight).sum(axis=1)
        value, q, end = self._completions(work, scale, slope)
        lasts = np.clip(
            self.times[1:] - np.maximum(self.times[:-1], self.release[:, None]), 0, None
        )
        busy = _run(np.where(slope[q] > 0, lasts, 0.0), pace[way[q]], work, end)
        seconds = np.zeros(slope.shape)
        np.add.at(seconds, q, busy)
        return float(value.sum()), (self.use[:, way] * seconds).sum(axis=1)

    def _completions(
        self, work: Floats, scale: Floats, slope: Floats
    ) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        """Return each job's least cost, and the multiplier and interval that give it, (j,) each.

        With ``A(t) = t - int_0^t slope``, the function f of the module is ``A_q(C) + B_jq``.
        """
        first, release, ends = self.first, self.release, self.times[1:]
        gained = np.cumsum(slope * np.diff(self.times), axis=1)  # (Q, K)
        a_end = ends - gained
        a_start = np.concatenate([np.full((len(scale), 1), self.times[0]), a_end[:, :-1]], axis=1)
        reward = work[:, None] * scale  # (j, Q)
        missed = gained[:, first] - slope[:, first] * (ends[first] - release)
        b = reward + missed.T
        a_low = np.minimum(a_start, a_end)
        best = np.full((len(work), len(ends)), -np.inf)
        for q in range(len(scale)):
            np.maximum(best, a_low[q] + b[:, q, None], out=best)
        jobs = np.arange(len(work))
        at_once = np.minimum(release[:, None] + reward, a_end[:, first].T + b)
        best[jobs, first] = at_once.max(axis=1)
        best[np.arange(len(ends)) < first[:, None]] = np.inf
        # After the horizon f of the first multiplier, made for prices of zero, is constant.
        best[:, -1] = np.minimum(best[:, -1], a_end[0, -1] + b[:, 0])
        end = best.argmin(axis=1)
        trials = np.where((end == first)[:, None], at_once, a_low[:, end].T + b)
        return np.maximum(best[jobs, end], self.earliest), trials.argmax(axis=1), end


def _run(open_s: Floats, pace: Floats, work: Floats, end: NDArray[np.int64]) -> Floats:
    """Return the seconds in which jobs run, among seconds that are worth their price, (j, K).

    A job runs in all these seconds until the interval in which it ends. If an equal share of each
    interval is enough for its work, it runs only in that share; if all are too few, it runs longer.
    """
    done = np.cumsum(open_s * pace, axis=1)
    until_end = np.take_along_axis(done, end[:, None], axis=1)
    within = np.arange(open_s.shape[1]) <= end[:, None]
    share = np.minimum(1.0, work[:, None] / np.maximum(until_end, 1e-300))
    missing = np.clip(work[:, None] - (done - open_s * pace), 0.0, None) / np.maximum(pace, 1e-300)
    long_enough = until_end >= work[:, None]
    return np.where(long_enough, np.where(within, open_s * share, 0.0), np.minimum(open_s, missing))
