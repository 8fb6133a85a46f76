"""Power caps, energy budgets and energy prices of a cluster over time."""

from bisect import bisect_right
from typing import Literal

from ronda.instances.base import NonNegative, Positive, Record


class StepSeries(Record, frozen=True, kw_only=True):
    """A step function of time: each value holds until the next time, and the last one forever.

    Attributes
    ----------
    times_s
        Ascending times, starting at 0.
    values
        The value that holds from each time on.
    """

    times_s: tuple[NonNegative, ...]
    values: tuple[NonNegative, ...]

    def at(self, time_s: float) -> float:
        """Return the value that holds at `time_s`."""
        return self.values[max(0, bisect_right(self.times_s, time_s) - 1)]

    def changes_at(self, time_s: float) -> bool:
        """Return whether the value changes at `time_s`."""
        k = bisect_right(self.times_s, time_s)
        return k > 0 and self.times_s[k - 1] == time_s

    def next_change(self, time_s: float) -> float | None:
        """Return the first time after `time_s` at which the value changes, or None."""
        k = bisect_right(self.times_s, time_s)
        return self.times_s[k] if k < len(self.times_s) else None


class EnergyBudget(Record, frozen=True, kw_only=True):
    """An energy budget that accrues over a horizon; unspent energy is carried over.

    The pacing determines how much energy may have been used by time t. No pacing allows an
    overspend. After the horizon the budget keeps growing by ``joules / horizon_s`` per second, so
    that every job can finish.

    =========  ====================================================================================
    pacing     by time t < horizon_s the cluster may have used
    =========  ====================================================================================
    even       ``credit_j + joules t / horizon_s``
    series     ``credit_j`` plus the share of ``joules`` that `accrual` releases until t
    price      as for series, at a rate of 1 / energy price, which is even in money
    carbon     as for series, at a rate of 1 / carbon intensity, which is even in grams
    demand     ``credit_j + joules`` less what the idle cluster will still draw; rounds get more
               of it when more jobs than average are live (see `ronda.horizon.pacing`)
    =========  ====================================================================================

    Attributes
    ----------
    joules
        Energy for the horizon, including hosts and idle GPUs.
    horizon_s
        Length of the horizon.
    credit_j
        Energy that may be used before any has accrued.
    window_s
        How far ahead one round may spend. A round at t may use all unspent energy that will have
        accrued by ``t + window_s``.
    pacing
        The rule for releasing the budget over the horizon.
    accrual
        The rate of accrual for the pacing "series", in any unit. It is scaled so that its integral
        over the horizon is `joules`.
    """

    joules: Positive
    horizon_s: Positive
    window_s: Positive = 3600.0
    credit_j: NonNegative = 0.0
    pacing: Literal["even", "series", "price", "carbon", "demand"] = "even"
    accrual: StepSeries | None = None

    @property
    def sustained_w(self) -> float:
        """The power in watts that can be drawn indefinitely."""
        return self.joules / self.horizon_s


class Budget(Record, frozen=True, kw_only=True):
    """Limits on the whole cluster (hosts, idle and busy GPUs, sleeping nodes), and energy prices.

    Attributes
    ----------
    power_cap_w
        The most power that the cluster may draw, as a step series.
    energy
        Energy budget of the horizon.
    energy_price_per_j
        Price per joule in any currency, as a step series (0.10 per kWh is 2.78e-8).
    carbon_g_per_j
        Carbon intensity in grams of CO2 equivalent per joule, as a step series (400 g per kWh is
        1.11e-4).
    """

    power_cap_w: StepSeries | None = None
    energy: EnergyBudget | None = None
    energy_price_per_j: StepSeries | None = None
    carbon_g_per_j: StepSeries | None = None

    @property
    def series(self) -> tuple[StepSeries, ...]:
        """All step series; the driver asks for a decision whenever one of them changes."""
        accrual = None if self.energy is None else self.energy.accrual
        found = (self.power_cap_w, accrual, self.energy_price_per_j, self.carbon_g_per_j)
        return tuple(series for series in found if series is not None)
