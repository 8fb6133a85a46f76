"""Forecasts of a demand series by LightGBM: a causal one with quantiles, and Helios's leaking one.

Ke et al.: *LightGBM: A Highly Efficient Gradient Boosting Decision Tree*, NeurIPS 2017. Training
uses one thread and fixed seeds, so the same series always gives the same forecast.
"""

from datetime import datetime
from typing import Any

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.demand import Demand
from ronda.systems.helios.forecasts import (
    LEVELS,
    DemandForecast,
    Target,
    ordered,
    rises,
    steps_ahead,
    steps_of_day,
)

ROUNDS = 80
"""Trees per quantile."""

_TREES: dict[str, Any] = {
    "num_leaves": 15,
    "min_data_in_leaf": 200,
    "learning_rate": 0.1,
    "feature_fraction": 0.8,
    "max_bin": 63,
}
_ONE_THREAD: dict[str, Any] = {
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "seed": 0,
    "verbose": -1,
}


def boosted(
    series: Demand,
    target: Target,
    *,
    history: Demand | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> DemandForecast:
    """Forecast quantiles with one model per level, which takes the step ahead as a feature.

    The models are retrained every third day on the part of the series seen so far and on `history`,
    a series with steps of the same length, if it is given. Without a history the first two days
    have no forecast. The features are the target's time of day and week and the last day's demand;
    all of them are known at the step of the forecast.
    """
    import lightgbm

    day, steps = steps_of_day(series), len(series.needed)
    ahead = steps_ahead(series)
    own = [(_features(series, h), rises(series.needed_nodes, h, target)) for h in ahead.tolist()]
    old = [] if history is None else _rows(history, ahead.tolist(), target)
    first = day // 24 if history is not None else 2 * day
    rise = np.zeros((steps, len(ahead), len(levels)))
    span = 3 * day
    for now in [first, *range(span, steps, span)]:
        rest = slice(now, (now // span + 1) * span)
        until = [max(0, now - h) for h in ahead.tolist()]
        x = np.concatenate([x[:end] for (x, _), end in zip(own, until, strict=True)] + old[:1])
        y = np.concatenate([y[:end] for (_, y), end in zip(own, until, strict=True)] + old[1:])
        if now >= steps or not len(y):
            break
        data = lightgbm.Dataset(x, y, params=_TREES | _ONE_THREAD, free_raw_data=False)
        for j, level in enumerate(levels):
            goal = {"objective": "quantile", "alpha": level}
            trees = lightgbm.train(_TREES | _ONE_THREAD | goal, data, num_boost_round=ROUNDS)
            for k, (inputs, _) in enumerate(own):
                rise[rest, k, j] = np.asarray(trees.predict(inputs[rest], num_threads=1))
    return ordered(target, levels, ahead, rise, first)


def _rows(history: Demand, ahead: list[int], target: Target) -> list[Any]:
    """Return the features (N, F) and the targets (N,) of every second step after the first day."""
    day, needed = steps_of_day(history), history.needed_nodes
    parts = []
    for h in ahead:
        x, y = _features(history, h)[day::2], rises(needed, h, target)[day::2]
        parts.append((x[np.isfinite(y)], y[np.isfinite(y)]))
    return [np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])]


def _features(series: Demand, ahead: int) -> Floats:
    """Return the features, shape (T, F), known at each step about the one `ahead` steps later."""
    import pandas as pd

    needed, day = pd.Series(series.needed_nodes.astype(float)), steps_of_day(series)
    hour = max(1, day // 24)
    at = _clock(series, ahead)
    columns: list[Any] = [np.full(len(needed), float(ahead)), *at]
    columns += [needed - needed.shift(k) for k in (1, hour // 2 or 1, hour, 3 * hour)]
    columns += [needed.rolling(6 * hour, min_periods=1).max() - needed]
    last_day = needed.rolling(day, min_periods=1)
    columns += [last_day.max() - needed, last_day.mean() - needed, needed - last_day.min()]
    columns += [needed.rolling(3 * hour, min_periods=2).std()]
    columns += [needed.shift((-ahead) % day) - needed, needed.shift(day) - needed]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


def _clock(series: Demand, ahead: int) -> list[Floats]:
    """Return the time of day ahead (as waves), its weekday, whether that is a weekend, and now."""
    day = steps_of_day(series)
    start = datetime.fromisoformat(series.start)
    offset = round((start.hour * 60 + start.minute) * 60 / series.step_s)
    step = np.arange(len(series.needed)) + offset
    angle = 2 * np.pi * ((step + ahead) % day) / day
    weekday = ((step + ahead) // day + start.weekday()) % 7
    waves = [f(k * angle) for k in (1, 2) for f in (np.cos, np.sin)]
    return [*waves, weekday.astype(float), (weekday >= 5).astype(float), (step % day).astype(float)]


def leaking(series: Demand) -> Floats:
    """Return the forecast of Helios's artifact, shape (T,), which is NOT causal.

    It predicts a step from means, medians and deviations of the demand up to an hour before that
    step, even when it forecasts further ahead and has not seen that demand yet. The artifact trains
    on the months before the series. This function trains on the first third of the series, so
    forecasts of that third repeat training data. It leaves out the artifact's holidays and
    conference deadlines.
    """
    import lightgbm
    import pandas as pd

    day = steps_of_day(series)
    hour = max(1, day // 24)
    needed = pd.Series(series.needed_nodes.astype(float))
    before = needed.shift(hour)
    back, near, far = (needed.shift(3 * hour + k) for k in (0, -1, 1))
    columns: list[Any] = [*_clock(series, 0), back, 0.5 * back + 0.25 * near + 0.25 * far]
    for steps in (hour // 2 or 1, hour):
        rolling = before.rolling(steps)
        columns += [rolling.mean(), rolling.median(), rolling.std()]
    x = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    end = max(len(needed) // 3, 2)
    trees = _ONE_THREAD | {"bagging_fraction": 0.85, "bagging_freq": 1, "objective": "regression"}
    data = lightgbm.Dataset(x[:end], needed.to_numpy()[:end], params=trees)
    found = lightgbm.train(trees, data, num_boost_round=ROUNDS).predict(x)
    return np.asarray(np.floor(np.asarray(found, dtype=float)))
