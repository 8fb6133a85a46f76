"""What a cluster may draw: power caps and energy budgets over time."""

from bisect import bisect_right

from ronda.instances.base import NonNegative, Positive, Record


class StepSeries(Record, frozen=True, kw_only=True):
    """A quantity that holds each value from its time until the next; the last one for ever.

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

    def next_change(self, time_s: float) -> float | None:
        """Return the first time after `time_s` at which the value changes, or None."""
        k = bisect_right(self.times_s, time_s)
        return self.times_s[k] if k < len(self.times_s) else None


class EnergyBudget(Record, frozen=True, kw_only=True):
    """Energy that accrues evenly and is carried over when it is not spent.

    By time t the cluster may have used at most ``credit_j + joules * t / horizon_s``; after the
    horizon the accrual goes on at the same rate, so that every job can end.

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
    """

    joules: Positive
    horizon_s: Positive
    window_s: Positive = 3600.0
    credit_j: NonNegative = 0.0

    @property
    def sustained_w(self) -> float:
        """Power in watts that can be drawn for ever."""
        return self.joules / self.horizon_s

    def allowed_by(self, time_s: float) -> float:
        """Return the joules that may have been used by `time_s`."""
        return self.credit_j + self.sustained_w * time_s


class Budget(Record, frozen=True, kw_only=True):
    """Limits on the whole cluster (hosts, idle and busy GPUs, sleeping nodes).

    Attributes
    ----------
    power_cap_w
        Power that is never exceeded, as a step series.
    energy
        Energy budget of the horizon.
    """

    power_cap_w: StepSeries | None = None
    energy: EnergyBudget | None = None
