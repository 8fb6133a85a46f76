"""What an earlier demand series tells of any day: how needs went on from each hour of it."""

from functools import lru_cache

import numpy as np

from ronda.formulations.prediction.demand import DemandForecast, Target, daily
from ronda.instances.arrays import Floats
from ronda.instances.demand import DAY_S, Demand
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load_demand

STEP_S = 600.0
"""Length of a step of controllers beside a queue, as in Helios."""

HOURS = 18
"""How far ahead they look."""


@lru_cache(maxsize=8)
def daily_rise(history: str, target: Target, level: float, nodes: int) -> Floats:
    """Return (D, K) the rise of 1 .. K steps ahead, by step of the day, for a pool of `nodes`.

    It is scaled by the nodes of the series. Without a series nothing rises.
    """
    made = _daily(history, target)
    if made is None:
        return np.zeros((1, HOURS * round(3600 / STEP_S)))
    forecast, most = made
    return forecast.quantile(level, HOURS * round(3600 / STEP_S)) * (nodes / most)


@lru_cache(maxsize=8)
def daily_paths(history: str, nodes: int) -> tuple[Floats, tuple[float, ...]]:
    """Return (L, D, K) quantile paths of the peak, likewise, and their levels."""
    made = _daily(history, "peak")
    if made is None:
        return np.zeros((1, 1, HOURS * round(3600 / STEP_S))), (0.5,)
    forecast, most = made
    return forecast.paths(HOURS * round(3600 / STEP_S)) * (nodes / most), forecast.levels


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


def _daily(history: str, target: Target) -> tuple[DemandForecast, int] | None:
    series = past(history)
    return None if series is None else (daily(series, target), max(series.total))
