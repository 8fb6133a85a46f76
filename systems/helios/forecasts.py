"""Forecasts of the number of nodes needed: quantiles for each step ahead, and two simple ones.

A forecast made at step t is causal: it uses only the demand up to t. It predicts the *rise* above
the demand at t, either of the demand at a step ahead (``level``) or of the highest demand in all
steps up to it (``peak``). A constant number of awake nodes is enough until the peak exceeds it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.instances.demand import DAY_S, Demand
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load_demand

Target = Literal["level", "peak"]
"""The quantity forecast: the demand of a step, or the highest demand up to that step."""


LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.975)
"""The levels of the quantiles."""


AHEAD = 108
"""The horizon of these controllers in steps: 18 hours of ten minutes."""


@dataclass(frozen=True, slots=True)
class DemandForecast:
    """Quantiles of the rise in demand, for each step at which a forecast is made.

    Attributes
    ----------
    target
        Whether the level or the peak is forecast.
    levels
        Levels of the L quantiles, ascending.
    ahead
        Steps ahead, ascending, shape (H,).
    rise
        Number of nodes above the demand at the step of the forecast, shape (T, H, L). It ascends
        with the level; the rise of a peak also ascends with the steps ahead.
    first
        The first step with a forecast.
    """

    target: Target
    levels: tuple[float, ...]
    ahead: Ints
    rise: Floats
    first: int

    def paths(self, steps: int) -> Floats:
        """Return the rise 1, 2, ... steps ahead, linearly interpolated, shape (L, T, steps)."""
        wanted = np.arange(1, steps + 1)
        after = np.clip(np.searchsorted(self.ahead, wanted), 1, len(self.ahead) - 1)
        before = after - 1
        part = (wanted - self.ahead[before]) / (self.ahead[after] - self.ahead[before])
        part = np.clip(part, 0.0, 1.0)[:, None]
        made = (1 - part) * self.rise[:, before] + part * self.rise[:, after]
        return np.ascontiguousarray(np.moveaxis(made, 2, 0))

    def quantile(self, level: float, steps: int) -> Floats:
        """Return the rise at the lowest level >= `level`, else the highest, shape (T, steps)."""
        index = min(int(np.searchsorted(self.levels, level - 1e-9)), len(self.levels) - 1)
        return np.asarray(self.paths(steps)[index])


def steps_ahead(series: Demand) -> Ints:
    """Return the steps ahead that are forecast, from ten minutes to a day, shape (H,)."""
    hours = (1 / 6, 1 / 3, 0.5, 2 / 3, 1, 1.5, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24)
    steps = np.rint(np.array(hours) * 3600 / series.step_s).astype(np.int64)
    return np.asarray(np.unique(np.maximum(steps, 1)))


def rises(needed: Ints, ahead: int, target: Target) -> Floats:
    """Return the rise in demand `ahead` steps later, shape (T,); NaN beyond its end."""
    made = np.full(len(needed), np.nan)
    if ahead < len(needed):
        after = np.lib.stride_tricks.sliding_window_view(needed[1:], ahead)
        came = after.max(axis=1) if target == "peak" else after[:, -1]
        made[: len(came)] = came - needed[: len(came)]
    return made


def last_value(series: Demand, target: Target) -> DemandForecast:
    """Forecast at every level that demand does not change."""
    ahead = steps_ahead(series)
    rise = np.zeros((len(series.needed), len(ahead), len(LEVELS)))
    return DemandForecast(target, LEVELS, ahead, rise, 0)


def seasonal(series: Demand, target: Target) -> DemandForecast:
    """Forecast the quantiles of previous days' rises in the same hour and the two around it.

    The forecast is updated once a day, from the third day on.
    """
    day, steps = steps_of_day(series), len(series.needed)
    ahead = steps_ahead(series)
    rise = np.zeros((steps, len(ahead), len(LEVELS)))
    for now in range(2 * day, steps, day):
        until = min(now + day, steps)
        rise[now:until] = _of_day(series, target, now)[: until - now]
    return ordered(target, LEVELS, ahead, rise, 2 * day)


def daily(series: Demand, target: Target) -> DemandForecast:
    """Forecast, for each step of any later day, the rises at that hour in the whole series."""
    rise = _of_day(series, target, len(series.needed))
    return ordered(target, LEVELS, steps_ahead(series), rise, 0)


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual demand at each step of the day, and how fast an unusual demand returns to it.

    Attributes
    ----------
    need
        Mean demand in the same hour and the two around it, shape (D,).
    stays
        Share of the distance from the usual demand that is left after 1 .. K steps, shape (K,).
    """

    need: Floats
    stays: Floats

    def foretell(self, step: int, needed: float) -> Floats:
        """Return the expected demand of the next steps if it is `needed` now, shape (K,)."""
        day = len(self.need)
        later = self.need[(step + 1 + np.arange(len(self.stays))) % day]
        return np.asarray(later + self.stays * (needed - self.need[step % day]))


def usual(series: Demand, steps: int) -> Usual:
    """Estimate the usual demand from a series of several days by a first-order regression."""
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
    """Return quantiles of the rises known by step `now`, for each step of the day, shape (D, H, L).

    The quantiles of an hour also use the rises of the two hours around it.
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
    """Return the number of steps in a day."""
    return max(1, round(DAY_S / series.step_s))


def ordered(
    target: Target, levels: tuple[float, ...], ahead: Ints, rise: Floats, first: int
) -> DemandForecast:
    """Return a forecast whose quantiles do not cross and whose peaks never fall."""
    rise = np.sort(rise, axis=2)
    if target == "peak":
        rise = np.maximum.accumulate(rise, axis=1)
    return DemandForecast(target, levels, ahead, rise, first)


def causal(series: Demand, target: Target, name: str, history: str) -> DemandForecast:
    """Return the causal forecast with the given name."""
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
    """Return the expected demand in the next steps of a pool of `nodes` nodes, shape (K,).

    The history is scaled to the number of nodes. Without a history demand does not change.
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
    """Return quantile paths of the peak, scaled to `nodes`, shape (L, D, K), and their levels."""
    series = past(history)
    if series is None:
        return np.zeros((1, 1, AHEAD)), (0.5,)
    forecast = daily(series, "peak")
    return forecast.paths(AHEAD) * (nodes / max(series.total)), forecast.levels


@lru_cache(maxsize=8)
def past(history: str, step_s: float | None = None) -> Demand | None:
    """Return the earlier series with the given name or file; None if `history` is empty.

    Raises
    ------
    InputError
        If the series is shorter than two days or its steps do not have the length `step_s`.
    """
    if not history:
        return None
    series = load_demand(history)
    step_s = series.step_s if step_s is None else step_s
    if series.step_s != step_s or len(series.needed) < 2 * DAY_S / step_s:
        found = f"{len(series.needed)} steps of {series.step_s:g} s"
        expected = f"two days or more of {step_s:g} s each, as step_s says"
        raise InputError(f"history={history}", found, expected)
    return series
