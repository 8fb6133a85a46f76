"""Robust least squares within bounds, and how well the rows tell each parameter.

Residuals are logarithms of predicted over measured, so that 0.1 s and 10 s count alike. They are
weighed by ``2 f^2 (sqrt(1 + (r/f)^2) - 1)`` with f = 0.05 (SciPy's ``soft_l1``): as squares below
5 %, in proportion above, so that a row that went wrong does not bend the curve.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from scipy.optimize import least_squares

from ronda.instances.arrays import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.models.fits import FitParameter, FitRemark
from ronda.instances.profile import Parametric, PowerCurve

M = TypeVar("M", Parametric, PowerCurve)

ROBUST_ABOVE = 0.05
"""Relative error from which on a row counts less than its square."""

# A parameter is on its bound if moving it there changes the residuals by less than this.
_NEAR = 1e-4
# Added to the curvature, whose diagonal is 1: what rows do not tell has a large, finite variance.
_FLAT = 1e-12


@dataclass(frozen=True, slots=True)
class Found:
    """The best point: (P,) parameters, and their (P, P) covariance from the curvature.

    Variances are 0 for parameters that were held, or that lie on a bound.
    """

    x: Floats
    covariance: Floats


@dataclass(frozen=True, slots=True)
class Fitted(Generic[M]):
    """A fitted model, its parameters, and what the rows did not tell."""

    model: M
    parameters: tuple[FitParameter, ...]
    remarks: tuple[FitRemark, ...]


def parameters_of(
    model: Parametric | PowerCurve, errors: Mapping[str, float], held: Collection[str]
) -> tuple[FitParameter, ...]:
    """Return the parameters of a model by their standard errors; one of 0 means at a bound."""
    made = []
    for name, error in errors.items():
        value = float(getattr(model, name))
        if name in held:
            made.append(FitParameter(name=name, value=value, state="fixed"))
        elif error > 0.0:
            made.append(FitParameter(name=name, value=value, std_error=error))
        else:
            made.append(FitParameter(name=name, value=value, state="at-bound"))
    return tuple(made)


def check_known(known: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a value that the caller gives for a parameter if it is impossible."""
    for name, value in known.items():
        if name not in bounds:
            raise InputError("--fix", repr(name), f"one of {', '.join(bounds)}")
        low, high = bounds[name]
        if not low <= value <= high:
            limits = f"{low:g} or more" if high == np.inf else f"{low:g} to {high:g}"
            raise InputError(f"--fix {name}", f"{value:g}", limits)


def log_ratio(predicted: Floats, measured: Floats) -> Floats:
    """Return log(predicted / measured); predictions count as 1e-12 of the measured at least."""
    return np.asarray(np.log(np.maximum(predicted / measured, 1e-12)))


def search(
    residuals: Callable[[Floats], Floats],
    starts: Sequence[Floats],
    lower: Floats,
    upper: Floats,
    free: Mask,
) -> Found:
    """Return the best point that any of the (P,) starts leads to within (P,) bounds.

    `residuals` maps (P,) parameters to (R,). Those that are not `free` are held: they are the same
    in all starts.
    """
    x, size = starts[0].copy(), len(free)
    covariance = np.zeros((size, size))
    if not free.any():
        return Found(x, covariance)

    def of_free(part: Floats) -> Floats:
        point = x.copy()
        point[free] = part
        return residuals(point)

    low, high = lower[free], upper[free]
    tries = [
        least_squares(
            of_free,
            np.clip(start[free], low, high),
            bounds=(low, high),
            x_scale="jac",
            loss="soft_l1",
            f_scale=ROBUST_ABOVE,
        )
        for start in starts
    ]
    best = min(tries, key=lambda found: float(found.cost))
    jacobian = np.asarray(best.jac, dtype=float)
    steep = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
    at_low, at_high = (np.abs(best.x - bound) < _NEAR / steep for bound in (low, high))
    x[free] = np.where(at_low, low, np.where(at_high, high, best.x))
    inner = ~(at_low | at_high)
    told = np.flatnonzero(free)[inner]
    slopes = jacobian[:, inner] / steep[inner]
    variance = 2.0 * float(best.cost) / max(len(slopes) - len(told), 1)
    spread = np.linalg.inv(slopes.T @ slopes + _FLAT * np.eye(len(told)))
    covariance[np.ix_(told, told)] = variance * spread / np.outer(steep[inner], steep[inner])
    return Found(x, covariance)
