"""The look-up of given rates by GPUs, nodes, batch and clock."""

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.models.cache import per_record
from ronda.instances.models.configuration import Configuration
from ronda.instances.profile import Rated

ROWS = 6
GPUS, NODES, BATCH, CLOCK, RATE, WATTS = range(ROWS)
"""The rows of the array of `columns`."""


@per_record(maxsize=4096)
def columns(model: Rated, idle_w: float) -> Floats:
    """Return the table with the watts of all GPUs, by default `idle_w` each, shape (ROWS, R).

    The table is shared, so it must not be changed.
    """
    gpus = model.gpus
    watts = model.power_w or [n * idle_w for n in gpus]
    return np.array([gpus, model.nodes, model.batch, model.clock, model.rate, watts], dtype=float)


@per_record(maxsize=4096)
def _by_way(
    model: Rated, idle_w: float
) -> dict[tuple[float, float, float, float], tuple[float, float]]:
    """Return the rate and watts of each (GPUs, nodes, batch, clock)."""
    rows = columns(model, idle_w).T.tolist()
    return {(n, nodes, b, s): (rate, watts) for n, nodes, b, s, rate, watts in rows}


def rates_and_watts(model: Rated, idle_w: float, at: Configuration) -> tuple[Floats, Floats]:
    """Return the work per second (0 where no rate is given) and the watts of all GPUs.

    A GPU draws `idle_w` where no watts are given.
    """
    known = _by_way(model, idle_w)
    ways = at.columns()[:4]
    flat = zip(*(way.ravel().tolist() for way in ways), strict=True)
    found = [known.get(way, (0.0, way[0] * idle_w)) for way in flat]
    rate, watts = np.array(found, dtype=float).reshape(-1, 2).T
    return rate.reshape(ways[0].shape), watts.reshape(ways[0].shape)
