"""The accrual of an energy budget: the joules that may have been used by each time."""

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.budget import Budget, EnergyBudget, StepSeries


class Accrual:
    """The joules that may have been used by each time, a continuous and piecewise linear function.

    `times_s` (K,) are the breakpoints, ascending from 0. From each breakpoint on, energy accrues at
    the given rate in `rates_w` (K,), in joules per second; the last rate holds forever. `initial_j`
    may be used at time 0.
    """

    def __init__(self, times_s: Floats, rates_w: Floats, initial_j: float) -> None:
        self.times_s, self.rates_w, self.initial_j = times_s, rates_w, initial_j
        steps = np.diff(times_s) * rates_w[:-1]
        self._joules = initial_j + np.concatenate([[0.0], np.cumsum(steps)])

    def at(self, time_s: Floats) -> Floats:
        """Return the joules that may have been used by each time."""
        k = np.searchsorted(self.times_s, time_s, side="right") - 1
        return np.asarray(self._joules[k] + self.rates_w[k] * (time_s - self.times_s[k]))

    def bearable_w(self, now_s: float, used_j: float, until_s: float) -> float:
        """Return the greatest constant power that does not overdraw the budget before `until_s`.

        On each piece, the allowed mean power from now on, ``(line - used) / (t - now)``, is
        monotone in t. Only breakpoints and the end can therefore be critical.
        """
        later = self.times_s[(self.times_s > now_s) & (self.times_s < until_s)]
        least = np.inf
        if np.isfinite(until_s):
            later = np.append(later, until_s)
        else:
            least = float(self.rates_w[-1])
        if later.size:
            least = min(least, float(np.min((self.at(later) - used_j) / (later - now_s))))
        return max(0.0, least)

    def banked_j(self, now_s: float, used_j: float, window_s: float, mean_w: float) -> float:
        """Return the most joules that may be used at once in addition to the even supply.

        If B is the result, ``B + (mean_w - B / window) t`` joules may be used by each t in the
        window, and ``B + bearable t`` by any t, where ``bearable`` are the watts that can be drawn
        indefinitely.
        """
        sustained_w = self.bearable_w(now_s, used_j, np.inf)
        times = np.append(now_s, self.times_s[self.times_s > now_s])
        left, after = self.at(times) - used_j, times - now_s
        most = float(np.min(left - sustained_w * after))
        inside = after < window_s
        rest = (left - mean_w * after)[inside] / (1.0 - after[inside] / window_s)
        return min(max(0.0, most), float(np.min(rest)), mean_w * window_s)

    def lasts_until_s(self, now_s: float, used_j: float, watts: float) -> float:
        """Return the time at which constant power begins to overdraw the budget, or infinity."""
        times = np.append(now_s, self.times_s[self.times_s > now_s])
        left = self.at(times) - used_j - watts * (times - now_s)
        broken = np.flatnonzero(left < 0)
        if broken.size:
            k = int(broken[0])
            if k == 0:
                return now_s
            share = left[k - 1] / (left[k - 1] - left[k])
            return float(times[k - 1] + share * (times[k] - times[k - 1]))
        short_w = watts - float(self.rates_w[-1])
        return float(times[-1] + left[-1] / short_w) if short_w > 0 else float("inf")


def accrual(budget: Budget, reserved_w: float) -> Accrual:
    """Return the accrual of the energy budget in a (consistent) budget.

    With the pacing "demand", `reserved_w` watts are reserved for the rest of the horizon.
    """
    energy = budget.energy
    if energy is None:
        raise ValueError("there is no energy budget")
    last_w = energy.sustained_w
    if energy.pacing == "even":
        return Accrual(np.zeros(1), np.array([last_w]), energy.credit_j)
    if energy.pacing == "demand":
        initial_j = energy.credit_j + (last_w - reserved_w) * energy.horizon_s
        return Accrual(np.array([0.0, energy.horizon_s]), np.array([reserved_w, last_w]), initial_j)
    times_s, weights = _weights(budget, energy)
    within = times_s < energy.horizon_s
    times_s, weights = np.append(times_s[within], energy.horizon_s), weights[within]
    rates_w = weights * (energy.joules / float(weights @ np.diff(times_s)))
    return Accrual(times_s, np.append(rates_w, last_w), energy.credit_j)


def paced_by(budget: Budget) -> StepSeries | None:
    """Return the series that the pacing follows, or None if there is none."""
    energy = budget.energy
    named = {
        "series": None if energy is None else energy.accrual,
        "price": budget.energy_price_per_j,
        "carbon": budget.carbon_g_per_j,
    }
    return None if energy is None else named.get(energy.pacing)


def _weights(budget: Budget, energy: EnergyBudget) -> tuple[Floats, Floats]:
    """Return the times and the relative rates of accrual of a pacing that follows a series."""
    series = paced_by(budget)
    if series is None:
        raise ValueError(f"the pacing {energy.pacing!r} has no series to follow")
    values = np.array(series.values, dtype=float)
    return np.array(series.times_s), values if energy.pacing == "series" else 1.0 / values
