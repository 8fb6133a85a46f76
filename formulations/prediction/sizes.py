"""The distribution of job sizes, from the sizes of similar jobs and from their own progress.

The sizes of complete jobs, and the progress of live jobs (censored sizes, as the jobs are larger),
give a distribution by the product-limit estimator (Kaplan and Meier, *J. Am. Statist. Assoc.*
1958)::

    P(size > x) = product over complete sizes s <= x of  1 - w(s) / w(sizes and progress >= s)

The mass beyond the greatest complete size lies at twice the greatest size or progress of any job
(our own *relative rule*). Before any job is complete, this is the only rule.

**Few jobs.** A job that comes near the size of a complete job need not end there, since sizes of
one application differ. So each size is the mean of a lognormal distribution. Its spread is that of
complete jobs of one application divided by the fifth root of their number (the bandwidth of Scott,
*Multivariate Density Estimation* 1992).

**Similar jobs.** The weights of observations follow levels, such as application, user and requested
GPUs. The most specific level of a job has the share ``n / (n + SHRINKAGE)`` if it has n complete
sizes, the next level has the same share of the rest, and the broadest level has the remainder
(shrinkage as in credibility theory: Bühlmann, *ASTIN Bulletin* 1967).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ronda.instances.base import Floats, Mask

SHRINKAGE = 2.0
"""The number of complete jobs of a level that have the same weight as the whole next level."""

VARIANCE = 3.0
"""The variance of log size within an application until two of its jobs are complete. It has the
weight of one degree of freedom. Among jobs of one user on the same number of GPUs, the variance is
2.6 to 4.6 in the traces of Philly and Venus, and 0.7 in that of ITP's cluster 01."""

MOST = 25.0
"""The greatest variance, at which sizes differ by factors of thousands."""

NARROW, OUTLIVED = 1e-9, 1e-6
"""The least spread, and the probability below which a job has outlived all sizes."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """A distribution of sizes, as a mixture of lognormal parts.

    The parts have the ascending means `work` (K,) and the shares `mass` (K,), which sum to 1. The
    `spread` is the standard deviation of the logarithm in each part; at 0 the sizes are `work`.
    """

    work: Floats
    mass: Floats
    spread: float = 0.0

    def left(self, done: float = 0.0) -> tuple[float, float]:
        """Return the mean and standard deviation of a job's remaining work after `done`.

        A job that has outlived all sizes has as much work left as it has done, with the spread of
        unknown sizes.
        """
        h, far, unit = max(self.spread, NARROW), self._far(done), float(self.work.max())
        chance = float(self.mass @ ndtr(-far))
        if chance > OUTLIVED:
            share, work = self.mass / chance, self.work / unit
            mean = float(share @ (work * ndtr(h - far)))
            square = float(share @ (work**2 * np.exp(h**2) * ndtr(2.0 * h - far)))
            left = mean * unit - done
            if left > NARROW * done:
                return left, unit * float(np.sqrt(max(0.0, square - mean**2)))
        return done, done * float(np.sqrt(np.expm1(VARIANCE)))

    def share(self, work: float, done: float = 0.0) -> float:
        """Return the probability that the size is at most `work`, given the progress `done`.

        A size equal to `work` counts as half.
        """
        above, beyond = (float(self.mass @ ndtr(-self._far(x))) for x in (work, done))
        return 1.0 - above / beyond if beyond > OUTLIVED else 0.5

    def _far(self, work: float) -> Floats:
        """Return how many standard deviations `work` lies above the median of each part, (K,)."""
        at, h = np.log(work) if work > 0 else -np.inf, max(self.spread, NARROW)
        return np.asarray((at - np.log(self.work)) / h + 0.5 * h)


def within(work: Sequence[float]) -> tuple[float, int]:
    """Return the sum of squared deviations of log sizes in an application, and its freedom."""
    return (float(np.var(np.log(work)) * len(work)), len(work) - 1) if work else (0.0, 0)


def pooled(within: Iterable[tuple[float, int]]) -> float:
    """Return the variance of log sizes within an application, pooled over all applications."""
    squares, freedom = VARIANCE, 1
    for own, free in within:
        squares, freedom = squares + own, freedom + free
    return min(squares / freedom, MOST)


def sizes(work: Floats, complete: Mask, weight: Floats, variance: float = 0.0) -> Sizes | None:
    """Return the distribution of sizes of jobs like the observed ones, or None if it is unknown.

    `work` (N,) is the size of a `complete` (N,) job, or the progress of a live job. Observations
    have a `weight` (N,). `variance` is the variance of log sizes within an application (`pooled`).
    The distribution is unknown if no job is complete or has any progress.
    """
    counts = weight > 0
    work, complete, weight = work[counts], complete[counts], weight[counts]
    if not len(work) or not work.max() > 0:
        return None
    order = np.lexsort((~complete, work))  # of equal ones the complete first
    work, complete, weight = work[order], complete[order], weight[order]
    at_risk = np.cumsum(weight[::-1])[::-1]
    stays = np.where(complete, 1.0 - weight / at_risk, 1.0)
    survives = np.concatenate([[1.0], np.cumprod(np.maximum(stays, 0.0))])
    mass = (survives[:-1] - survives[1:])[complete]
    values, tail = work[complete], float(survives[-1])
    if tail > 1e-12:
        values, mass = np.append(values, 2.0 * work[-1]), np.append(mass, tail)
    values, of = np.unique(values, return_inverse=True)
    spread = float(np.sqrt(variance) * max(1.0, float(complete.sum())) ** -0.2)
    return Sizes(values, np.bincount(of, mass) / mass.sum(), spread)


def likeness(shared: Mask, complete: Mask) -> Floats:
    """Return the weights (N,) of observations for a job, from the levels (N, L) that they share.

    Levels go from the broadest to the most specific. An observation that shares a level shares all
    broader levels.
    """
    weight, rest = np.zeros(len(shared)), 1.0
    counts = (shared & complete[:, None]).sum(axis=0)
    if not len(shared) or not counts[0]:
        return shared[:, 0].astype(float) if len(shared) else weight
    for level in range(shared.shape[1] - 1, -1, -1):
        n = float(counts[level])
        if n:
            share = rest * (n / (n + SHRINKAGE) if level else 1.0)
            weight += share / n * shared[:, level]
            rest -= share
    return weight
