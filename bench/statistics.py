"""Statistics of comparisons: intervals, means, ratios of pairs, ranks, performance profiles.

docs/statistics.md gives the reasons for each. scipy does the arithmetic and is loaded on demand. A
failed run has an infinite time, as if it never finished.
"""

from collections.abc import Callable, Sequence
from math import exp, lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.base import Floats

CONFIDENCE = 0.95

SHIFT_S = 10.0
"""Seconds that are added before a geometric mean is taken and subtracted afterwards."""


class Interval(NamedTuple):
    """An estimate and its confidence interval; the ends are NaN where it is unknown."""

    value: float
    low: float
    high: float


def ratio_interval(
    statistic: Callable[..., Floats], ours: ArrayLike, other: ArrayLike, *, drawn: bool = False
) -> Interval:
    """Return a ratio of pairs, shape (U,), and its interval by Student's t on the logarithm.

    The standard error is the jackknife's, from the statistic without each pair in turn (B. Efron
    and R. Tibshirani, An Introduction to the Bootstrap, Chapman & Hall 1993, ch. 11). For a
    geometric mean it is ``s / sqrt(U)``, where s is the standard deviation of logarithms. For
    workloads that are `drawn` from one workload it is s itself, as in the bootstrap (ch. 13): more
    workloads make it more certain, but not smaller. The statistic takes both sides and the keyword
    `axis`. One pair has no interval.
    """
    ours, other = np.asarray(ours, dtype=float), np.asarray(other, dtype=float)
    value, count = float(statistic(ours, other)), len(ours)
    if count < 2:
        return Interval(value, float("nan"), float("nan"))
    others = ~np.eye(count, dtype=bool)
    without = (np.broadcast_to(s, others.shape)[others].reshape(count, -1) for s in (ours, other))
    with np.errstate(divide="ignore", invalid="ignore"):  # a ratio of 0 has no logarithm
        logs = np.log(ours / other if drawn else statistic(*without))
        error = logs.std(ddof=1) if drawn else logs.std() * np.sqrt(count - 1)
    factor = float(np.exp(_student(count) * error))
    return Interval(value, value / factor, value * factor)


def _student(count: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, count - 1))


def half_width(values: Sequence[float] | Floats) -> float:
    """Return the half-width of the mean's confidence interval by Student's t; 0 for one value."""
    from scipy.stats import sem

    return float(sem(values) * _student(len(values))) if len(values) > 1 else 0.0


def geometric_mean(values: Floats, axis: int = -1) -> Floats:
    """Return the geometric mean along an axis."""
    with np.errstate(divide="ignore"):  # the mean with a zero is 0
        return np.asarray(np.exp(np.log(values).mean(axis=axis)))


def shifted_mean(times_s: Floats) -> float:
    """Return the geometric mean of ``t + SHIFT_S``, less `SHIFT_S`, so short times weigh less.

    See T. Achterberg, Constraint Integer Programming, TU Berlin 2007, app. A.3. The result is
    infinite after a failure.
    """
    return float(geometric_mean(times_s + SHIFT_S)) - SHIFT_S


def expected_running_time(spent: ArrayLike, reached: ArrayLike) -> float:
    """Return the ERT: the total cost of runs divided by the number that reached the target.

    `spent` are costs until the target or in vain, shape (R,). See N. Hansen et al., COCO,
    Optimization Methods and Software 36, 2021, sec. 5. The ERT is infinite if no run reached it.
    """
    count = np.count_nonzero(reached)
    return float(np.sum(spent) / count) if count else float("inf")


class Ranks(NamedTuple):
    """Mean ranks of S solvers over problems, where 1 is best, and the role of chance.

    `p` is the p-value of all solvers being alike; ranks closer than `critical` are not told apart.
    """

    mean: Floats
    p: float
    critical: float


def ranks(figures: Floats) -> Ranks:
    """Rank solvers on problems by figures, shape (P, S); less is better, failures (infinite) last.

    The test is Friedman's in the F form of Iman and Davenport, and the critical difference is
    Nemenyi's (J. Demsar, JMLR 7, 2006, sec. 3.2.2). Ties share their ranks. At least three solvers
    are required. p is at least the probability of one order on all problems, where the F
    approximation gives 0.
    """
    from scipy.stats import f, friedmanchisquare, rankdata, studentized_range

    place = rankdata(figures, axis=1)
    problems, solvers = figures.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        chi = np.float64(friedmanchisquare(*place.T).statistic)
        ratio = (problems - 1) * chi / (problems * (solvers - 1) - chi)
    free = solvers - 1
    p = float(f.sf(ratio, free, free * (problems - 1)))
    p = max(p, exp((1 - problems) * lgamma(solvers + 1)))
    q = float(studentized_range.ppf(CONFIDENCE, solvers, np.inf)) / np.sqrt(2.0)
    critical = q * np.sqrt(solvers * (solvers + 1) / (6.0 * problems))
    return Ranks(place.mean(axis=0), 1.0 if np.isnan(p) else p, float(critical))


def paired_ratio(ours: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return the geometric mean of the ratios ``ours / other`` of pairs."""
    return geometric_mean(ours / other, axis)


def ratio_of_means(ours: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return the ratio of the mean of `ours` to the mean of `other`."""
    return np.asarray(ours.mean(axis=axis) / other.mean(axis=axis))


def over_best(times: Floats) -> Floats:
    """Return the times of solvers relative to the least time on each problem, shape (P, S).

    The ratio is infinite if a solver has no time (an infinite one), even if no solver has one.
    """
    with np.errstate(invalid="ignore"):
        found = times / times.min(axis=1, keepdims=True)
    return np.where(np.isfinite(times), found, np.inf)


def performance_profile(ratios: Floats, factors: Floats) -> Floats:
    """Return the share of problems that each solver ends within factors of the best, shape (F, S).

    See E. Dolan and J. Moré, Math. Program. 91, 2002; `ratios` come from `over_best`.
    """
    return np.asarray((ratios[None, :, :] <= factors[:, None, None]).mean(axis=1))
