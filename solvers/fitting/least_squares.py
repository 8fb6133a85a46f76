"""Robust least squares within bounds, with the covariance of parameters.

Residuals r are logarithms of predicted / measured, so that relative errors at 0.1 s and 10 s count
the same. The loss is ``2 f^2 (sqrt(1 + (r/f)^2) - 1)`` with f = 0.05 (SciPy's ``soft_l1``). It is
quadratic below 5 % and linear above, so that a faulty row does not bend the curve.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from scipy.optimize import least_squares

from ronda.instances.base import Floats, Mask
from ronda.instances.errors import InputError, refuse_beyond
from ronda.instances.models.fits import FitParameter, FitRemark
from ronda.instances.profile import Parametric, PowerCurve

M = TypeVar("M", Parametric, PowerCurve)


@dataclass(frozen=True, slots=True)
class Found:
    """The best point: parameters (P,), and their covariance (P, P) from the curvature.

    Variances are 0 for held parameters and for parameters on a bound.
    """

    x: Floats
    covariance: Floats


@dataclass(frozen=True, slots=True)
class Fitted(Generic[M]):
    """A fitted model, its parameters, and remarks on parameters that the rows did not determine."""

    model: M
    parameters: tuple[FitParameter, ...]
    remarks: tuple[FitRemark, ...]


def parameters_of(
    model: Parametric | PowerCurve, errors: Mapping[str, float], held: Collection[str]
) -> tuple[FitParameter, ...]:
    """Return the parameters of a model with their standard errors, 0 for parameters on a bound."""
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
    """Refuse impossible values of known parameters."""
    for name, value in known.items():
        if name not in bounds:
            raise InputError("--fix", repr(name), f"one of {', '.join(bounds)}")
        refuse_beyond(f"--fix {name}", value, *bounds[name])


def log_ratio(predicted: Floats, measured: Floats) -> Floats:
    """Return log(predicted / measured), with predictions of at least 1e-12 times measured."""
    return np.asarray(np.log(np.maximum(predicted / measured, 1e-12)))


def search(
    residuals: Callable[[Floats], Floats],
    starts: Sequence[Floats],
    lower: Floats,
    upper: Floats,
    free: Mask,
) -> Found:
    """Return the best point within bounds (P,), found from any of the starts (P,).

    `residuals` maps parameters (P,) to residuals (R,). Parameters that are not `free` keep their
    value, which is the same in all starts.
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
            f_scale=0.05,
        )
        for start in starts
    ]
    best = min(tries, key=lambda found: float(found.cost))
    jacobian = np.asarray(best.jac, dtype=float)
    steep = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
    # A parameter is on a bound if a move to that bound changes residuals by less than 1e-4.
    at_low, at_high = (np.abs(best.x - bound) < 1e-4 / steep for bound in (low, high))
    x[free] = np.where(at_low, low, np.where(at_high, high, best.x))
    inner = ~(at_low | at_high)
    told = np.flatnonzero(free)[inner]
    slopes = jacobian[:, inner] / steep[inner]
    variance = 2.0 * float(best.cost) / max(len(slopes) - len(told), 1)
    # The curvature has the diagonal 1. A small addition makes all variances finite.
    spread = np.linalg.inv(slopes.T @ slopes + 1e-12 * np.eye(len(told)))
    covariance[np.ix_(told, told)] = variance * spread / np.outer(steep[inner], steep[inner])
    return Found(x, covariance)
