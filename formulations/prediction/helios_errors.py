"""The errors of predicted durations that Helios measured, as a synthetic predictor.

The artifact of Hu et al. (SC'21) runs QSSF on Philly, whose jobs have no usable names, with true
durations times 1 + e. |e| is uniform in 0..0.1 for 10 % of jobs, 0.1..0.5 for 40 %, 0.5..1 for
20 %, 1..10 for 20 % and 10..100 for 10 %, and e has either sign. Negative durations become tiny
durations in the same order, so that their jobs come first.
"""

import numpy as np
from msgspec.structs import replace
from numpy.random import Generator

from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.job import Estimate, Job

LEVELS = ((0.1, 0.0, 0.1), (0.5, 0.1, 0.5), (0.7, 0.5, 1.0), (0.9, 1.0, 10.0), (1.0, 10.0, 100.0))
"""The cumulative share of jobs, and their least and greatest absolute error."""

LEAST_S = 1e-3
"""The least work that a job declares."""


def errors(count: int, rng: Generator) -> Floats:
    """Return random relative errors e for `count` jobs, shape (J,)."""
    level = np.searchsorted([share for share, _, _ in LEVELS], rng.random(count))
    least, most = np.array([bounds for _, *bounds in LEVELS]).T
    size = rng.uniform(least[level], most[level])
    return np.asarray(size * rng.choice([-1.0, 1.0], count))


def with_errors(instance: Instance, seed: int) -> Instance:
    """Return the instance with sizes that jobs declare with random errors."""
    found = errors(len(instance.jobs), np.random.default_rng(seed)).tolist()
    jobs = tuple(_declares(job, error) for job, error in zip(instance.jobs, found, strict=True))
    return replace(instance, jobs=jobs)


def _declares(job: Job, error: float) -> Job:
    assert job.truth is not None
    work = job.truth.work * (1.0 + error)
    if work < LEAST_S:  # ranked by GPU time, the lowest comes first
        work = LEAST_S / (1.0 + job.gpus * abs(work)) / job.gpus
    return replace(job, estimate=Estimate(work=work))
