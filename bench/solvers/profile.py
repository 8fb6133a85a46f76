"""Performance profiles (E. Dolan and J. Moré, Math. Program. 91, 2002)."""

import numpy as np

from ronda.instances.arrays import Floats


def ratios(times: Floats) -> Floats:
    """Return (P, S) the times of solvers on problems over the least time on each problem.

    Infinite where a solver has no time (infinite, too), also if none has one.
    """
    least = times.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        found = times / least
    return np.where(np.isfinite(times), found, np.inf)


def shares(found: Floats, factors: Floats) -> Floats:
    """Return (F, S) the share of problems that each solver ends within factors of the best time."""
    return np.asarray((found[None, :, :] <= factors[:, None, None]).mean(axis=1))
