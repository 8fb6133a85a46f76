"""How much work jobs have: the sizes of jobs like them, given how far they have come.

The sizes of jobs that are complete, and of live ones what they have done (they are larger than
that: censored), give a distribution by the product-limit estimator (Kaplan and Meier, *J. Am.
Statist. Assoc.* 1958)::

    P(size > x) = product over complete sizes s <= x of  1 - w(s) / w(sizes and progress >= s)

What mass is left beyond the greatest complete size lies at twice the greatest progress of any of
the jobs: the *relative rule* (ours). It alone speaks before any job is complete.

**Jobs like it.** Observations count by levels, such as application, user, GPUs asked for: a job's
own most specific level with n complete sizes has the share ``n / (n + SHRINKAGE)``, the next level
the same share of the rest, and the broadest level what is left (shrinkage as in credibility theory:
Bühlmann, *ASTIN Bulletin* 1967).
"""

from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Mask

SHRINKAGE = 2.0
"""Complete jobs of a level that weigh as much as all of the next one."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """A distribution of sizes: (K,) `work` ascending, with (K,) `mass` that sums to 1."""

    work: Floats
    mass: Floats

    def left(self, done: float) -> "Sizes":
        """Return the distribution of the work left of a job that has done so much.

        One that has outlived all sizes has as much left as it has done.
        """
        beyond = self.work > done
        if not beyond.any():
            return Sizes(np.array([done]), np.ones(1))
        mass = self.mass[beyond]
        return Sizes(self.work[beyond] - done, mass / mass.sum())

    @property
    def mean(self) -> float:
        """The expected size."""
        return float(self.work @ self.mass)

    @property
    def sd(self) -> float:
        """The standard deviation of sizes."""
        return float(np.sqrt((self.work - self.mean) ** 2 @ self.mass))

    def share(self, work: float) -> float:
        """Return the probability of a size that is not larger, half of it for an equal one."""
        near = np.abs(self.work - work) <= 1e-9 * work
        return float(self.mass[(self.work < work) & ~near].sum() + 0.5 * self.mass[near].sum())

    def quantile(self, q: float) -> float:
        """Return the least size that at least the share `q` of jobs stays within."""
        k = int(np.searchsorted(np.cumsum(self.mass), q - 1e-12))
        return float(self.work[min(k, len(self.work) - 1)])


def sizes(work: Floats, complete: Mask, weight: Floats) -> Sizes | None:
    """Return the distribution of sizes of jobs like those observed; None if it is not known.

    `work` (N,) is the size of a job that is `complete` (N,), else what it has done. Observations
    count by their `weight` (N,). Nothing is known if none is complete and none has done anything.
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
    return Sizes(values, np.bincount(of, mass) / mass.sum())


def likeness(shared: Mask, complete: Mask) -> Floats:
    """Return the (N,) weights of observations for a job, by the levels (N, L) that they share.

    Levels go from the broadest to the most specific, which all observations that share it share
    with the broader ones as well.
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
