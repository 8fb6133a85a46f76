"""What is believed of a job whose size is not known: a heavy tail, given what it has done so far.

After s units of work, the work that is left R has the distribution ``P(R > x) = (s / (s + x))^2``:
sizes with a Pareto tail of exponent 2. So as much is expected to be left as has been done, which
ranks jobs by attained service as Tiresias' LAS does (Gu et al., NSDI 2019).
"""

import numpy as np

from ronda.instances.arrays import Floats

NEAR = 0.01
"""Sizes this close to each other, as a ratio, are compared by a series: no small differences."""


def outlasts(size: Floats | float, other: Floats | float) -> Floats:
    """Return the probability that more than `other` is left of a job with an expected `size`."""
    return np.asarray((size / (np.asarray(size) + other)) ** 2)


def larger(ratio: Floats) -> Floats:
    """Return the probability that the first of two unknown jobs has more left than the second.

    The integral of ``P(R > x)`` of the first over the density of the second, for expected sizes in
    the `ratio` r: with c = r - 1 it is
    ``r^2 / c^2 - (4 r^2 + 2 r) / c^3 + 6 r^2 ln r / c^4``, and ``1/2 + c/5 - c^2 / 10`` about 1.
    """
    near = np.abs(ratio - 1.0) < NEAR
    r = np.where(near, 2.0, ratio)
    c = r - 1.0
    exact = r**2 / c**2 - (4.0 * r**2 + 2.0 * r) / c**3 + 6.0 * r**2 * np.log(r) / c**4
    d = ratio - 1.0
    return np.where(near, 0.5 + d / 5.0 - d**2 / 10.0, exact)
