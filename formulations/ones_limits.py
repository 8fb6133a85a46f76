"""Batch-size limits of ONES, held in GPUs, and the batches and learning rates that follow.

The rules are those of the artifact (kurisusnowdeng/ones_sc21, src/scheduler.py, controller.py) of
Bian et al., SC'21. A job's limit R starts at one GPU, doubles when the job has run on as many, is
halved while it waits to be resumed, and the dominant job gives way when it has run for long.
"""

from math import floor

from ronda.instances.errors import InputError

SIGMA = 1.0
"""The artifact's scale_down_factor."""

REQUESTS = 4
"""A job may grow to so many times the GPUs that its user asked for."""


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


def batch_and_rate(
    gpus: int, base_batch: int, base_lr: float, max_lr: float
) -> tuple[int, int, float]:
    """Return local batch, global batch and learning rate on `gpus` GPUs.

    While ``base_lr gpus <= max_lr`` both grow with the GPUs (linear scaling). From there on the
    learning rate is max_lr, the global batch is frozen at ``base_batch max_lr / base_lr``, and the
    local batch is what of it falls to each GPU, rounded down (strong scaling).

    Raises
    ------
    InputError
        If a rate is not positive or the largest is below the base.
    """
    if not 0 < base_lr <= max_lr:
        raise InputError("learning rate", f"{base_lr:g} up to {max_lr:g}", "0 < base_lr <= max_lr")
    growth = round(max_lr / base_lr, 9)
    if gpus <= growth:
        return base_batch, base_batch * gpus, base_lr * gpus
    frozen = int(base_batch * growth)
    return frozen // gpus, frozen, max_lr
