"""Fits of models to measurements, with errors and named warnings.

Every row is left out of one fit, which then predicts it. Up to 24 rows of a throughput table or
power curve are left out one by one. More rows are left out in five random parts.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.models.fits import (
    Fit,
    FitErrors,
    FitParameter,
    FitRemark,
    Fits,
    Residual,
    batch_suffix,
)
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import PowerCurve
from ronda.solvers.fitting.least_squares import Fitted
from ronda.solvers.fitting.measurements import Kind, Measurements, Reading, read_measurements
from ronda.solvers.fitting.power import fit_power
from ronda.solvers.fitting.throughput import fit_throughput, seconds

POOR = 2.0
"""The ratio of held-out to fitted error above which there is a warning."""

Progress = Callable[[str, float], None]
"""A function that takes the name of the fitted application and the share of work done."""

_AXES = {"throughput": ("gpus", "nodes", "local_batch", "clock"), "power": ("speed",)}
_MEASURED = {"throughput": "step_s", "power": "power_w"}


def fit_table(
    path: str | Path,
    reading: Reading | None = None,
    *,
    kind: Kind | None = None,
    known: Mapping[str, float] | None = None,
    shared: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Fits:
    """Fit every application and GPU in a table of measurements; for power, every batch size.

    Fits are in the order of the table. ``docs/fitting.md`` lists its columns.
    `ronda.solvers.fitting.measurements.read_measurements` explains `kind`, and `fit_measured`
    explains `known`, `shared` and `seed`.

    Raises
    ------
    InputError
        With the file and row if the table cannot be used, or with a parameter that the table does
        not determine.
    """
    tables = read_measurements(path, reading, kind)
    found: list[Fit] = []
    for k, table in enumerate(tables):
        found += fit_measured(table, known, shared=shared, seed=seed)
        if progress is not None:
            progress(table.application, (k + 1) / len(tables))
    return Fits(fits=tuple(found))


def fit_measured(
    table: Measurements,
    known: Mapping[str, float] | None = None,
    *,
    shared: bool = True,
    seed: int = 0,
) -> list[Fit]:
    """Fit one application on one GPU; for power, each batch size is a separate fit.

    `known` parameters are not fitted. With `shared`, the power curves of all batch sizes have one
    shape. The seed draws the parts that are left out. Raises InputError for too few rows or too few
    different rows.
    """
    if table.kind == "power" and not shared:
        batches = table.rows.batch.to_numpy()
        parts = [table.where(batches == batch) for batch in np.unique(batches)]
        return [made for part in parts for made in fit_measured(part, known, seed=seed)]
    models, rows = _models(table, known or {}), table.rows
    fitted, out = predict(models, rows), _held_out(table, known or {}, seed)
    made: list[Fit] = []
    for batch, model in models.items():
        own = (rows.batch == batch).to_numpy()
        residuals = _residuals(table.where(own), fitted[own], out[own])
        made.append(_fit(table, batch, model, residuals))
    return made


def predict(models: Mapping[float, Fitted[Any]], rows: pd.DataFrame) -> Floats:
    """Return the seconds per iteration or the watts of each row, or NaN without a model."""
    found = np.full(len(rows), np.nan)
    for batch, fitted in models.items():
        own = (rows.batch == batch).to_numpy()
        if isinstance(fitted.model, PowerCurve):
            found[own] = gpu_power_w(fitted.model, rows.speed[own])
        else:
            found[own] = seconds(fitted.model, rows[own])
    return found


def _models(table: Measurements, known: Mapping[str, float]) -> Mapping[float, Fitted[Any]]:
    """Return the models, keyed by batch size (0 without batch sizes)."""
    if table.kind == "power":
        return fit_power(table, known)
    return {0.0: fit_throughput(table, known)}


def _held_out(table: Measurements, known: Mapping[str, float], seed: int) -> Floats:
    """Return predictions of each row by models fitted without it, NaN if too few rows are left."""
    random = np.random.default_rng(seed)
    part = pd.Series(0, index=table.rows.index)
    for _, own in table.rows.groupby("batch"):
        parts = len(own) if len(own) <= 24 else 5
        part[own.index] = random.permutation(len(own)) % parts
    found = np.full(len(part), np.nan)
    for k in range(int(part.max()) + 1):
        left = (part == k).to_numpy()
        with suppress(InputError):  # the fit needs these rows, so they have no held-out error
            found[left] = predict(_models(table.where(~left), known), table.rows[left])
    return found


def _residuals(table: Measurements, fitted: Floats, out: Floats) -> tuple[Residual, ...]:
    measured = table.rows[_MEASURED[table.kind]]
    at = table.rows[list(_AXES[table.kind])].to_dict("records")
    return tuple(
        Residual(
            row=int(row),
            at={str(axis): float(value) for axis, value in where.items()},
            measured=float(value),
            fitted=float(own),
            held_out=float(left) if np.isfinite(left) else None,
        )
        for row, where, value, own, left in zip(
            table.rows.row, at, measured, fitted, out, strict=True
        )
    )


def _fit(table: Measurements, batch: float, fitted: Fitted[Any], rows: tuple[Residual, ...]) -> Fit:
    errors = errors_of(rows)
    remarks = [*fitted.remarks, *_weak(fitted.parameters), *outliers(rows), *_poor(errors)]
    if table.skipped:
        message = f"rows of 0, taken for not measured and left out: {table.skipped}"
        remarks.insert(0, FitRemark(code="skipped-rows", message=message))
    spans = {axis: [row.at[axis] for row in rows] for axis in _AXES[table.kind]}
    return Fit(
        name=f"{table.application}-{table.gpu_type}{batch_suffix(batch)}",
        kind=table.kind,
        application=table.application,
        gpu_type=table.gpu_type,
        batch=batch or None,
        throughput=fitted.model if table.kind == "throughput" else None,
        power=fitted.model if table.kind == "power" else None,
        measured={axis: (min(values), max(values)) for axis, values in spans.items()},
        errors=errors,
        parameters=fitted.parameters,
        remarks=tuple(remarks),
        residuals=rows,
    )


def errors_of(rows: Sequence[Residual]) -> FitErrors:
    """Return the errors of a fit on its own rows and on held-out rows."""
    off = [abs(row.fitted / row.measured - 1.0) for row in rows]
    out = [abs(row.held_out / row.measured - 1.0) for row in rows if row.held_out is not None]
    return FitErrors(
        rows=len(rows),
        mape=fmean(off),
        largest=max(off),
        held_out_rows=len(out),
        held_out_mape=fmean(out) if out else None,
    )


def outliers(rows: Sequence[Residual]) -> list[FitRemark]:
    """Return a warning about rows that are far from the fit of the other rows, if any."""
    off = {row.row: abs(row.fitted / row.measured - 1.0) for row in rows}
    typical = median(off.values())
    least = max(0.1, 5.0 * typical)
    bad = [str(row) for row in sorted(off, key=lambda row: -off[row]) if off[row] > least]
    if not bad:
        return []
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    message = (
        f"row {', '.join(bad[:5])}{more}: up to {max(off.values()):.0%} from the fit, the "
        f"typical row {typical:.1%}; they count less than the others, look at them"
    )
    return [FitRemark(code="outlier", message=message)]


def _weak(parameters: Sequence[FitParameter]) -> list[FitRemark]:
    loose = [
        f"{p.name} = {p.value:.3g}"
        for p in parameters
        if p.std_error is not None and p.std_error > abs(p.value)
    ]
    if not loose:
        return []
    message = (
        f"the rows hardly tell {', '.join(loose)}: predictions inside the measured range may be "
        "good, the parameters by themselves are not"
    )
    return [FitRemark(code="weak", message=message)]


def _poor(errors: FitErrors) -> list[FitRemark]:
    """Return a warning if held-out rows are predicted much worse than fitted rows."""
    ratio, out = errors.ratio, errors.held_out_mape
    if ratio is None or out is None or ratio <= POOR or out < 1e-3:  # negligible
        return []
    message = (
        f"rows left out are {out:.1%} off, {ratio:.1f} times the fitted {errors.mape:.1%}: "
        f"{errors.rows} rows are few for this model, measure more"
    )
    return [FitRemark(code="held-out-error", message=message)]
