"""ONES's knowledge of speed: what was measured, and straight lines between (Bian et al., SC'21).

A job's samples per second are known only for the numbers of GPUs that it has run on: the mean of
the last measurements. Others are read off straight lines through these points and ``X(0) = 0``. So
a job that has run on one size is expected to scale linearly; it bends only as sizes are tried.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ronda.instances.arrays import Floats

MEASUREMENTS = 5
"""As many of the last measurements at a size count (the artifact's num_monitored_throughputs)."""

SLOWEST = 1e-3
"""Lines that fall are not followed below this share of the slowest measurement."""


def speeds(measured: Mapping[int, Sequence[float]], most: int) -> Floats:
    """Return (most + 1,) the samples per second expected on 0, 1, ... `most` GPUs.

    Parameters
    ----------
    measured
        Samples per second of the epochs on each number of GPUs; at least one.
    most
        The largest number of GPUs.
    """
    size = np.array([0, *sorted(measured)], dtype=float)
    mean = np.array([0.0, *(np.mean(measured[c]) for c in sorted(measured))])
    gpus = np.arange(most + 1, dtype=float)
    found: Floats = np.interp(gpus, size, mean)
    slope = (mean[-1] - mean[-2]) / (size[-1] - size[-2])
    found = np.where(gpus > size[-1], mean[-1] + slope * (gpus - size[-1]), found)
    found[1:] = np.maximum(found[1:], SLOWEST * mean[1:].min())
    return found
