"""The fit of power curves ``a + b min(s, s0) + c max(s^3 - s0^3, 0)`` to measured watts.

The curves of all batch sizes of one application on one GPU share their shape. Each curve has its
own a and its own rise b + c. The knee s0 and the cubic share c / (b + c), which follow from voltage
and frequency, are common. A curve usually has 6 to 9 measurements, so four parameters per curve
would fit the noise (``docs/fitting.md`` has the comparison).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.models.fits import FitRemark
from ronda.instances.profile import PowerCurve
from ronda.solvers.fitting.least_squares import (
    Fitted,
    Found,
    check_known,
    log_ratio,
    parameters_of,
    search,
)
from ronda.solvers.fitting.measurements import Measurements

FIXABLE = {"a_w": (0.0, np.inf), "s0": (0.01, 1.0)}
"""The parameters that can be known beforehand, with their bounds."""

_NAMES = ("a_w", "b_w", "c_w", "s0")


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Measured curves of one shape: speeds (R,), watts (R,), curves of rows (R,), curve count.

    The parameters of a search are ``[s0, cubic share, a_1 .. a_J, rise_1 .. rise_J]``.
    """

    speed: Floats
    power_w: Floats
    curve: Rows
    count: int

    def watts(self, x: Floats) -> Floats:
        """Return the watts of each row."""
        below, above = self.shapes(x[0])
        a, rise = x[2 : 2 + self.count], x[2 + self.count :]
        shape = (1.0 - x[1]) * below + x[1] * above
        return np.asarray(a[self.curve] + rise[self.curve] * shape)

    def shapes(self, knee: float) -> tuple[Floats, Floats]:
        """Return ``min(s, s0)`` and ``max(s^3 - s0^3, 0)`` of each row."""
        above = np.maximum(self.speed**3 - knee**3, 0.0)
        return np.minimum(self.speed, knee), np.asarray(above)

    def levels(self, *shapes: Floats) -> Floats:
        """Return the best non-negative a and factors of shapes for each curve, shape (J, 1 + S)."""
        basis = np.column_stack([np.ones_like(self.speed), *shapes]) / self.power_w[:, None]
        own = [basis[self.curve == j] for j in range(self.count)]
        return np.array([nnls(rows, np.ones(len(rows)))[0] for rows in own])


def fit_power(table: Measurements, known: Mapping[str, float]) -> dict[float, Fitted[PowerCurve]]:
    """Fit a `PowerCurve` to each batch size of measured watts, all of one shape.

    ``a_w`` (watts) and ``s0`` may be known. Raises InputError for too few speeds, and for power
    that falls as speed rises.
    """
    check_known(known, FIXABLE)
    _check_speeds(table, known)
    batches, curve = np.unique(table.rows.batch, return_inverse=True)
    speed, power_w = table.rows.speed.to_numpy(), table.rows.power_w.to_numpy()
    count = len(batches)
    family = _Family(speed, power_w, curve, count)
    rises = table.rows.groupby("batch").power_w.agg(_varies).to_numpy()
    found = search(
        lambda x: log_ratio(family.watts(x), power_w),
        _starts(family, known, rises),
        np.concatenate([[_least_knee(speed)], np.zeros(1 + 2 * count)]),
        np.concatenate([[1.0, 1.0], np.full(2 * count, np.inf)]),
        _free(known, rises),
    )
    return {batch: _curve(found, j, count, known) for j, batch in enumerate(batches.tolist())}


def _varies(power_w: pd.Series) -> bool:
    return bool(power_w.max() > 1.05 * power_w.min())  # otherwise a constant is fitted


def _free(known: Mapping[str, float], rises: Mask) -> Mask:
    """Return the parameters to search; `rises` (J,) marks curves that rise."""
    shape = [rises.any() and "s0" not in known, rises.any()]
    return np.concatenate([shape, np.full(len(rises), "a_w" not in known), rises])


def _check_speeds(table: Measurements, known: Mapping[str, float]) -> None:
    """Refuse too few speeds for the parameters, and power that falls as speed rises."""
    if table.rows.empty:
        raise table.refused("no rows", "at least one")
    curves = table.rows.groupby("batch")
    shape = ("c_w", "s0") if len(curves) == 1 else ()
    names = [name for name in ("a_w", "b_w", *shape) if name not in known]
    for _, rows in curves:
        if not _varies(rows.power_w):
            continue
        size = float(rows.batch.iloc[0])
        where = f" of batch {size:g}" if size else ""
        speeds = rows.speed.nunique()
        if speeds <= len(names):
            raise table.refused(
                f"{len(rows)} rows{where} with {speeds} different speeds for the parameters "
                f"{', '.join(names)}",
                f"at least {len(names) + 1} speeds, or --fix s0=VALUE or --fix a_w=VALUE",
            )
        low, high = rows.power_w.min(), rows.power_w.max()
        if high > 1.2 * low and rows.speed.corr(rows.power_w) <= -0.5:
            raise table.refused(
                f"power{where} that falls from {high:.4g} to {low:.4g} W as speed rises",
                "power that rises with speed; look for columns that were mixed up",
            )


def _least_knee(speed: Floats) -> float:
    """Return the second slowest speed, as two speeds up to the knee are required to fit b."""
    return min(float(np.unique(speed)[:2].max()), 0.98)


def _starts(family: _Family, known: Mapping[str, float], rises: Mask) -> list[Floats]:
    """Return the best of many knees, each with its levels by linear least squares.

    Every curve is fitted alone. Then all curves get the cubic share of the sum and are fitted
    again.
    """
    speeds = np.unique(np.clip(family.speed, _least_knee(family.speed), 1.0))
    between = np.append(speeds[1:] + speeds[:-1], 2.0 * speeds[0]) / 2.0
    # The cost has a kink at every measured speed, so many knees are compared.
    knees = np.quantile(between, np.linspace(0.0, 1.0, 12))
    starts = []
    for knee in [known["s0"]] if "s0" in known else knees.tolist():
        below, above = family.shapes(knee)
        _, b, c = family.levels(below, above).sum(axis=0)
        share = float(np.clip(c / max(b + c, 1e-9), 0.01, 0.99))  # a start on a bound stays there
        levels = np.maximum(family.levels((1.0 - share) * below + share * above), 1.0)
        levels[~rises] = np.pad(family.levels(), ((0, 0), (0, 1)))[~rises]
        levels[:, 0] = known.get("a_w", levels[:, 0])
        starts.append(np.concatenate([[knee, share], levels.T.ravel()]))
    off = [float(np.abs(log_ratio(family.watts(x), family.power_w)).sum()) for x in starts]
    return [starts[k] for k in np.argsort(off, kind="stable")[:4]]


def _curve(found: Found, j: int, count: int, known: Mapping[str, float]) -> Fitted[PowerCurve]:
    at = [0, 1, 2 + j, 2 + count + j]
    s0, share, a_w, rise = found.x[at].tolist()
    if rise == 0.0:
        message = "power does not rise with speed: a constant; a cap here takes watts, not speed"
        remark = FitRemark(code="power-without-speed", message=message)
        error = float(np.sqrt(found.covariance[2 + j, 2 + j]))
        told = parameters_of(PowerCurve(a_w=a_w), {"a_w": error}, known)
        return Fitted(PowerCurve(a_w=a_w), told, (remark,))
    curve = PowerCurve(a_w=a_w, b_w=(1.0 - share) * rise, c_w=share * rise, s0=s0)
    # Derivatives of a, b, c and s0 (rows) by s0, cubic share, a and rise (columns).
    slopes = np.array([[0, 0, 1, 0], [0, -rise, 0, 1.0 - share], [0, rise, 0, share], [1, 0, 0, 0]])
    variances = np.diag(slopes @ found.covariance[np.ix_(at, at)] @ slopes.T)
    errors = dict(zip(_NAMES, np.sqrt(np.maximum(variances, 0.0)).tolist(), strict=True))
    return Fitted(curve, parameters_of(curve, errors, known), ())
