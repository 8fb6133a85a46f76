"""What a fit tells about itself: errors, held-out predictions, and warnings with a name."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.fit import FitErrors, FitParameter, FitRemark, Residual
from ronda.solvers.fitting.data import row_list

FOLDS = 10
"""Tables above `LEAVE_ONE_OUT` rows are left out in so many parts, others row by row."""

LEAVE_ONE_OUT = 40

POOR = 2.0
"""Held-out error over fitted error from which on it is worth a warning."""

# A row is an outlier if it is this far off, and this many times the typical row.
_OUTLIER, _TIMES = 0.1, 5.0


def folds(rows: int, seed: int) -> list[Rows]:
    """Return which rows to leave out together: every row once, drawn with a seed."""
    parts = rows if rows <= LEAVE_ONE_OUT else FOLDS
    order = np.random.default_rng(seed).permutation(rows)
    return [np.sort(part) for part in np.array_split(order, parts)]


def errors(measured: Floats, fitted: Floats, held_out: Floats, inside: Mask) -> FitErrors:
    """Return relative errors; NaN in `held_out` where a row was not predicted."""
    off, out = np.abs(fitted / measured - 1.0), np.abs(held_out / measured - 1.0)
    known = np.isfinite(out)
    inner, edge = known & inside, known & ~inside
    return FitErrors(
        rows=len(measured),
        mape=float(off.mean()),
        largest=float(off.max()),
        inside_rows=int(inner.sum()),
        held_out_mape=float(out[inner].mean()) if inner.any() else None,
        edge_rows=int(edge.sum()),
        edge_mape=float(out[edge].mean()) if edge.any() else None,
    )


def residuals(
    row: Rows,
    axes: dict[str, NDArray[np.float64]],
    measured: Floats,
    fitted: Floats,
    held_out: Floats,
    inside: Mask,
) -> tuple[Residual, ...]:
    """Return every row with its predictions."""
    return tuple(
        Residual(
            row=int(row[k]),
            at={name: float(values[k]) for name, values in axes.items()},
            measured=float(measured[k]),
            fitted=float(fitted[k]),
            held_out=float(held_out[k]) if np.isfinite(held_out[k]) else None,
            inside=bool(inside[k]),
        )
        for k in range(len(row))
    )


def outliers(row: Rows, measured: Floats, fitted: Floats) -> list[FitRemark]:
    """Warn of rows that are far from a fit that suits the others."""
    off = np.abs(fitted / measured - 1.0)
    bad = np.flatnonzero((off > _OUTLIER) & (off > _TIMES * np.median(off)))
    if not len(bad):
        return []
    worst = bad[np.argsort(-off[bad], kind="stable")]
    message = (
        f"{row_list(row[worst])}: up to {off[worst[0]]:.0%} from the fit, the typical row "
        f"{np.median(off):.1%}; they count less than the others, look at them"
    )
    return [FitRemark(code="outlier", message=message)]


def weak(parameters: Sequence[FitParameter]) -> list[FitRemark]:
    """Warn of fitted parameters that could as well be anything from 0 to twice their value."""
    loose = [
        f"{p.name} = {p.value:.3g} ± {_spread(p.value, p.std_error)}"
        for p in parameters
        if p.state == "fitted" and p.std_error is not None and p.std_error > abs(p.value) > 0.0
    ]
    if not loose:
        return []
    return [
        FitRemark(
            code="weak",
            message=f"the rows hardly tell {', '.join(loose)}: predictions inside the measured "
            "range may be good, the parameters by themselves are not",
        )
    ]


def _spread(value: float, error: float) -> str:
    """Write a standard error; one far beyond the value only says that nothing is known."""
    return "anything" if error > 100.0 * abs(value) else f"{error:.2g}"


def poor(found: FitErrors) -> list[FitRemark]:
    """Warn if rows that were left out are predicted much worse than they are fitted."""
    if found.ratio is None or found.held_out_mape is None:
        return []
    if found.ratio <= POOR or found.held_out_mape < 1e-3:
        return []
    message = (
        f"rows left out are {found.held_out_mape:.1%} off, {found.ratio:.1f} times the fitted "
        f"{found.mape:.1%}: {found.rows} rows are few for this model, measure more"
    )
    return [FitRemark(code="held-out-error", message=message)]
