"""Statistics of comparisons: intervals, ratios of pairs, performance profiles.

scipy does the arithmetic; it is loaded where a number is asked for.
"""

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


def replicate_interval(value: float, replicates: ArrayLike) -> Interval:
    """Return a positive statistic and its interval by (B,) values of it on resampled workloads.

    ``value * exp(-+ t s)`` with s the standard deviation of their logarithms, which is the
    bootstrap's standard error (B. Efron and R. Tibshirani, An Introduction to the Bootstrap,
    Chapman & Hall 1993, ch. 13: the standard interval), and t Student's for B - 1. More workloads
    make it surer, not narrower.
    """
    logs = np.log(np.asarray(replicates, dtype=float))
    if len(logs) < 2:
        return Interval(value, float("nan"), float("nan"))
    factor = float(np.exp(_student(len(logs)) * logs.std(ddof=1)))
    return Interval(value, value / factor, value * factor)


def _student(count: int) -> float:
    """Return the quantile of Student's t that spans the confidence for so many values."""
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, count - 1))


def half_width(values: Sequence[float]) -> float:
    """Return the half-width of the mean's confidence interval by Student's t; 0 of one value."""
    from scipy.stats import sem

    return float(sem(values) * _student(len(values))) if len(values) > 1 else 0.0


def geometric_mean(values: Floats, axis: int = -1) -> Floats:
    """Return the geometric mean along an axis."""
    from scipy.stats import gmean

    return np.asarray(gmean(values, axis=axis))


def paired_ratio(ours: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return the geometric mean of the ratios ``ours / other`` of pairs."""
    return geometric_mean(ours / other, axis)


def ratio_of_means(ours: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return the mean of ours over the mean of the other."""
    return np.asarray(ours.mean(axis=axis) / other.mean(axis=axis))


def over_best(times: Floats) -> Floats:
    """Return (P, S) the times of solvers on problems over the least time on each problem.

    Infinite where a solver has no time (infinite, too), also if none has one.
    """
    with np.errstate(invalid="ignore"):
        found = times / times.min(axis=1, keepdims=True)
    return np.where(np.isfinite(times), found, np.inf)


def performance_profile(ratios: Floats, factors: Floats) -> Floats:
    """Return (F, S) the share of problems that each solver ends within factors of the best time.

    E. Dolan and J. Moré, Math. Program. 91, 2002; `ratios` are those of `over_best`.
    """
    return np.asarray((ratios[None, :, :] <= factors[:, None, None]).mean(axis=1))
