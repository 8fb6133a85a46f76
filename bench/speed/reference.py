"""The reference round for speed: jobs of one kind of curve, which GPUs and watts couple.

It grows to any number of jobs and is the same everywhere, so that times can be compared. For
n GPUs, a clock s (a share of full speed) and a job's drawn numbers a, w, p0, p1 and e::

    rate  = w n / (1 + a log2 n) s^e              samples/s, to be maximised in total
    power = n (p0 + p1 s^2.5)                     W
"""

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.errors import InputError

GPUS, CLOCKS = 2.0 ** np.arange(7), np.linspace(0.5, 1.0, 8)
"""A job's options: 1, 2, 4, ..., 64 GPUs, and shares of full speed."""

WATTS_PER_GPU = 180.0
"""Power cap for each GPU of the cluster."""


def reference(jobs: int, seed: int = 0) -> Separable:
    """Return the reference round: twice as many GPUs as jobs, or as many for at most 64 jobs.

    A job has 56 options in the order of its GPUs and, for the same GPUs, of its clock. The drawn
    numbers are uniform: a in (0.02, 0.3), w in (0.5, 3), p0 in (60, 100), p1 in (100, 250), e in
    (0.5, 0.9), each for all jobs before the next, in this order, from numpy's
    default generator.
    """
    if jobs < 1:
        raise InputError("jobs", f"{jobs}", "at least 1")
    if seed < 0:
        raise InputError("seed", f"{seed}", "0 or more")
    rng = np.random.default_rng(seed)
    ranges = ((0.02, 0.3), (0.5, 3.0), (60.0, 100.0), (100.0, 250.0), (0.5, 0.9))
    a, w, p0, p1, e = (rng.uniform(low, high, (jobs, 1)) for low, high in ranges)
    n, s = np.repeat(GPUS, len(CLOCKS)), np.tile(CLOCKS, len(GPUS))
    rate = w * n / (1.0 + a * np.log2(n)) * s**e
    watts = n * (p0 + p1 * s**2.5)
    gpus = float(jobs if jobs <= 64 else 2 * jobs)
    return Separable.without_blocks(
        start=np.arange(jobs + 1) * len(n),
        value=rate.ravel(),
        use=np.stack([np.tile(n, jobs), watts.ravel()]),
        capacity=np.array([gpus, WATTS_PER_GPU * gpus]),
        names=("gpus", "power_cap"),
    )
