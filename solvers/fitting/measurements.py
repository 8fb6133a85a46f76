"""Tables of measurements in CSV, read as checked numbers per application and GPU."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ronda.instances.base import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import limits
from ronda.instances.traces.table import positive, read_columns, refuse, to_number
from ronda.instances.violation import ROUNDING

Kind = Literal["throughput", "power"]

APPLICATION = {
    "dataset": ("dataset",),
    "model": ("model", "network", "app", "application"),
    "optimizer": ("optimizer",),
}
"""The optional columns that name the application, such as ``squad-bert_base_uncased-adamw``."""

GPU = {"gpu_type": ("gpu_type", "gpu")}

COLUMNS: dict[Kind, dict[str, tuple[str, ...]]] = {
    "throughput": {
        "gpus": ("gpus", "num_gpus", "num_replicas", "workers"),
        "nodes": ("nodes", "num_nodes"),
        "local_batch": ("local_batch", "local_bsz", "batch_per_gpu"),
        "global_batch": ("global_batch", "global_batch_size", "global_bsz", "batch_size", "batch"),
        "step_s": ("step_s", "step_time", "iteration_s", "time_s"),
        "iters_per_s": ("iters_per_s", "iterations_per_s", "steps_per_s"),
        "samples_per_s": ("samples_per_s", "throughput"),
        "sync_s": ("sync_s", "sync_time"),
        "passes": ("passes",),
        "clock": ("clock", "relative_clock"),
    },
    "power": {
        "power_w": ("power_w", "average_power", "watts", "power"),
        "speed": ("speed", "relative_speed", "clock"),
        "time_s": ("time_s", "time_per_epoch", "epoch_s", "step_s", "step_time"),
        "cap_w": ("cap_w", "power_limit", "power_cap"),
        "batch": ("batch", "batch_size", "local_batch", "global_batch_size"),
    },
}
"""The columns of each kind of table, and their possible headers."""

_TIMES = ("step_s", "iters_per_s", "samples_per_s")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The details that a table itself does not contain.

    `model` selects an application by its name or a unique part of the name (None: all). In a table
    without such a column it gives the name. Without a column of nodes, there are as few nodes as
    hold the GPUs. Without a column of gradient passes, there are as few as keep the local batch
    within `max_local_batch` (by default one). `skip_zero` skips rows with a time or rate of 0,
    which means "not measured" in some tables.
    """

    model: str | None = None
    gpu_type: str = "GPU"
    gpus_per_node: int | None = None
    max_local_batch: float | None = None
    skip_zero: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measurements of one application on one type of GPU; `place` names the file in messages.

    For throughput, the columns of `rows` are ``gpus``, ``nodes``, ``local_batch`` (per GPU and
    pass), ``passes``, ``clock`` (share of the highest), ``step_s`` and, if measured, ``sync_s``.
    For power, they are ``speed`` (relative to no cap) and ``power_w`` (of one busy GPU). Both kinds
    have ``row``, the line in the file, and ``batch`` (0: none). Each ``batch`` has its own power
    curve. `skipped` is the number of rows with 0 for "not measured".
    """

    place: str
    kind: Kind
    application: str
    gpu_type: str
    rows: pd.DataFrame
    skipped: int = 0

    def where(self, which: Mask) -> "Measurements":
        """Return the measurements of the rows in a mask."""
        return replace(self, rows=self.rows[which])

    def refused(self, found: str, expected: str) -> InputError:
        """Return the error for measurements that cannot be fitted."""
        place = f"{self.place}, {self.application} on {self.gpu_type}"
        return InputError(place, found, expected)


def read_measurements(
    path: str | Path, reading: Reading | None = None, kind: Kind | None = None
) -> list[Measurements]:
    """Read a CSV table, and return one `Measurements` per application and GPU.

    ``docs/fitting.md`` lists its columns. A table with a column of watts is a table of power,
    unless `kind` says otherwise. Without a column of speeds, speed is ``reference / time``. The
    reference is the shortest time of the same batch size at the highest cap, or at any cap if there
    is no column of caps.

    Raises
    ------
    InputError
        With the header of a missing column, or the row of an impossible value.
    """
    reading = reading or Reading()
    every = {**APPLICATION, **GPU, **COLUMNS["throughput"], **COLUMNS["power"]}
    if kind is None:
        kind = "power" if "power_w" in _text(path, every).attrs["headers"] else "throughput"
    frame = _text(path, {**APPLICATION, **GPU, **COLUMNS[kind]})
    headers = frame.attrs["headers"]
    found = []
    for application, gpu_type, part in _parts(path, frame, reading):
        columns = _Columns(path, kind, headers, part)
        rows = _watts(columns) if kind == "power" else _steps(columns, reading)
        skipped = len(part) - len(rows)
        found.append(Measurements(str(path), kind, application, gpu_type, rows, skipped))
    return found


def _text(path: str | Path, names: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """Return all known columns as text, with their headers in ``attrs["headers"]``."""
    return read_columns(path, names, names, kind="measurement")


def _parts(
    path: str | Path, frame: pd.DataFrame, reading: Reading
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (application, GPU type, rows) in the order of the table."""
    headers = frame.attrs["headers"]
    named = [column for column in (*APPLICATION, *GPU) if column in headers]
    for column in named:
        refuse(path, frame, (frame[column] == "").to_numpy(), column, "a name", headers[column])
    words = [column for column in named if column in APPLICATION]
    names = pd.Series(reading.model or "application", index=frame.index)
    if words:
        names = frame[words].agg("-".join, axis=1)
        if reading.model is not None:
            frame = frame[names == _wanted(path, names, reading.model)]
    gpus = pd.Series(reading.gpu_type, index=frame.index)
    if "gpu_type" in headers:
        gpus = frame["gpu_type"]
    for (application, gpu_type), part in frame.groupby([names[frame.index], gpus], sort=False):
        yield str(application), str(gpu_type), part


def _wanted(path: str | Path, names: pd.Series, word: str) -> str:
    """Return the application with a name that contains the given word."""
    known = list(dict.fromkeys(names))
    near = [name for name in known if name == word] or [name for name in known if word in name]
    if len(near) == 1:
        return str(near[0])
    shown = ", ".join((near or known)[:8])
    found = f"{len(near)} that have it: {shown}" if near else f"no such application, but {shown}"
    raise InputError(f"{path}, --model {word}", found, "the name of one, or a part of it")


@dataclass(frozen=True)
class _Columns:
    """The columns of a table as checked numbers; errors name the table's own headers."""

    path: str | Path
    kind: Kind
    headers: dict[str, str]
    frame: pd.DataFrame

    def first(self, *columns: str) -> str:
        """Return the first of the given columns that the table has."""
        for column in columns:
            if column in self.headers:
                return column
        aliases = [name for column in columns for name in COLUMNS[self.kind][column][:2]]
        raise self.missing(" or ".join(map(repr, aliases)))

    def missing(self, wanted: str) -> InputError:
        """Return the error for a missing column."""
        known = ", ".join(map(repr, self.headers.values())) or "columns of other names"
        return InputError(f"{self.path}, header", f"only {known}", f"a column {wanted}")

    def numbers(self, column: str) -> Floats:
        """Return a column of finite numbers."""
        return to_number(self.path, self.frame, column, self.headers[column]).to_numpy()

    def positive(self, column: str, *, default: float | None = None, whole: bool = False) -> Floats:
        """Return a column of numbers above 0, or the default if the column is missing."""
        if default is not None and column not in self.headers:
            return np.full(len(self.frame), default)
        column = self.first(column)
        values = positive(self.path, self.frame, column, self.headers[column]).to_numpy()
        if whole:
            most = limits().gpus
            self.refuse(column, (values % 1 != 0) | (values > most), f"a whole number up to {most}")
        return values

    def refuse(self, column: str, bad: Mask, expected: str) -> None:
        """Raise InputError for the first row where `bad` is true, if any."""
        refuse(self.path, self.frame, bad, column, expected, self.headers[column])


def _steps(columns: _Columns, reading: Reading) -> pd.DataFrame:
    if reading.skip_zero:
        zero = columns.numbers(columns.first(*_TIMES)) == 0.0
        if zero.all():
            found = "no row with a time or rate above 0"
            raise InputError(str(columns.path), found, "measurements")
        columns = replace(columns, frame=columns.frame[~zero])
    gpus = columns.positive("gpus", whole=True)
    batch, passes = _batch(columns, gpus, reading)
    timed = columns.first(*_TIMES)
    value = columns.positive(timed)
    samples = batch * gpus * passes
    step_s = {"step_s": value, "iters_per_s": 1.0 / value, "samples_per_s": samples / value}[timed]
    clock = columns.positive("clock", default=1.0)
    if (clock > 1.0).any():
        columns.refuse("clock", clock > 1.0, "a share of the highest clock, 1 at most")
    rows = {
        "row": columns.frame["row"],
        "batch": np.zeros(len(gpus)),
        "gpus": gpus,
        "nodes": _nodes(columns, gpus, reading),
        "local_batch": batch,
        "passes": passes,
        "clock": clock,
        "step_s": step_s,
    }
    if "sync_s" in columns.headers:
        rows["sync_s"] = sync_s = columns.numbers("sync_s")
        bad = (sync_s < 0) | (sync_s >= step_s)
        columns.refuse("sync_s", bad, "0 or more, and less than the whole step")
    return pd.DataFrame(rows)


def _nodes(columns: _Columns, gpus: Floats, reading: Reading) -> Floats:
    if "nodes" in columns.headers:
        nodes = columns.positive("nodes", whole=True)
        columns.refuse("nodes", nodes > gpus, "at most one node for each GPU")
        return nodes
    if reading.gpus_per_node is None and (gpus > 1).any():
        raise columns.missing("'nodes', or --gpus-per-node to count them")
    return np.ceil(gpus / (reading.gpus_per_node or 1))


def _batch(columns: _Columns, gpus: Floats, reading: Reading) -> tuple[Floats, Floats]:
    which = columns.first("local_batch", "global_batch")
    batch = columns.positive(which)
    passes = columns.positive("passes", default=1.0, whole=True)
    if which == "local_batch":
        return batch, passes
    if "passes" not in columns.headers and reading.max_local_batch is not None:
        fewest = np.ceil(batch / gpus / reading.max_local_batch * (1.0 - ROUNDING))
        passes = np.maximum(fewest, 1.0)
    return batch / (gpus * passes), passes


def _watts(columns: _Columns) -> pd.DataFrame:
    power_w = columns.positive("power_w")
    batch = columns.positive("batch", default=0.0)
    which = columns.first("speed", "time_s")
    value = columns.positive(which)
    if which == "speed":
        # The reference of a relative speed is noisy.
        columns.refuse("speed", value > 1.25, "a speed relative to the full one, about 1")
    rows = pd.DataFrame(
        {"row": columns.frame["row"], "batch": batch, "speed": value, "power_w": power_w}
    )
    if which == "time_s":
        cap_w = pd.Series(columns.positive("cap_w", default=1.0), index=rows.index)
        uncapped = rows.speed.where(cap_w == cap_w.groupby(rows.batch).transform("max"))
        rows["speed"] = uncapped.groupby(rows.batch).transform("min") / rows.speed
    return rows
