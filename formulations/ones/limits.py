"""Batch-size limits of ONES, held in GPUs, and what it knows of speed (Bian et al., SC'21).

The rules are those of the artifact (kurisusnowdeng/ones_sc21, src/scheduler.py, controller.py). A
job's limit R starts at one GPU, doubles when the job has run on as many, is halved while it waits
to be resumed, and the dominant job gives way when it has run for long. Speed is known only for
the numbers of GPUs that a job has run on. Others are read off straight lines through these points
and ``X(0) = 0``: a job that has run on one size is expected to scale linearly.
"""

from collections.abc import Mapping, Sequence
from math import floor

import numpy as np

from ronda.instances.arrays import Floats

SIGMA = 1.0
"""The artifact's scale_down_factor."""

REQUESTS = 4
"""A job may grow to this multiple of the GPUs that its user asked for."""

MEASUREMENTS = 5
"""The last measurements at a size that count (the artifact's num_monitored_throughputs)."""

SLOWEST = 1e-3
"""Lines that fall are not followed below this share of the slowest measurement."""


def grown(limit: int, gpus: int, most: int) -> int:
    """Return R after a job on `gpus` may scale up: doubled, up to `most`, if all of it is used."""
    return min(2 * limit, most) if gpus >= limit else min(limit, most)


def shrunk(gpus: int, ran_s: float, median_s: float) -> int:
    """Return the GPUs to which the dominant job, on c `gpus`, is scaled down.

    ``max(1, floor(2 c / (sigma T_j / T_med + 1)))``, rounded up to an even number: c for a job that
    has run for the median time of all jobs that have started, half of it after three times as long.
    """
    whole = max(1, floor(2 * gpus / (SIGMA * ran_s / median_s + 1)))
    return whole + whole % 2


def halved(limit: int, least: int = 1) -> int:
    """Return R after a deployment that left the job waiting."""
    return max(least, limit // 2)


def speeds(measured: Mapping[int, Sequence[float]], most: int) -> Floats:
    """Return (most + 1,) the samples per second expected on 0, 1, ... `most` GPUs.

    `measured` has those of the epochs on each number of GPUs; at least one.
    """
    size = np.array([0, *sorted(measured)], dtype=float)
    mean = np.array([0.0, *(np.mean(measured[c]) for c in sorted(measured))])
    gpus = np.arange(most + 1, dtype=float)
    found: Floats = np.interp(gpus, size, mean)
    slope = (mean[-1] - mean[-2]) / (size[-1] - size[-2])
    found = np.where(gpus > size[-1], mean[-1] + slope * (gpus - size[-1]), found)
    found[1:] = np.maximum(found[1:], SLOWEST * mean[1:].min())
    return found
