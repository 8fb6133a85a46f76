"""What a cluster may draw, and what energy costs, over time."""

from bisect import bisect_right
from typing import Literal

from ronda.instances.base import NonNegative, Positive, Record


class StepSeries(Record, frozen=True, kw_only=True):
    """A quantity that holds each value from its time until the next; the last one without end.

    Attributes
    ----------
    times_s
        Ascending, the first one 0.
    values
        As many as times.
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
    """Energy for a horizon: paced across it, and carried over while it is not spent.

    How much may have been used by time t depends on the pacing; an overspend is impossible under
    each of them. After the horizon the budget grows by ``joules / horizon_s`` a second without end,
    so that every job can end.

    =========  ====================================================================================
    pacing     by time t < horizon_s the cluster may have used
    =========  ====================================================================================
    even       ``credit_j + joules t / horizon_s``
    series     ``credit_j`` and the share of ``joules`` that `accrual` gives until t
    price      likewise, with the reciprocal of the energy price: even in money
    carbon     likewise, with the reciprocal of the carbon intensity: even in grams
    demand     ``credit_j + joules``, less what the idle cluster will still draw; rounds get more
               of it while more jobs are live than on average (see `ronda.horizon.pacing`)
    =========  ====================================================================================

    Attributes
    ----------
    joules
        Energy for the horizon (hosts and idle GPUs included).
    horizon_s
        Length of the horizon.
    credit_j
        Energy that may be used before any has accrued.
    window_s
        How far ahead one round may spend: a round at t gets what will have accrued by
        ``t + window_s`` and is not spent yet.
    pacing
        The rule by which the budget is paced across the horizon.
    accrual
        With the pacing "series": the rate of accrual in any unit; over the horizon it is scaled
        to `joules`.
    """

    joules: Positive
    horizon_s: Positive
    window_s: Positive = 3600.0
    credit_j: NonNegative = 0.0
    pacing: Literal["even", "series", "price", "carbon", "demand"] = "even"
    accrual: StepSeries | None = None

    @property
    def sustained_w(self) -> float:
        """Power in watts that can be drawn indefinitely."""
        return self.joules / self.horizon_s


class Budget(Record, frozen=True, kw_only=True):
    """Limits on the whole cluster (hosts, idle and busy GPUs, sleeping nodes), and energy's costs.

    Attributes
    ----------
    power_cap_w
        Power that is never exceeded, as a step series.
    energy
        Energy budget of the horizon.
    energy_price_per_j
        Price of a joule in any currency, as a step series (0.10 a kWh is 2.78e-8).
    carbon_g_per_j
        Carbon intensity: grams of CO2 equivalent a joule, as a step series (400 g a kWh: 1.11e-4).
    """

    power_cap_w: StepSeries | None = None
    energy: EnergyBudget | None = None
    energy_price_per_j: StepSeries | None = None
    carbon_g_per_j: StepSeries | None = None

    @property
    def series(self) -> tuple[StepSeries, ...]:
        """Everything that changes with time: at each change the driver asks for a decision."""
        accrual = None if self.energy is None else self.energy.accrual
        found = (self.power_cap_w, accrual, self.energy_price_per_j, self.carbon_g_per_j)
        return tuple(series for series in found if series is not None)
