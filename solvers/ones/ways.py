"""How a job may run under ONES: sizes, the batch that goes with each, options, measured speed."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.models.efficiency import worth
from ronda.formulations.models.power import job_power_w
from ronda.formulations.models.throughput import samples_per_s, work_rate
from ronda.formulations.ones.limits import REQUESTS
from ronda.formulations.remembered import remembered
from ronda.instances.cluster import Pool
from ronda.instances.job import Job, JobState, Option
from ronda.instances.profile import NoiseScale, Profile, Rigid

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ways:
    """How a job may run in a pool.

    Attributes
    ----------
    job, profile, pool, index
        The job, its profile, the pool and its index.
    noise
        The job's noise scale as measured now.
    """

    job: Job
    profile: Profile
    pool: Pool
    index: int
    noise: NoiseScale | None

    @classmethod
    def of(cls, state: JobState, profile: Profile, pool: Pool, index: int) -> "Ways":
        """Return the ways of a live job."""
        return cls(state.job, profile, pool, index, state.noise)

    def batch(self, gpus: int) -> float:
        """Return the global batch on so many GPUs.

        The base batch on each, as far as the profile offers it: beyond its largest batch, which
        is where the learning rate reaches its maximum, the batch stays as it is. A job whose noise
        is not known keeps its own batch.
        """
        profile = self.profile
        if self.noise is None or not profile.batches:
            return self.job.batch or profile.base_batch
        wanted = gpus * profile.base_batch * (1 + ROUNDING)
        return max((b for b in profile.batches if b <= wanted), default=min(profile.batches))

    def samples_per_s(self, gpus: int, nodes: int, batch: float | None = None) -> float:
        """Return the samples per second on so many GPUs and nodes."""
        key = ("ones-speed", self.pool.gpu_type, gpus, nodes, batch or self.batch(gpus))
        return remembered(
            self.profile,
            key,
            lambda: float(samples_per_s(self.profile, *key[1:])),
        )

    def worth(self, batch: float) -> float:
        """Return the work that a sample is in such a batch (its statistical efficiency)."""
        rigid = isinstance(self.profile.throughput[self.pool.gpu_type.name], Rigid)
        if self.noise is None or rigid:
            return 1.0
        return worth(self.noise, batch, self.profile.base_batch)

    def sizes(self) -> NDArray[np.int64]:
        """Return (pool's GPUs + 1,) the largest possible size up to each number of GPUs; 0: none.

        A job may have any number of GPUs between its least and most, and at most four times those
        that its user asked for, if its profile knows a speed there.
        """
        job, profile = self.job, self.profile
        rigid = isinstance(profile.throughput[self.pool.gpu_type.name], Rigid)
        low = job.gpus if rigid or job.min_gpus is None else job.min_gpus
        high = job.gpus if rigid or job.max_gpus is None else job.max_gpus
        high = max(low, min(high, REQUESTS * job.gpus))
        own = job.batch if self.noise is None or not profile.batches else None
        known = ("ones-sizes", self.pool.gpu_type, self.pool.gpus, low, high, own)
        return remembered(profile, known, partial(self._sizes, low, high))

    def _sizes(self, low: int, high: int) -> NDArray[np.int64]:
        each = self.pool.gpus_per_node
        sizes = np.zeros(self.pool.gpus + 1, dtype=np.int64)
        for gpus in range(low, min(high, self.pool.gpus) + 1):
            if self.samples_per_s(gpus, -(-gpus // each)) > 0:
                sizes[gpus] = gpus
        return np.maximum.accumulate(sizes)

    def option(self, gpus: int, nodes: int) -> Option | None:
        """Return the option on so many GPUs and nodes; None where the profile knows no speed."""
        batch = self.batch(gpus)
        if not self.samples_per_s(gpus, nodes) > 0:
            return None
        return remembered(
            self.profile,
            ("ones-option", self.index, self.pool, gpus, nodes, batch, self.noise),
            partial(self._option, gpus, nodes, batch),
        )

    def _option(self, gpus: int, nodes: int, batch: float) -> Option:
        fewest = -(-gpus // self.pool.gpus_per_node)
        way = (self.profile, self.pool.gpu_type, gpus, fewest, batch, 1.0)
        racks = self.pool.racks
        return Option(
            pool=self.index,
            gpus=gpus,
            span="node" if nodes == 1 else "cluster",
            batch=batch,
            rate=work_rate(*way, self.noise, racks),
            power_w=job_power_w(*way, racks),
        )
