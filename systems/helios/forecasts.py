"""Forecasts of how many nodes are needed: quantiles by step ahead, and two simple ones.

A forecast made at step t uses only the needs until t: it is causal. It foretells the *rise* above
the need at t, of the need at a step ahead (``level``) or of the largest need in all steps up to it
(``peak``): a number of nodes that stays awake is enough until the peak exceeds it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from ronda.instances.arrays import Floats, Ints
from ronda.instances.demand import DAY_S, Demand
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load_demand

Target = Literal["level", "peak"]
"""What is foretold: a step's own need, or the most until then."""


LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.975)
"""Levels of the quantiles."""


STEP_S = 600.0
"""Length of a step of controllers with a queue, as in Helios."""


HOURS_AHEAD = 18
"""How far ahead they look."""


AHEAD = HOURS_AHEAD * round(3600 / STEP_S)
"""The same in steps."""


@dataclass(frozen=True, slots=True)
class DemandForecast:
    """Quantiles of the rise, for each step at which they are asked.

    Attributes
    ----------
    target
        The level or the peak.
    levels
        The levels of the L quantiles, ascending.
    ahead
        (H,) steps ahead, ascending.
    rise
        (T, H, L) nodes above the need at the step of the forecast; they ascend with the level,
        and those of a peak with the steps ahead.
    first
        The first step with a forecast.
    """

    target: Target
    levels: tuple[float, ...]
    ahead: Ints
    rise: Floats
    first: int

    def paths(self, steps: int) -> Floats:
        """Return (L, T, steps) the rise of 1, 2, ... steps ahead, by straight lines in between."""
        wanted = np.arange(1, steps + 1)
        after = np.clip(np.searchsorted(self.ahead, wanted), 1, len(self.ahead) - 1)
        before = after - 1
        part = (wanted - self.ahead[before]) / (self.ahead[after] - self.ahead[before])
        part = np.clip(part, 0.0, 1.0)[:, None]
        made = (1 - part) * self.rise[:, before] + part * self.rise[:, after]
        return np.ascontiguousarray(np.moveaxis(made, 2, 0))

    def quantile(self, level: float, steps: int) -> Floats:
        """Return (T, steps) the rise at the least level that is as high, or the highest."""
        index = min(int(np.searchsorted(self.levels, level - 1e-9)), len(self.levels) - 1)
        return np.asarray(self.paths(steps)[index])


def steps_ahead(series: Demand) -> Ints:
    """Return (H,) the steps ahead of forecasts: from ten minutes to a day."""
    hours = (1 / 6, 1 / 3, 0.5, 2 / 3, 1, 1.5, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24)
    steps = np.rint(np.array(hours) * 3600 / series.step_s).astype(np.int64)
    return np.asarray(np.unique(np.maximum(steps, 1)))


def rises(needed: Ints, ahead: int, target: Target) -> Floats:
    """Return (T,) the rise of the need `ahead` steps later; NaN where the series has ended."""
    made = np.full(len(needed), np.nan)
    if ahead < len(needed):
        after = np.lib.stride_tricks.sliding_window_view(needed[1:], ahead)
        came = after.max(axis=1) if target == "peak" else after[:, -1]
        made[: len(came)] = came - needed[: len(came)]
    return made


def last_value(series: Demand, target: Target) -> DemandForecast:
    """Foretell at every level that the need stays as it is."""
    ahead = steps_ahead(series)
    rise = np.zeros((len(series.needed), len(ahead), len(LEVELS)))
    return DemandForecast(target, LEVELS, ahead, rise, 0)


def seasonal(series: Demand, target: Target) -> DemandForecast:
    """Foretell the quantiles of the rises of the days before, in this hour and the two around it.

    It learns once a day, from the third day on.
    """
    day, steps = steps_of_day(series), len(series.needed)
    ahead = steps_ahead(series)
    rise = np.zeros((steps, len(ahead), len(LEVELS)))
    for now in range(2 * day, steps, day):
        until = min(now + day, steps)
        rise[now:until] = _of_day(series, target, now)[: until - now]
    return ordered(target, LEVELS, ahead, rise, 2 * day)


def daily(series: Demand, target: Target) -> DemandForecast:
    """Foretell, for each step of any later day, the rises at that hour in the whole series."""
    rise = _of_day(series, target, len(series.needed))
    return ordered(target, LEVELS, steps_ahead(series), rise, 0)


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual need by step of the day, and how fast an unusual one returns to it.

    Attributes
    ----------
    need
        (D,) mean need of the hour and the two around it.
    stays
        (K,) the share of the distance from the usual need that is left after 1 .. K steps.
    """

    need: Floats
    stays: Floats

    def foretell(self, step: int, needed: float) -> Floats:
        """Return (K,) the expected need of the next steps, where `needed` is needed now."""
        day = len(self.need)
        later = self.need[(step + 1 + np.arange(len(self.stays))) % day]
        return np.asarray(later + self.stays * (needed - self.need[step % day]))


def usual(series: Demand, steps: int) -> Usual:
    """Learn the usual need from a series of some days, by a first-order regression."""
    day, hour = steps_of_day(series), max(1, round(3600 / series.step_s))
    time, needed = np.arange(len(series.needed)) % day, series.needed_nodes
    need = np.empty(day)
    for at in range(0, day, hour):
        need[at : at + hour] = needed[(time - at + hour) % day < 3 * hour].mean()
    off = needed - need[time]
    square = max(float(off @ off), 1e-12)
    kept = [float(off[:-k] @ off[k:]) / square for k in range(1, steps + 1)]
    return Usual(need, np.clip(kept, 0.0, 1.0))


def _of_day(series: Demand, target: Target, now: int) -> Floats:
    """Return (D, H, L) quantiles of the rises known by step `now`, by step of the day.

    Each hour has the rises of itself and of the two around it.
    """
    day, hour = steps_of_day(series), max(1, round(3600 / series.step_s))
    ahead = steps_ahead(series)
    rise = np.zeros((day, len(ahead), len(LEVELS)))
    time = np.arange(now) % day
    for k, h in enumerate(ahead.tolist()):
        known = rises(series.needed_nodes, h, target)[: max(0, now - h)]
        for at in range(0, day, hour):
            rows = (time[: len(known)] - at + hour) % day < 3 * hour
            if rows.any():
                rise[at : at + hour, k] = np.quantile(known[rows], LEVELS)
    return rise


def steps_of_day(series: Demand) -> int:
    """Return how many steps a day has."""
    return max(1, round(DAY_S / series.step_s))


def ordered(
    target: Target, levels: tuple[float, ...], ahead: Ints, rise: Floats, first: int
) -> DemandForecast:
    """Return a forecast whose quantiles do not cross, nor peaks fall with the steps ahead."""
    rise = np.sort(rise, axis=2)
    if target == "peak":
        rise = np.maximum.accumulate(rise, axis=1)
    return DemandForecast(target, levels, ahead, rise, first)


def causal(series: Demand, target: Target, name: str, history: str) -> DemandForecast:
    """Return a causal forecast by its name."""
    if name != "boosted":
        if history:
            expected = "forecast=boosted, which learns from one"
            raise InputError("--policy", f"history={history} with forecast={name}", expected)
        return {"seasonal": seasonal, "last": last_value}[name](series, target)
    from ronda.systems.helios.boosted import boosted

    past = load_demand(history) if history else None
    if past is not None and past.step_s != series.step_s:
        expected = f"steps of {series.step_s:g} s, as {series.name} has"
        raise InputError(f"history={history}", f"steps of {past.step_s:g} s", expected)
    return boosted(series, target, history=past)


def foretold(history: str, step: int, needed: int, nodes: int) -> Floats:
    """Return (K,) the need that is expected in the next steps of a pool of `nodes`.

    The series is scaled to the pool's nodes. Without a series the need stays as it is.
    """
    learnt = _usual(history)
    if learnt is None:
        return np.full(AHEAD, float(needed))
    known, most = learnt
    return known.foretell(step, needed * most / nodes) * (nodes / most)


@lru_cache(maxsize=8)
def _usual(history: str) -> tuple[Usual, int] | None:
    series = past(history)
    return None if series is None else (usual(series, AHEAD), max(series.total))


@lru_cache(maxsize=8)
def daily_paths(history: str, nodes: int) -> tuple[Floats, tuple[float, ...]]:
    """Return (L, D, K) quantile paths of the peak by step of the day, scaled so; and levels."""
    series = past(history)
    if series is None:
        return np.zeros((1, 1, AHEAD)), (0.5,)
    forecast = daily(series, "peak")
    return forecast.paths(AHEAD) * (nodes / max(series.total)), forecast.levels


@lru_cache(maxsize=8)
def past(history: str) -> Demand | None:
    """Return an earlier series by its name or file; None without one.

    Raises
    ------
    InputError
        If it is shorter than two days, or its steps have another length.
    """
    if not history:
        return None
    series = load_demand(history)
    if series.step_s != STEP_S or len(series.needed) < 2 * DAY_S / STEP_S:
        found = f"{len(series.needed)} steps of {series.step_s:g} s"
        raise InputError(f"history={history}", found, f"two days or more of {STEP_S:g} s each")
    return series
