"""The measured step times of an application's jobs, by configuration.

`ronda.formulations.prediction.speeds` fits models to them. This module does not load SciPy.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.profile import Parametric, Throughput


class Way(NamedTuple):
    """The configuration of a measured job, whose racks count only in a `Parametric` model."""

    gpus: int
    nodes: int
    local_batch: float
    racks: int = 1


def way_of(model: Throughput, gpus: int, nodes: int, local_batch: float, racks: int) -> Way:
    """Return the configuration of a job, as far as its kind of model distinguishes it."""
    return Way(gpus, nodes, local_batch, racks if isinstance(model, Parametric) else 1)


@dataclass(slots=True)
class Measured:
    """The measurements of an application's jobs on one GPU type, one entry per configuration.

    Each entry has the sums of the seconds of computing (one pass at full clock) and synchronising,
    and the number of measurements.
    """

    ways: dict[Way, tuple[float, float, int]] = field(default_factory=dict)

    def add(self, way: Way, compute_s: float, sync_s: float) -> None:
        """Add one measurement."""
        compute, sync, count = self.ways.get(way, (0.0, 0.0, 0))
        self.ways[way] = compute + compute_s, sync + sync_s, count + 1

    def mean_s(self, way: Way) -> float | None:
        """Return the mean seconds of a pass and of synchronising, or None if unmeasured."""
        compute, sync, count = self.ways.get(way, (0.0, 0.0, 0))
        return (compute + sync) / count if count else None

    @property
    def most_gpus(self) -> int:
        """The largest number of GPUs in any measurement, or 0 without measurements."""
        return max((way.gpus for way in self.ways), default=0)

    def columns(self) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Return GPUs, nodes, local batches, racks and mean seconds of both phases, shapes (M,)."""
        rows = [(*way, c / n, x / n) for way, (c, x, n) in self.ways.items()]
        gpus, nodes, local_batch, racks, compute, sync = np.array(rows, dtype=float).T
        return gpus, nodes, local_batch, racks, compute, sync
