"""How a job may run under ONES: sizes, the batch that goes with each, options, measured speed."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ronda.formulations.ones.limits import REQUESTS
from ronda.formulations.options.application import Application
from ronda.formulations.options.ladders import gpu_limits
from ronda.instances.arrays import Ints
from ronda.instances.job import JobState, Option

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ways:
    """How a live job may run as an application in a pool."""

    state: JobState
    of: Application

    def batch(self, gpus: int) -> float:
        """Return the global batch on a number of GPUs.

        The base batch on each, up to the profile's largest batch, where the learning rate reaches
        its maximum. A job whose noise is not known keeps its own batch.
        """
        profile, job = self.of.profile, self.state.job
        if self.state.noise is None or not profile.batches:
            return self.of.batch(job)
        return _batch(profile.batches, gpus * profile.base_batch)

    def samples_per_s(self, gpus: int, nodes: int, batch: float | None = None) -> float:
        """Return the samples per second on a number of GPUs and nodes."""
        return self.of.measured(gpus, nodes, batch or self.batch(gpus))[0]

    def worth(self, batch: float) -> float:
        """Return the work that a sample is in such a batch (its statistical efficiency)."""
        return self.of.worth(self.state.noise, batch)

    def sizes(self) -> Ints:
        """Return (pool's GPUs + 1,) the largest possible size up to each number of GPUs; 0: none.

        A job may have any number of GPUs between its least and most, and at most four times those
        that its user asked for, if its profile knows a speed there.
        """
        job = self.state.job
        low, high = gpu_limits(self.of, job)
        scaled = self.state.noise is not None and bool(self.of.profile.batches)
        batch = None if scaled else self.of.batch(job)
        return _sizes(self.of, low, max(low, min(high, REQUESTS * job.gpus)), batch)

    def option(self, gpus: int, nodes: int) -> Option | None:
        """Return the option on a number of GPUs and nodes; None without a speed there."""
        option = self.of.option(gpus, self.batch(gpus), self.state.noise)
        return option and self.of.spread(option, nodes)


def _batch(batches: tuple[float, ...], wanted: float) -> float:
    """Return the largest of the batches up to one, or the least of all."""
    return max((b for b in batches if b <= wanted * (1 + ROUNDING)), default=min(batches))


@lru_cache(maxsize=1024)
def _sizes(of: Application, low: int, high: int, batch: float | None) -> Ints:
    """Return `Ways.sizes`; a `batch` of None grows with the GPUs."""
    base, batches = of.profile.base_batch, of.profile.batches
    sizes = np.zeros(of.shape.pool.gpus + 1, dtype=np.int64)
    for gpus in range(low, min(high, of.shape.pool.gpus) + 1):
        size = _batch(batches, gpus * base) if batch is None else batch
        if of.measured(gpus, of.shape.nodes(gpus), size)[0] > 0:
            sizes[gpus] = gpus
    return np.maximum.accumulate(sizes)
