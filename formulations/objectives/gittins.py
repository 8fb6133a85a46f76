"""The rank objective with a Gittins index: jobs that may be short go before what they average.

The index of a job of which S seconds are left, in some distribution, is the least time that must be
spent on it for each completion (Gittins, *J. R. Statist. Soc.* B 1979; Aalto, Ayesta and Righter,
*Queueing Systems* 2009)::

    min over x of  E[min(S, x)] / P(S <= x)

It is a share of the mean: 1 of sizes that are sure or all but, 0.89 at a spread of 1, 0.41 at 1.5,
0.10 at 2. `rank` asks of each two jobs which one is likely to be the smaller, so in its middle
stands the median, 0.61, 0.32 and 0.14 of the mean. Here the index stands there.
"""

import math
from functools import cache

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.rank import rank_values
from ronda.instances.arrays import Floats

# Steps of the spread at which the index is computed, and of the logarithm of x, in spreads.
SPREADS, TIMES = np.linspace(0.05, 6.0, 120), np.linspace(-8.0, 8.0, 321)


def gittins_rank(o: Outlook, patience: float, alone_s: float | None) -> Floats:
    """Return (K,) the values of `rank_values` with the index in the place of the median."""
    over_median = np.exp(0.5 * o.spread**2) * index_over_mean(o.spread)
    return rank_values(o, patience, alone_s, over_median)


def index_over_mean(spread: Floats) -> Floats:
    """Return (J,) the Gittins index over the mean of lognormal work whose log spreads so far."""
    return np.asarray(np.exp(np.interp(spread, SPREADS, _logarithms(), left=0.0)))


@cache
def _logarithms() -> Floats:
    """Return the logarithm of the index over the mean at `SPREADS`."""
    s = SPREADS[:, None]
    within, before = _normal(TIMES), _normal(TIMES - s)
    spent = before + np.exp(s * TIMES - 0.5 * s**2) * (1.0 - within)
    return np.asarray(np.minimum(0.0, np.log((spent / within).min(axis=1))))


def _normal(z: Floats) -> Floats:
    """Return the standard normal distribution function."""
    return np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in z.ravel()]).reshape(z.shape)
