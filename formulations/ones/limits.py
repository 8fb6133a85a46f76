"""Batch-size limits of ONES, held in GPUs.

The rules are those of the artifact (kurisusnowdeng/ones_sc21, src/scheduler.py, controller.py) of
Bian et al., SC'21. A job's limit R starts at one GPU, doubles when the job has run on as many, is
halved while it waits to be resumed, and the dominant job gives way when it has run for long.
"""

from math import floor

SIGMA = 1.0
"""The artifact's scale_down_factor."""

REQUESTS = 4
"""A job may grow to this multiple of the GPUs that its user asked for."""


def grown(limit: int, gpus: int, most: int) -> int:
    """Return R after a job that runs on `gpus` may scale up: doubled once all of R is in use.

    Parameters
    ----------
    limit
        R, in GPUs.
    gpus
        What the job runs on.
    most
        The least of the cluster's GPUs and four times the user's request.
    """
    return min(2 * limit, most) if gpus >= limit else min(limit, most)


def shrunk(gpus: int, ran_s: float, median_s: float, sigma: float = SIGMA) -> int:
    """Return the GPUs to which the dominant job is scaled down.

    ``max(1, floor(2 c / (sigma T_j / T_med + 1)))``, rounded up to an even number: c for a job that
    has run as long as the median one, half of it after three times as long.

    Parameters
    ----------
    gpus
        c, what it runs on.
    ran_s, median_s
        T_j and T_med: how long it has run, and the median of all jobs that have started.
    """
    whole = max(1, floor(2 * gpus / (sigma * ran_s / median_s + 1)))
    return whole + whole % 2


def halved(limit: int, least: int = 1) -> int:
    """Return R after a deployment that left the job waiting."""
    return max(least, limit // 2)
