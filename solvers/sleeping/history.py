"""What an earlier demand series tells of any day: how needs went on from each hour of it."""

from functools import lru_cache

import numpy as np

from ronda.formulations.prediction.demand import Usual, daily, usual
from ronda.instances.arrays import Floats
from ronda.instances.demand import DAY_S, Demand
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load_demand

STEP_S = 600.0
"""Length of a step of controllers beside a queue, as in Helios."""

HOURS = 18
"""How far ahead they look."""

AHEAD = HOURS * round(3600 / STEP_S)
"""The same in steps."""


def foretold(history: str, step: int, needed: int, nodes: int) -> Floats:
    """Return (K,) the need that is expected in the next steps of a pool of `nodes`.

    The series is scaled to the pool's nodes. Without one all stays as it is.
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
    """Return (L, D, K) quantile paths of the peak by step of the day, likewise; their levels."""
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
