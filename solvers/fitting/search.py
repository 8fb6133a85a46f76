"""Robust least squares with bounds from many starts, and what it says about each parameter.

Residuals are logarithms of predicted over measured, so that 0.1 s and 10 s count alike. They are
weighed by ``2 f^2 (sqrt(1 + (r/f)^2) - 1)`` with f = 0.05 (scipy's ``soft_l1``): as squares below
5 %, in proportion above, so that a row that went wrong does not bend the curve.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from ronda.instances.arrays import Floats, Mask

ROBUST_ABOVE = 0.05
"""Relative error from which on a row counts less than its square."""

LEAST = 1e-12
"""Predictions are kept above this share of the measurements' scale: a logarithm needs it."""

# A parameter nearer to its bound than this, in units of its own scale, lies on it.
_NEAR = 1e-4
# Directions flatter than this, relative to the steepest, count as this flat: finite, but hopeless.
_FLAT = 1e-8


@dataclass(frozen=True, slots=True)
class Box:
    """The space of a search; arrays of shape (P,).

    Attributes
    ----------
    lower, upper
        Bounds.
    scale
        Typical sizes.
    starts
        (S, P) points to search from.
    """

    lower: Floats
    upper: Floats
    scale: Floats
    starts: Floats


@dataclass(frozen=True, slots=True)
class Found:
    """The best point of a search.

    Attributes
    ----------
    x
        (P,) the point; parameters at a bound are exactly on it.
    cost
        Half the sum of the weighed squares.
    covariance
        (P, P) of the parameters, from the curvature; rows and columns of those at a bound are 0.
        What the data do not determine has a very large variance.
    at_bound
        (P,) which lie on a bound.
    """

    x: Floats
    cost: float
    covariance: Floats
    at_bound: Mask

    @property
    def std_error(self) -> Floats:
        """(P,) standard errors; 0 at a bound."""
        return np.sqrt(np.diag(self.covariance))


def search(
    residuals: Callable[[Floats], Floats],
    box: Box,
    *,
    jacobian: Callable[[Floats], Floats] | None = None,
    polish: int | None = None,
) -> Found:
    """Return the best point that any start leads to.

    Parameters
    ----------
    residuals
        From (P,) parameters to (R,) residuals.
    box
        Bounds, scales and starts.
    jacobian
        From parameters to (R, P) derivatives; None: differences.
    polish
        Search from so many of the starts, the best ones; None: from all.
    """
    starts = box.starts
    if polish is not None and polish < len(starts):
        first = [float(np.abs(residuals(start)).sum()) for start in starts]
        starts = starts[np.argsort(first, kind="stable")[:polish]]
    best = None
    for start in starts:
        done = least_squares(
            residuals,
            start,
            jac="2-point" if jacobian is None else jacobian,
            bounds=(box.lower, box.upper),
            x_scale=box.scale,
            loss="soft_l1",
            f_scale=ROBUST_ABOVE,
        )
        if best is None or done.cost < best.cost:
            best = done
    assert best is not None  # there is always a start
    low = best.x - box.lower <= _NEAR * box.scale
    high = box.upper - best.x <= _NEAR * box.scale
    x = np.where(low, box.lower, np.where(high, box.upper, best.x))
    at_bound = np.asarray(low | high)
    covariance = _covariance(np.asarray(best.jac), float(best.cost), at_bound)
    return Found(x, float(best.cost), covariance, at_bound)


def _covariance(jacobian: Floats, cost: float, at_bound: Mask) -> Floats:
    """Return ``s^2 (J'J)^-1`` of the parameters within their bounds, s^2 the residual variance."""
    rows, count = jacobian.shape
    inner = np.flatnonzero(~at_bound)
    covariance = np.zeros((count, count))
    if not len(inner):
        return covariance
    variance = 2.0 * cost / max(rows - len(inner), 1)
    scale = np.linalg.norm(jacobian[:, inner], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    _, sizes, axes = np.linalg.svd(jacobian[:, inner] / scale, full_matrices=False)
    sizes = np.maximum(sizes, _FLAT * sizes[0])
    spread = (axes.T / sizes**2) @ axes
    covariance[np.ix_(inner, inner)] = variance * spread / np.outer(scale, scale)
    return covariance
