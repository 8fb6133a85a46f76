"""Tables of models that share a GPU: CSV columns become checked numbers, by application and GPU."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from ronda.formulations.fusion.memory import SLICES
from ronda.instances.errors import InputError
from ronda.instances.profile import Mode
from ronda.instances.traces.table import positive, read_columns, refuse

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
"""Columns and the headers that they may have."""

MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)} | {
    "serial": "exclusive",
    "concurrent": "turns",
    "mps": "packed",
    "mps_or_timeslice": "packed",
    "mig": "slices",
    "hfta": "fused",
}
"""What tables call the modes."""

MIB = 1024.0

MOST_MODELS = 10_000
"""Models that a table may put on one GPU."""

SAME = 1e-6
"""Relative difference of numbers that are one, but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedGpu:
    """Measurements of one application on one type of GPU; `place` names the file in messages.

    `rows` has ``row``, ``mode``, ``models``, ``step_s`` (all models, one step each) and
    ``memory_gib`` (of the GPU; NaN: not measured). `alone_s` is a step of one model alone.
    """

    place: str
    application: str
    gpu_type: str
    rows: pd.DataFrame
    alone_s: float | None

    def refused(self, found: str, expected: str) -> InputError:
        """Return the error that these measurements cannot be fitted."""
        return InputError(f"{self.place}, {self.application} on {self.gpu_type}", found, expected)


def read_sharing(
    path: str | Path, model: str = "application", gpu_type: str = "GPU"
) -> list[SharedGpu]:
    """Read a CSV table of models that share a GPU.

    `model` and `gpu_type` are the names where the table has no such column. Times come from
    ``step_s``, or from a throughput as k / throughput; ``docs/fusion.md`` lists the columns.

    Raises
    ------
    InputError
        Naming the header or the row: a missing column, or a value that cannot be right.
    """
    optional = set(COLUMNS) - {"mode", "models"}
    frame = read_columns(path, COLUMNS, optional, kind="measurement")
    headers = frame.attrs["headers"]
    _names(path, frame, model, gpu_type)
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
    rows["memory_gib"] = np.where(measured, _number(path, memory, "memory_mib") / MIB, np.nan)
    alone = None
    if "alone_throughput" in headers:
        alone = _inverse(path, frame, "alone_throughput")
        usual = alone.groupby([frame.application, frame.gpu_type]).transform("median")
        apart = (abs(alone / usual - 1.0) > SAME).to_numpy()
        expected = "the same in all rows of a model and GPU"
        refuse(path, frame, apart, "alone_throughput", expected, headers["alone_throughput"])
    found = []
    for (name, gpu), own in rows.groupby([frame.application, frame.gpu_type], sort=False):
        given = None if alone is None else float(alone[own.index].iloc[0])
        found.append(SharedGpu(str(path), str(name), str(gpu), own, _alone(own, given)))
    return found


def _names(path: str | Path, frame: pd.DataFrame, model: str, gpu_type: str) -> None:
    """Complete the names of applications and GPUs in place; refuse an unknown mode."""
    headers = frame.attrs["headers"]
    known = frame["mode"].isin(MODES).to_numpy()
    refuse(path, frame, ~known, "mode", f"one of {', '.join(MODES)}", headers["mode"])
    for column, name in (("application", model), ("gpu_type", gpu_type)):
        frame[column] = frame[column].where(frame[column] != "", name)
    apart = frame.variant.where(frame.variant == "", "-" + frame.variant)
    frame["application"] += apart


def _steps(path: str | Path, frame: pd.DataFrame, models: pd.Series) -> pd.Series:
    """Return the seconds of a step of all models."""
    headers = frame.attrs["headers"]
    if "step_s" in headers:
        return _number(path, frame, "step_s")
    if "throughput" not in headers:
        found = ", ".join(sorted(headers.values()))
        raise InputError(f"{path}, header", found, "a column 'step_s' or 'throughput'")
    return models * _inverse(path, frame, "throughput")


def _inverse(path: str | Path, frame: pd.DataFrame, column: str) -> pd.Series:
    """Return the time of a step from a throughput."""
    return 1.0 / _number(path, frame, column)


def _number(path: str | Path, frame: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of numbers above 0."""
    return positive(path, frame, column, frame.attrs["headers"].get(column, column))


def _alone(rows: pd.DataFrame, given: float | None) -> float | None:
    """Return a step of one model: measured alone, else as given, else fused alone."""
    for mode in ("exclusive", "fused"):
        own = rows[(rows["mode"] == mode) & (rows.models == 1)]
        if len(own):
            return float(own.step_s.mean())
        if given is not None:
            return given
    return None
