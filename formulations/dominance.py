"""Dominance between the options of one job in one pool.

An option is dominated if another one has a rate at least as high with no more GPUs (and, where
power matters, no more watts). No plan needs it: swapping it for the other one stays feasible and
is worth as much, as long as values rise with the rate.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Pairs compared at once: temporary arrays of 128 KiB stay in the cache; with MiBs it is slower.
PAIRS = 1 << 17


def fastest_per_gpus(offered: Mask, rate: Floats) -> Mask:
    """Keep, per count, the fastest clock if it beats all smaller counts; watts do not matter.

    Parameters
    ----------
    offered
        (J, N, S) which options exist, by job, GPU count (ascending) and clock.
    rate
        (J, N, S) work per second.

    Returns
    -------
    ndarray
        (J, N, S) which options to keep. Of equally fast clocks the lowest is kept.
    """
    known = np.where(offered, rate, -np.inf)
    best = known.max(axis=2)
    before = np.full(best.shape, -np.inf)
    np.maximum.accumulate(best[:, :-1], axis=1, out=before[:, 1:])
    better = best > before
    fastest = np.arange(rate.shape[2]) == known.argmax(axis=2)[:, :, None]
    return np.asarray(offered & fastest & better[:, :, None])


def undominated(offered: Mask, rate: Floats, power_w: Floats, counts: NDArray[np.int64]) -> Mask:
    """Keep what no option of the same job beats on all of rate, GPUs and watts.

    Of options that are equal in all three, the first (lowest clock) is kept.

    Parameters
    ----------
    offered, rate, power_w
        (J, N, S) which options exist, their work per second and watts.
    counts
        (N,) ascending GPU counts.
    """
    jobs, options = len(rate), rate[0].size
    gpus = np.repeat(counts, rate.shape[2])
    fewer, same = gpus[:, None] <= gpus, gpus[:, None] == gpus
    earlier = np.arange(options)[:, None] < np.arange(options)
    flat_rate = np.where(offered, rate, -np.inf).reshape(jobs, options)
    flat_power = power_w.reshape(jobs, options)
    keep = offered.reshape(jobs, options).copy()
    chunk = max(1, PAIRS // options**2)
    for at in range(0, jobs, chunk):
        r, p = flat_rate[at : at + chunk], flat_power[at : at + chunk]
        # [j, a, b]: a beats b
        beats = (r[:, :, None] >= r[:, None, :]) & (p[:, :, None] <= p[:, None, :]) & fewer
        equal = (r[:, :, None] == r[:, None, :]) & (p[:, :, None] == p[:, None, :]) & same
        beats &= ~equal | earlier
        keep[at : at + chunk] &= ~(beats & keep[at : at + chunk, :, None]).any(axis=1)
    return keep.reshape(offered.shape)
