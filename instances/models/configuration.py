"""The configuration of a job, which determines its speed and its watts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.base import Floats


class Configuration(NamedTuple):
    """A configuration: GPUs, nodes, global batch, clock as a fraction of the maximum, and racks.

    Fields are numbers or, for many configurations, arrays that can be broadcast together.
    """

    gpus: ArrayLike
    nodes: ArrayLike
    batch: ArrayLike
    clock: ArrayLike = 1.0
    racks: ArrayLike = 1

    def columns(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the fields as arrays of one shape."""
        gpus, nodes, batch, clock, racks = np.broadcast_arrays(
            *(np.asarray(field, dtype=float) for field in self)
        )
        return gpus, nodes, batch, clock, racks
