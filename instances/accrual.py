"""How an energy budget accrues: the joules that may have been used by each time."""

import numpy as np

from ronda.instances.arrays import Floats
from ronda.instances.budget import Budget, EnergyBudget, StepSeries


class Accrual:
    """Joules that may have been used by each time: continuous and piecewise linear.

    `times_s` are (K,) breakpoints, ascending from 0; from each on (K,) `rates_w` joules a second
    accrue, the last without end. `initial_j` may be used at time 0.
    """

    def __init__(self, times_s: Floats, rates_w: Floats, initial_j: float) -> None:
        self.times_s, self.rates_w, self.initial_j = times_s, rates_w, initial_j
        steps = np.diff(times_s) * rates_w[:-1]
        self._joules = initial_j + np.concatenate([[0.0], np.cumsum(steps)])

    def at(self, time_s: Floats) -> Floats:
        """Return the joules that may have been used by each of the times."""
        k = np.searchsorted(self.times_s, time_s, side="right") - 1
        return np.asarray(self._joules[k] + self.rates_w[k] * (time_s - self.times_s[k]))

    def bearable_w(self, now_s: float, used_j: float, until_s: float) -> float:
        """Return the greatest constant power that overdraws at no time up to `until_s`.

        On each piece the mean power that is allowed from now on, ``(line - used) / (t - now)``,
        is monotone in t, so breakpoints and the end decide.
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


def accrual(budget: Budget, reserved_w: float) -> Accrual:
    """Return how the energy budget of a (consistent) budget accrues.

    `reserved_w` must be left for the rest of the horizon where the pacing does not keep it by
    itself (demand).
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
    """Return the series that the pacing follows; None if it follows none, or it is missing."""
    energy = budget.energy
    named = {
        "series": None if energy is None else energy.accrual,
        "price": budget.energy_price_per_j,
        "carbon": budget.carbon_g_per_j,
    }
    return None if energy is None else named.get(energy.pacing)


def _weights(budget: Budget, energy: EnergyBudget) -> tuple[Floats, Floats]:
    """Return times and relative rates of accrual of a pacing that follows a series."""
    series = paced_by(budget)
    if series is None:
        raise ValueError(f"the pacing {energy.pacing!r} has no series to follow")
    values = np.array(series.values, dtype=float)
    return np.array(series.times_s), values if energy.pacing == "series" else 1.0 / values
