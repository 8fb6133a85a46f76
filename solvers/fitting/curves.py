"""Power curves against speed, and which of them have a shape that can be fitted.

Of one application on one GPU every batch size has a curve of its own. Where power rises with
speed it is *shaped* and gets ``a + b min(s, s0) + c max(s^3 - s0^3, 0)``. Where it does not (a
small batch keeps the GPU waiting for the host, so a cap takes watts and no speed, or nothing at
all) a constant is all that speed can tell, and the fit says so.
"""

from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.errors import InputError
from ronda.instances.fit import FitRemark
from ronda.solvers.fitting.data import Watts, row_list

LEAST_RANGE = 0.05
"""Power within this relative range counts as constant."""

RISES = 0.5
"""Kendall's tau of speed and power from which on power counts as rising with speed."""

DIP = 0.02
"""Relative fall of power to the next faster row that is worth a warning."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The rows of one batch size.

    Attributes
    ----------
    batch
        The batch size; 0: the table has none.
    rows
        Positions in the table, slowest first.
    shaped
        Whether power rises with speed.
    monotone
        Whether no faster row draws clearly less.
    remarks
        What is odd about it.
    """

    batch: float
    rows: Rows
    shaped: bool
    monotone: bool
    remarks: tuple[FitRemark, ...]


def curves(table: Watts) -> tuple[Curve, ...]:
    """Return the curves of a table by batch size.

    Raises
    ------
    InputError
        If there is only one row of a batch size, or power falls with speed.
    """
    found = []
    for batch in np.unique(table.batch):
        rows = np.flatnonzero(table.batch == batch)
        rows = rows[np.lexsort((table.power_w[rows], table.speed[rows]))]
        found.append(_curve(table, float(batch), rows))
    return tuple(found)


def place_of(table: Watts, batch: float) -> str:
    """Return how errors name a curve."""
    size = f", batch {batch:g}" if batch else ""
    return f"{table.place}, {table.application} on {table.gpu_type}{size}"


def _curve(table: Watts, batch: float, rows: Rows) -> Curve:
    """Return one curve."""
    speed, power = table.speed[rows], table.power_w[rows]
    if len(rows) < 2:
        raise InputError(place_of(table, batch), "one row", "at least two, better five or more")
    low, high = float(power.min()), float(power.max())
    if high <= low * (1.0 + LEAST_RANGE):
        message = f"power is {low:.4g} to {high:.4g} W whatever the speed: a constant"
        remark = FitRemark(code="constant-power", message=message)
        return Curve(batch, rows, shaped=False, monotone=True, remarks=(remark,))
    tau = kendall(speed, power)
    if tau <= -RISES:
        slow, fast = table.row[rows[0]], table.row[rows[-1]]
        raise InputError(
            place_of(table, batch),
            f"power that falls as speed rises (row {slow}: speed {speed[0]:.3g}, {power[0]:.4g} W; "
            f"row {fast}: speed {speed[-1]:.3g}, {power[-1]:.4g} W)",
            "power that rises with speed; look for columns that were mixed up",
        )
    dips = _dips(table, rows)
    if tau < RISES:
        message = (
            f"power varies from {low:.4g} to {high:.4g} W but does not follow the speed, "
            f"{speed.min():.3g} to {speed.max():.3g}: a constant; a cap here takes watts, not speed"
        )
        remark = FitRemark(code="power-without-speed", message=message)
        return Curve(batch, rows, shaped=False, monotone=not dips, remarks=(remark, *dips))
    return Curve(batch, rows, shaped=True, monotone=not dips, remarks=dips)


def _dips(table: Watts, rows: Rows) -> tuple[FitRemark, ...]:
    """Warn where a faster row draws less power."""
    power = table.power_w[rows]
    down = np.flatnonzero(power[1:] < power[:-1] * (1.0 - DIP))
    if not len(down):
        return ()
    k = int(down[np.argmin(power[down + 1] / power[down])])
    message = (
        f"not monotone at {row_list(table.row[rows[down + 1]])}: for one, row "
        f"{table.row[rows[k + 1]]} is faster than row {table.row[rows[k]]} with "
        f"{power[k + 1]:.4g} W instead of {power[k]:.4g} W"
    )
    return (FitRemark(code="non-monotone", message=message),)


def kendall(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b of two samples: 1 if y rises with x, -1 if it falls, 0 if neither."""
    first, second = np.triu_indices(len(x), 1)
    dx, dy = np.sign(x[second] - x[first]), np.sign(y[second] - y[first])
    size = np.sqrt(np.count_nonzero(dx) * np.count_nonzero(dy))
    return float((dx * dy).sum() / size) if size > 0 else 0.0


def surrounded(table: Watts, curve: Curve) -> Mask:
    """Return for the rows of a curve whether others are slower and others faster."""
    speed = table.speed[curve.rows]
    low, high = np.partition(speed, 1)[1], np.partition(speed, -2)[-2]
    # The slowest is not surrounded, unless another row is as slow; likewise the fastest.
    return np.asarray((speed >= low) & (speed <= high))
