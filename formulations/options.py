"""All the ways to run the jobs of a round, as one table of parallel columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.instances.cluster import Pool
from ronda.instances.job import JobState

SPANS = ("node", "rack", "cluster")


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of a round: the one language that every solver speaks.

    Rows are sorted by job; the rows of job j are ``start[j]:start[j + 1]`` (possibly none).
    Not to run is always possible and has no row.

    Attributes
    ----------
    jobs
        (J,) the live jobs, running ones first, as in ``round.jobs``.
    pools
        (P,) the cluster's pools.
    start
        (J + 1,) offsets of each job's rows.
    job, pool, gpus, span, width
        (K,) index of job and pool, GPUs, index into `SPANS`, models fused.
    clock, batch
        (K,) clock as a fraction of the maximum; global batch size.
    rate
        (K,) expected work per second.
    power_w
        (K,) watts of all the job's GPUs while it progresses.
    current
        (K,) whether the row is what the job runs on now.
    must_run
        (J,) whether the job may not be stopped or changed (its only row is the current one).
    """

    jobs: tuple[JobState, ...]
    pools: tuple[Pool, ...]
    start: NDArray[np.int64]
    job: NDArray[np.int64]
    pool: NDArray[np.int64]
    gpus: NDArray[np.int64]
    span: NDArray[np.int64]
    width: NDArray[np.int64]
    clock: NDArray[np.float64]
    batch: NDArray[np.float64]
    rate: NDArray[np.float64]
    power_w: NDArray[np.float64]
    current: NDArray[np.bool_]
    must_run: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of options (rows)."""
        return len(self.job)
