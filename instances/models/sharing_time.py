"""The time in which k models on one GPU take a step each, in every mode.

Models of an array progress in lock-step: a step of the array is a step of every member.
"""

from bisect import bisect_left

from ronda.instances.errors import InputError
from ronda.instances.profile import AffineTime, MeasuredTime


def step_s(time: AffineTime | MeasuredTime, models: int) -> float:
    """Return T(k), the seconds in which all k models take a step.

    ``max(floor, alpha + beta k)``, or linear between measured k; InputError outside of those.
    """
    if isinstance(time, AffineTime):
        return max(time.floor_s, time.alpha_s + time.beta_s * models)
    known, seconds = time.models, time.step_s
    if not known[0] <= models <= known[-1]:
        raise InputError("models", str(models), f"measured numbers, {known[0]} to {known[-1]}")
    k = bisect_left(known, models)
    if known[k] == models:
        return seconds[k]
    share = (models - known[k - 1]) / (known[k] - known[k - 1])
    return seconds[k - 1] + share * (seconds[k] - seconds[k - 1])


def speed_up(time: AffineTime | MeasuredTime, models: int, alone_s: float) -> float:
    """Return k T(1) / T(k): the throughput of k models against one after another."""
    return models * alone_s / step_s(time, models)
