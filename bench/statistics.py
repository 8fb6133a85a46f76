"""Statistics of comparisons: intervals and ratios of pairs."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.arrays import Floats

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """An estimate and its confidence interval; the ends are NaN where it is unknown."""

    value: float
    low: float
    high: float


def bootstrap_interval(statistic: Callable[..., Floats], *samples: ArrayLike) -> Interval:
    """Return a statistic of paired (S,) samples and its percentile bootstrap interval.

    The statistic takes the samples and the keyword `axis`; seeds are drawn for all samples
    together. One seed has no interval.
    """
    from scipy.stats import bootstrap

    paired = tuple(np.asarray(sample, dtype=float) for sample in samples)
    value = float(statistic(*paired, axis=-1))
    if len(paired[0]) < 2:
        return Interval(value, float("nan"), float("nan"))
    found = bootstrap(
        paired,
        statistic,
        n_resamples=10_000,
        paired=True,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return Interval(value, float(found.low), float(found.high))


def paired_ratio(ours: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return the geometric mean of the ratios ``ours / other`` of pairs."""
    from scipy.stats import gmean

    return np.asarray(gmean(ours / other, axis=axis))


def ratio_of_means(ours: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return the mean of ours over the mean of the other."""
    return np.asarray(ours.mean(axis=axis) / other.mean(axis=axis))


def half_width(values: Sequence[float]) -> float:
    """Return the half-width of the mean's confidence interval by Student's t; 0 of one value."""
    if len(values) < 2:
        return 0.0
    from scipy.special import stdtrit

    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return error * float(stdtrit(len(values) - 1, 0.5 + CONFIDENCE / 2))
