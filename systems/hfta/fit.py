"""Curves of time and memory, fitted to measurements of models that share a GPU.

A CSV table is checked and split by application and GPU. Curves are fitted by linear least squares
on relative errors with non-negative coefficients. Times that follow no law (fewer than three
numbers of models, or a line that is far off) are kept as a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.models.fits import Fit, FitParameter, FitRemark, Fits, Residual
from ronda.instances.models.memory import SLICES, need_gib
from ronda.instances.models.sharing import speed_up, step_s
from ronda.instances.profile import AffineTime, MeasuredTime, Memory, Mode, Sharing
from ronda.instances.tables.fits import law
from ronda.instances.tables.table import Table
from ronda.instances.traces.table import positive, read_columns, refuse
from ronda.solvers.fitting.fit import errors_of, outliers

COLUMNS: dict[str, tuple[str, ...]] = {
    "application": ("model", "network", "app", "application"),
    "variant": ("precision", "variant", "width_shrink_S"),
    "gpu_type": ("gpu_type", "gpu", "device"),
    "mode": ("mode",),
    "models": ("models", "k", "k_models", "fusion"),
    "step_s": ("step_s", "time_s", "epoch_s", "epoch_time_s"),
    "throughput": ("throughput", "throughput_norm_to_fp32_serial"),
    "alone_throughput": ("alone_throughput", "serial", "serial_same_precision"),
    "memory_mib": ("memory_mib", "gpu_mem_MB", "memory_mb"),
}
"""The columns, mapped to the headers that they may have."""

MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)} | {
    "serial": "exclusive",
    "concurrent": "turns",
    "mps": "packed",
    "mps_or_timeslice": "packed",
    "mig": "slices",
    "hfta": "fused",
}
"""The names that tables use for the modes."""

MOST_MODELS = 10_000
"""The largest number of models on one GPU that a table may have."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedGpu:
    """The measurements of one application on one type of GPU; `place` names the file in messages.

    `rows` has the columns ``row``, ``mode``, ``models``, ``step_s`` (time in which every model
    makes one step) and ``memory_gib`` (used on the GPU; NaN if not measured). `alone_s` is the step
    time of one model alone.
    """

    place: str
    application: str
    gpu_type: str
    rows: pd.DataFrame
    alone_s: float | None

    def refused(self, found: str, expected: str) -> InputError:
        """Return the error for measurements that cannot be fitted."""
        return InputError(f"{self.place}, {self.application} on {self.gpu_type}", found, expected)


def read_sharing(
    path: str | Path, model: str = "application", gpu_type: str = "GPU"
) -> list[SharedGpu]:
    """Read a CSV table of models that share a GPU.

    `model` and `gpu_type` are used if the table has no such columns. Times come from ``step_s``, or
    from a throughput as k / throughput. ``docs/fusion.md`` lists the columns.

    Raises
    ------
    InputError
        If a column is missing or a value cannot be right; it names the header or the row.
    """
    optional = set(COLUMNS) - {"mode", "models"}
    frame = read_columns(path, COLUMNS, optional, kind="measurement")
    headers = frame.attrs["headers"]
    known = frame["mode"].isin(MODES).to_numpy()
    refuse(path, frame, ~known, "mode", f"one of {', '.join(MODES)}", headers["mode"])
    for column, usual in (("application", model), ("gpu_type", gpu_type)):
        frame[column] = frame[column].where(frame[column] != "", usual)
    frame["application"] += frame.variant.where(frame.variant == "", "-" + frame.variant)
    rows = pd.DataFrame({"row": frame.row, "mode": frame["mode"].map(MODES)})
    rows["models"] = models = _number(path, frame, "models")
    for bad, expected in (
        ((models % 1 != 0) | (models > MOST_MODELS), f"a whole number, at most {MOST_MODELS}"),
        ((rows["mode"] == "exclusive") & (models != 1), "1, as one model has the GPU for itself"),
        ((rows["mode"] == "slices") & ~models.isin(SLICES), f"at most {max(SLICES)} slices"),
    ):
        refuse(path, frame, bad.to_numpy(), "models", expected, headers["models"])
    rows["step_s"] = _steps(path, frame, rows.models)
    memory = frame.assign(memory_mib=frame.memory_mib.replace("", "1"))
    measured = (frame.memory_mib != "").to_numpy()
    rows["memory_gib"] = np.where(measured, _number(path, memory, "memory_mib") / 1024.0, np.nan)
    alone = None
    if "alone_throughput" in headers:
        alone = 1.0 / _number(path, frame, "alone_throughput")
        median = alone.groupby([frame.application, frame.gpu_type]).transform("median")
        apart = (abs(alone / median - 1.0) > 1e-6).to_numpy()
        expected = "the same in all rows of a model and GPU"
        refuse(path, frame, apart, "alone_throughput", expected, headers["alone_throughput"])
    found = []
    for (name, gpu), own in rows.groupby([frame.application, frame.gpu_type], sort=False):
        given = None if alone is None else float(alone[own.index].iloc[0])
        found.append(SharedGpu(str(path), str(name), str(gpu), own, _step_alone(own, given)))
    return found


def _steps(path: str | Path, frame: pd.DataFrame, models: pd.Series) -> pd.Series:
    """Return the seconds in which all models make one step each."""
    headers = frame.attrs["headers"]
    if "step_s" in headers:
        return _number(path, frame, "step_s")
    if "throughput" not in headers:
        found = ", ".join(sorted(headers.values()))
        raise InputError(f"{path}, header", found, "a column 'step_s' or 'throughput'")
    return models * (1.0 / _number(path, frame, "throughput"))


def _number(path: str | Path, frame: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of positive numbers."""
    return positive(path, frame, column, frame.attrs["headers"].get(column, column))


def _step_alone(rows: pd.DataFrame, given: float | None) -> float | None:
    """Return the step time of one model: as measured alone, else as given, else as fused alone."""
    for mode in ("exclusive", "fused"):
        own = rows[(rows["mode"] == mode) & (rows.models == 1)]
        if len(own):
            return float(own.step_s.mean())
        if given is not None:
            return given
    return None


WIDTHS = 3
"""The fewest different numbers of models to which a law is fitted."""

SIDE_BY_SIDE = ("packed", "slices")
"""Modes with several processes: one process is the model alone, and more are never faster."""


def fit_sharing(
    path: str | Path, model: str = "application", gpu_type: str = "GPU", *, least: int = 1
) -> Fits:
    """Fit every application, GPU and mode of a table, and memory where it was measured.

    Lines are fitted only to times of at least `least` models, because fewer may not follow a line.
    """
    return Fits(
        fits=tuple(
            fit
            for table in read_sharing(path, model, gpu_type)
            for fit in fit_shared(table, least=least)
        )
    )


def fit_shared(table: SharedGpu, *, least: int = 1) -> Iterator[Fit]:
    """Yield a fit for each mode of one application on one GPU, and a fit of memory."""
    for mode in dict.fromkeys(MODES.values()):
        rows = table.rows[table.rows["mode"] == mode]
        if mode == "exclusive" and table.alone_s is not None:
            time = MeasuredTime(models=(1,), step_s=(table.alone_s,))
            first = table.rows.iloc[:1].assign(models=1, step_s=table.alone_s)
            yield _sharing(table, Sharing(mode="exclusive", time=time), first, (), ())
        elif mode != "exclusive" and len(rows):
            yield _curve(table, mode, rows, least)
    if table.rows.memory_gib.notna().any():
        yield _memory(table)


def _curve(table: SharedGpu, mode: Mode, rows: pd.DataFrame, least: int) -> Fit:
    """Return the fit of a mode's times: a line from `least` models on, or the measured times."""
    alone_s = table.alone_s if mode in SIDE_BY_SIDE else None
    lined = rows[rows.models >= least]
    if lined.models.nunique() < WIDTHS:
        message = f"fewer than {WIDTHS} numbers of models: kept as measured, not fitted"
        remark = FitRemark(code="few-widths", message=message)
        return _sharing(table, _measured(mode, rows, alone_s), rows, (), (remark,))
    fitted, errors = _affine(lined, alone_s or 0.0)
    parameters = tuple(
        FitParameter(
            name=name,
            value=getattr(fitted, name),
            state="fitted" if error else "fixed",
            std_error=error or None,
        )
        for name, error in zip(("alpha_s", "beta_s", "floor_s"), errors.tolist(), strict=True)
    )
    found = _sharing(table, Sharing(mode=mode, time=fitted), lined, parameters, ())
    if found.errors.mape <= 0.05:  # otherwise the times follow no line
        return found
    message = f"no law: the best line is {found.errors.mape:.0%} off in the mean, kept as measured"
    remark = FitRemark(code="no-line", message=message)
    return _sharing(table, _measured(mode, rows, alone_s), rows, (), (remark,))


def _measured(mode: Mode, rows: pd.DataFrame, alone_s: float | None) -> Sharing:
    """Return the times as measured; a single process has the time of the model alone."""
    known = rows.groupby("models").step_s.mean()
    if alone_s is not None:
        known[1] = alone_s
    known = known.sort_index()
    models, times = (int(k) for k in known.index), (float(t) for t in known)
    return Sharing(mode=mode, time=MeasuredTime(models=tuple(models), step_s=tuple(times)))


def _affine(rows: pd.DataFrame, floor_s: float) -> tuple[AffineTime, Floats]:
    """Return the curve fitted to times, and the standard errors of alpha, beta and floor.

    If `floor_s` is 0, the function also searches for the number of models up to which times are
    flat. Such a floor must at least halve the squared error.
    """
    ordered = rows.sort_values("models", kind="stable")
    models, times = ordered.models.to_numpy(float), ordered.step_s.to_numpy(float)
    best, errors = _line(models, times, 0, floor_s)
    if floor_s == 0.0 and len(models) >= 5:
        least = 0.5 * _squares(best, models, times)
        for flat in range(2, len(models) - 1):
            found, own = _line(models, times, flat, 0.0)
            if _squares(found, models, times) < least:
                least, best, errors = _squares(found, models, times), found, own
    return best, errors


def _line(models: Floats, times: Floats, flat: int, floor_s: float) -> tuple[AffineTime, Floats]:
    """Return the least-squares curve whose first `flat` times lie on the floor."""
    matrix = np.column_stack([np.ones(len(models)), models])[flat:] / times[flat:, None]
    (alpha, beta), _ = nnls(matrix, np.ones(len(matrix)))
    errors = np.zeros(3)
    errors[:2] = _std_errors(matrix, np.array([alpha, beta]))
    if flat:
        weights = 1.0 / times[:flat]
        floor_s = float(weights.sum() / (weights**2).sum())
        errors[2] = _std_errors(weights[:, None], np.array([floor_s]))[0]
    time = AffineTime(alpha_s=float(alpha), beta_s=float(beta), floor_s=floor_s)
    return time, errors


def _std_errors(matrix: Floats, x: Floats) -> Floats:
    """Return the standard errors of a least-squares solution with targets of 1; 0 at a bound."""
    spare = len(matrix) - len(x)
    if spare < 1:
        return np.zeros(len(x))
    variance = float(((matrix @ x - 1.0) ** 2).sum()) / spare
    spread = np.sqrt(variance * np.diag(np.linalg.pinv(matrix.T @ matrix)))
    return np.where(x > 0.0, spread, 0.0)


def _squares(time: AffineTime, models: Floats, times: Floats) -> float:
    """Return the sum of squared relative errors."""
    fitted = np.maximum(time.floor_s, time.alpha_s + time.beta_s * models)
    return float(((fitted / times - 1.0) ** 2).sum())


def _sharing(
    table: SharedGpu,
    sharing: Sharing,
    rows: pd.DataFrame,
    parameters: tuple[FitParameter, ...],
    remarks: tuple[FitRemark, ...],
) -> Fit:
    """Return the fit of one mode's times, with each row predicted from the other rows."""

    def without(row: int) -> float | None:
        rest = rows.drop(index=row)
        if isinstance(sharing.time, MeasuredTime) or rest.models.nunique() < WIDTHS:
            return None
        floor_s = (table.alone_s or 0.0) if sharing.mode in SIDE_BY_SIDE else 0.0
        return step_s(_affine(rest, floor_s)[0], int(rows.models[row]))

    residuals = tuple(
        Residual(
            row=int(rows.row[row]),
            at={"models": float(rows.models[row])},
            measured=float(rows.step_s[row]),
            fitted=step_s(sharing.time, int(rows.models[row])),
            held_out=without(row),
        )
        for row in rows.index
    )
    return Fit(
        name=f"{table.application}-{table.gpu_type}-{sharing.mode}",
        kind="sharing",
        application=table.application,
        gpu_type=table.gpu_type,
        sharing=sharing,
        measured={"models": (float(rows.models.min()), float(rows.models.max()))},
        errors=errors_of(residuals),
        parameters=parameters,
        remarks=(*remarks, *outliers(residuals)),
        residuals=residuals,
    )


def _memory(table: SharedGpu) -> Fit:
    """Return the fit of b and p to the memory of all modes: fused b + k p, packed k (b + p)."""
    rows = table.rows[table.rows.memory_gib.notna()]
    processes = np.where(rows["mode"].isin(("packed", "turns")), rows.models, 1.0)
    share = np.where(rows["mode"] == "slices", 1.0, rows.models)
    measured = rows.memory_gib.to_numpy(float)
    matrix = np.column_stack([processes, share]) / measured[:, None]
    if np.linalg.matrix_rank(matrix) < 2:
        raise table.refused("memory of one number of models", "two or more, or no memory")
    (base, own), _ = nnls(matrix, np.ones(len(matrix)))
    memory = Memory(base_gib=float(base), model_gib=float(own))
    errors = _std_errors(matrix, np.array([base, own]))
    residuals = tuple(
        Residual(
            row=int(row),
            at={"models": float(k), "processes": float(n)},
            measured=float(gib),
            fitted=need_gib(memory, mode, int(k)),
        )
        for row, mode, k, n, gib in zip(
            rows.row, rows["mode"], rows.models, processes, measured, strict=True
        )
    )
    return Fit(
        name=f"{table.application}-{table.gpu_type}-memory",
        kind="memory",
        application=table.application,
        gpu_type=table.gpu_type,
        memory=memory,
        measured={"models": (float(rows.models.min()), float(rows.models.max()))},
        errors=errors_of(residuals),
        parameters=tuple(
            FitParameter(name=n, value=float(v), std_error=float(e) or None)
            for n, v, e in zip(("base_gib", "model_gib"), (base, own), errors, strict=True)
        ),
        remarks=tuple(outliers(residuals)),
        residuals=residuals,
    )


def alone_of(fits: Fits) -> dict[tuple[str, str], float]:
    """Return the step time of one model alone, keyed by application and GPU type."""
    found = {}
    for fit in fits.fits:
        if fit.sharing is not None and fit.sharing.mode == "exclusive":
            found[fit.application, fit.gpu_type] = step_s(fit.sharing.time, 1)
    return found


def best_speed_up(fits: Fits, fit: Fit) -> tuple[int, float] | None:
    """Return the measured number of models with the largest speed-up against serial, and the gain.

    The result is None for memory and if no model was measured alone.
    """
    alone = alone_of(fits).get((fit.application, fit.gpu_type))
    if alone is None or fit.sharing is None:
        return None
    low, high = (int(k) for k in fit.measured["models"])
    time = fit.sharing.time
    return max(((k, speed_up(time, k, alone)) for k in range(low, high + 1)), key=lambda p: p[1])


def laws_table(fits: Fits) -> Table:
    """Return a table of the laws and of each mode's largest speed-up against serial."""
    rows = []
    for fit in fits.fits:
        low, high = (f"{k:g}" for k in fit.measured["models"])
        best = best_speed_up(fits, fit)
        gain = ("", "") if best is None else (best[0], f"{best[1]:.2f}")
        texts = (fit.name, law(fit), f"{low}-{high}", *gain)
        names = ("name", "law", "models", "best", "speed-up")
        rows.append(dict(zip(names, texts, strict=True)))
    return Table.of("", rows, left=(0, 1))
