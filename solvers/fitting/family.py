"""Power curves that share the shape of their rise: model, derivatives, bounds and spread.

Curve j is ``a_j + A_j (cos t min(s, s0) + sin t max(s^3 - s0^3, 0))``: the knee s0 and the angle t
(``tan t = c/b``) are shared, a_j and A_j are its own. One curve alone is the plain
``a + b min(s, s0) + c max(s^3 - s0^3, 0)``.

The parameters of a search are ``[s0, t, a_1 .. a_J, A_1 .. A_J]``, watts as shares of the largest
measurement; what is fixed from outside is left out of the search, not of this order.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.profile import PowerCurve
from ronda.solvers.fitting.search import LEAST, Box, Found, search

# The knee may lie so far up, so that at least a little of the range is above it; 1 is the end.
_LAST_START = 0.98
# Starts keep this distance from bounds.
_MARGIN = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Measured curves: arrays of shape (R,), one entry a row.

    Attributes
    ----------
    speed, power_w
        What was measured.
    curve
        To which curve it belongs, 0 to `count` - 1.
    count
        Number of curves.
    fixed
        Values of ``a_w`` (of all curves), ``s0`` and ``angle`` (t) that are known.
    """

    speed: Floats
    power_w: Floats
    curve: Rows
    count: int
    fixed: Mapping[str, float]

    @property
    def unit(self) -> float:
        """Watts of 1 in the search."""
        return float(self.power_w.max())

    @property
    def whole(self) -> Floats:
        """(2 + 2 J,) all parameters, fixed ones in place and 0 elsewhere."""
        x = np.zeros(2 + 2 * self.count)
        x[0], x[1] = self.fixed.get("s0", 0.0), self.fixed.get("angle", 0.0)
        x[2 : 2 + self.count] = self.fixed.get("a_w", 0.0) / self.unit
        return x

    @property
    def free(self) -> Mask:
        """(2 + 2 J,) which of them are searched for."""
        free = np.ones(2 + 2 * self.count, dtype=bool)
        free[0], free[1] = "s0" not in self.fixed, "angle" not in self.fixed
        free[2 : 2 + self.count] = "a_w" not in self.fixed
        return free


def fit_family(family: Family, starts: int, polish: int) -> Found:
    """Return the best parameters of a family; `x` and `at_bound` have all, fixed ones as bound.

    As a function of the knee the cost has a kink at every measured speed, so a search is caught
    between two of them. Therefore searches start from `starts` places of the knee between
    measured speeds, each with the non-negative least squares of every curve for that knee; the
    best `polish` of them are searched from.
    """
    free = family.free
    knees = _knees(family, starts) if free[0] else [float(family.fixed["s0"])]
    first = np.array([_start(family, knee)[free] for knee in knees])
    return _search(family, _box(family, first), polish)


def _start(family: Family, knee: float) -> Floats:
    """Return the parameters of a knee that linear least squares of relative errors gives.

    Every curve is fitted alone, then the angles' median is given to all and they are fitted again.
    """
    x = family.whole
    x[0] = knee
    below = np.minimum(family.speed, knee)
    above = np.maximum(family.speed**3 - knee**3, 0.0)
    if "angle" not in family.fixed:
        alone = [_levels(family, j, np.stack([below, above])) for j in range(family.count)]
        b, c = np.median([rise for _, rise in alone], axis=0)
        x[1] = np.arctan2(c, b) if b + c > 0.0 else np.pi / 4
    shape = np.cos(x[1]) * below + np.sin(x[1]) * above
    for j in range(family.count):
        x[2 + j], (x[2 + family.count + j],) = _levels(family, j, shape[None, :])
    return x


def _levels(family: Family, j: int, shapes: Floats) -> tuple[float, Floats]:
    """Return a and the non-negative factors of some shapes (rows) that suit curve j best."""
    own = family.curve == j
    power = family.power_w[own] / family.unit
    basis = shapes[:, own].T / power[:, None]
    if "a_w" in family.fixed:
        a = family.fixed["a_w"] / family.unit
        return a, nnls(basis, 1.0 - a / power)[0]
    found = nnls(np.column_stack([1.0 / power, basis]), np.ones_like(power))[0]
    return float(found[0]), found[1:]


def _search(family: Family, box: Box, polish: int) -> Found:
    """Return the best free parameters in their places among all."""
    free = family.free

    def fill(x: Floats) -> Floats:
        whole = family.whole
        whole[free] = x
        return whole

    found = search(
        lambda x: _residuals(fill(x), family),
        box,
        jacobian=lambda x: _jacobian(fill(x), family)[:, free],
        polish=polish,
    )
    covariance = np.zeros((len(free), len(free)))
    covariance[np.ix_(free, free)] = found.covariance
    at_bound = np.ones(len(free), dtype=bool)
    at_bound[free] = found.at_bound
    return Found(fill(found.x), found.cost, covariance, at_bound)


def _least_knee(family: Family) -> float:
    """Return the second slowest speed of some curve: b needs two speeds up to the knee."""
    second = [np.unique(family.speed[family.curve == j])[1] for j in range(family.count)]
    return min(float(min(second)), _LAST_START)


def _knees(family: Family, count: int) -> list[float]:
    """Return so many places for the knee, between measured speeds."""
    low = _least_knee(family)
    speeds = np.unique(np.clip(family.speed, low, 1.0))
    speeds = np.unique(np.concatenate([speeds, [low, 1.0]]))
    between = (speeds[1:] + speeds[:-1]) / 2.0
    if len(between) > count:
        chosen = np.linspace(0, len(between) - 1, count).round().astype(int)
        return [float(x) for x in between[chosen]]
    more = np.linspace(low, 1.0, count - len(between) + 2)[1:-1]
    return [float(x) for x in np.sort(np.concatenate([between, more]))]


def curve_of(x: Floats, family: Family, j: int) -> PowerCurve:
    """Return curve j of a family."""
    s0, angle, a, rise = _own(x, family, j)
    return PowerCurve(
        a_w=a * family.unit,
        b_w=rise * math.cos(angle) * family.unit,
        c_w=rise * math.sin(angle) * family.unit,
        s0=s0,
    )


def spread_of(found: Found, family: Family, j: int) -> dict[str, float | None]:
    """Return the standard errors of curve j by parameter; None: fixed or at a bound."""
    _, angle, _, rise = _own(found.x, family, j)
    at = {"s0": 0, "t": 1, "a": 2 + j, "A": 2 + family.count + j}
    cov = found.covariance
    pair = [at["t"], at["A"]]
    own = cov[np.ix_(pair, pair)]
    slopes = {
        "b_w": np.array([-rise * np.sin(angle), np.cos(angle)]),
        "c_w": np.array([rise * np.cos(angle), np.sin(angle)]),
    }
    stuck = found.at_bound
    errors: dict[str, float | None] = {
        name: float(np.sqrt(max(slope @ own @ slope, 0.0))) * family.unit
        for name, slope in slopes.items()
    }
    if stuck[at["t"]]:  # all of the rise is on one side of the knee
        errors["c_w" if angle < 1.0 else "b_w"] = None
    errors["a_w"] = None if stuck[at["a"]] else float(np.sqrt(cov[at["a"], at["a"]])) * family.unit
    errors["s0"] = None if stuck[at["s0"]] else float(np.sqrt(cov[0, 0]))
    return errors


def _own(x: Floats, family: Family, j: int) -> tuple[float, float, float, float]:
    """Return s0, t, a_j and A_j."""
    return float(x[0]), float(x[1]), float(x[2 + j]), float(x[2 + family.count + j])


def _parts(x: Floats, family: Family) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return below the knee, above it, the rise of both, A of every row, and power."""
    s0, angle = x[0], x[1]
    a, rise = x[2 : 2 + family.count][family.curve], x[2 + family.count :][family.curve]
    below = np.minimum(family.speed, s0)
    above = np.maximum(family.speed**3 - s0**3, 0.0)
    shape = np.cos(angle) * below + np.sin(angle) * above
    return below, above, np.asarray(shape), rise, np.maximum(a + rise * shape, LEAST)


def _residuals(x: Floats, family: Family) -> Floats:
    """Return log(predicted / measured)."""
    return np.asarray(np.log(_parts(x, family)[-1] * family.unit / family.power_w))


def _jacobian(x: Floats, family: Family) -> Floats:
    """Return the (R, 2 + 2 J) derivatives of `_residuals`."""
    below, above, shape, rise, power = _parts(x, family)
    s0, angle = x[0], x[1]
    rows = np.arange(len(family.speed))
    slopes = np.zeros((len(rows), len(x)))
    beyond = family.speed > s0
    slopes[:, 0] = rise * np.where(beyond, np.cos(angle) - 3.0 * np.sin(angle) * s0**2, 0.0)
    slopes[:, 1] = rise * (np.cos(angle) * above - np.sin(angle) * below)
    slopes[rows, 2 + family.curve] = 1.0
    slopes[rows, 2 + family.count + family.curve] = shape
    return np.asarray(slopes / power[:, None])


def _box(family: Family, starts: Floats) -> Box:
    """Return bounds and scales of the free parameters, and starts moved within the bounds."""
    free = family.free
    size = 2 + 2 * family.count
    lower, upper = np.zeros(size), np.full(size, np.inf)
    lower[0], upper[0], upper[1] = _least_knee(family), 1.0, np.pi / 2
    scale = np.where(np.arange(size) == 0, 0.1, 1.0)
    lower, upper = lower[free], upper[free]
    margin = _MARGIN * scale[free]  # a start on a bound may stay there
    within = np.clip(starts, lower + margin, upper - margin)
    return Box(lower, upper, scale[free], within)
