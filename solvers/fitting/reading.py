"""Read tables of measurements: CSV columns become `Steps` and `Watts`, bad rows are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.traces.table import refuse
from ronda.solvers.fitting.columns import APPLICATION, GPU, POWER, THROUGHPUT, Columns, read_table
from ronda.solvers.fitting.data import Steps, Watts

MOST_SPEED = 1.25
"""A relative speed may be above 1 by the noise of its reference, not by more."""

_TIMES = ("step_s", "iters_per_s", "samples_per_s")
# B / (n m) may miss a limit on the local batch by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a table does not say itself.

    Attributes
    ----------
    model
        The application to take; a part of its name that no other has will do. None: all. In a
        table without such a column it is the name.
    gpu_type
        Name of the GPU where the table has no such column.
    gpus_per_node
        To count nodes where the table has no such column: as few as hold the GPUs.
    max_local_batch
        To count gradient passes where the table has no such column: as few as keep the local
        batch within it. None: one pass.
    skip_zero
        Leave out rows with a time or rate of 0, as some tables write "not measured".
    """

    model: str | None = None
    gpu_type: str = "GPU"
    gpus_per_node: int | None = None
    max_local_batch: float | None = None
    skip_zero: bool = False


def kind_of(path: str | Path) -> str:
    """Return ``power`` if a table has a column of watts, else ``throughput``.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    return "power" if "power_w" in read_table(path, POWER).attrs["headers"] else "throughput"


def read_steps(path: str | Path, reading: Reading) -> tuple[Steps, ...]:
    """Read measured iterations, one `Steps` for each application and GPU.

    Raises
    ------
    InputError
        Naming the header or the row: a missing column, no number, not positive, or a
        synchronisation that takes the whole step.
    """
    frame = read_table(path, THROUGHPUT)
    return tuple(
        _steps(str(path), Columns(path, THROUGHPUT, part), application, gpu_type, reading)
        for application, gpu_type, part in _parts(path, frame, reading)
    )


def read_watts(path: str | Path, reading: Reading) -> tuple[Watts, ...]:
    """Read measured power, one `Watts` for each application and GPU.

    Without a column of speeds, speed is ``reference / time``: the reference is the shortest time
    of the same batch size at the highest cap, or of all where there is no column of caps.

    Raises
    ------
    InputError
        Naming the header or the row: a missing column, no number, or not positive.
    """
    frame = read_table(path, POWER)
    return tuple(
        _watts(str(path), Columns(path, POWER, part), application, gpu_type)
        for application, gpu_type, part in _parts(path, frame, reading)
    )


def _steps(
    place: str, columns: Columns, application: str, gpu_type: str, reading: Reading
) -> Steps:
    """Return the iterations of one application."""
    columns, skipped = _measured(columns, reading)
    gpus = columns.positive(columns.first("gpus"), whole=True)
    batch, passes = _batch(columns, gpus, reading)
    step_s = _step_s(columns, gpus * passes * batch)
    sync_s = columns.numbers("sync_s") if columns.has("sync_s") else None
    if sync_s is not None:
        bad = (sync_s < 0) | (sync_s >= step_s)
        columns.refuse("sync_s", bad, "0 or more, and less than the whole step")
    clock = columns.positive("clock", default=1.0)
    if columns.has("clock"):
        columns.refuse("clock", clock > 1.0, "a share of the highest clock, 1 at most")
    return Steps(
        place=place,
        application=application,
        gpu_type=gpu_type,
        row=columns.row,
        gpus=gpus,
        nodes=_nodes(columns, gpus, reading),
        local_batch=batch,
        passes=passes,
        clock=clock,
        step_s=step_s,
        sync_s=sync_s,
        skipped=skipped,
    )


def _measured(columns: Columns, reading: Reading) -> tuple[Columns, int]:
    """Return the rows that were measured, and how many were not."""
    if not reading.skip_zero:
        return columns, 0
    zero = columns.numbers(columns.first(*_TIMES)) == 0.0
    if zero.all():
        raise InputError(str(columns.path), "no row with a time or rate above 0", "measurements")
    return columns.without(zero), int(zero.sum())


def _nodes(columns: Columns, gpus: Floats, reading: Reading) -> Floats:
    """Return the nodes that each row's GPUs were spread over."""
    if columns.has("nodes"):
        nodes = columns.positive("nodes", whole=True)
        columns.refuse("nodes", nodes > gpus, "at most one node for each GPU")
        return nodes
    if reading.gpus_per_node is None:
        if (gpus > 1).any():
            raise columns.missing("nodes", "--gpus-per-node to count them")
        return np.ones(len(gpus))
    return np.ceil(gpus / reading.gpus_per_node)


def _batch(columns: Columns, gpus: Floats, reading: Reading) -> tuple[Floats, Floats]:
    """Return the local batch and the gradient passes of each row."""
    which = columns.first("local_batch", "global_batch")
    batch = columns.positive(which)
    most = reading.max_local_batch
    if columns.has("passes") or which == "local_batch" or most is None:
        passes = columns.positive("passes", default=1.0, whole=True)
    else:
        passes = np.maximum(np.ceil(batch / gpus / most * (1.0 - _ROUNDING)), 1.0)
    return (batch if which == "local_batch" else batch / (gpus * passes)), passes


def _step_s(columns: Columns, samples: Floats) -> Floats:
    """Return the seconds of an iteration of so many samples, from times or rates."""
    which = columns.first(*_TIMES)
    value = columns.positive(which)
    if which == "step_s":
        return value
    return 1.0 / value if which == "iters_per_s" else samples / value


def _watts(place: str, columns: Columns, application: str, gpu_type: str) -> Watts:
    """Return the power of one application."""
    power = columns.positive(columns.first("power_w"))
    batch = columns.positive("batch", default=0.0)
    which = columns.first("speed", "time_s")
    value = columns.positive(which)
    if which == "speed":
        columns.refuse("speed", value > MOST_SPEED, "a speed relative to the full one, about 1")
    else:
        value = _speed(value, batch, columns.positive("cap_w", default=1.0))
    return Watts(
        place=place,
        application=application,
        gpu_type=gpu_type,
        row=columns.row,
        batch=batch,
        speed=value,
        power_w=power,
    )


def _speed(time_s: Floats, batch: Floats, cap_w: Floats) -> Floats:
    """Return speeds relative to the shortest time at the highest cap of the same batch size."""
    speed = np.empty(len(time_s))
    for size in np.unique(batch):
        own = batch == size
        uncapped = own & (cap_w == cap_w[own].max())
        speed[own] = time_s[uncapped].min() / time_s[own]
    return speed


def _parts(
    path: str | Path, frame: pd.DataFrame, reading: Reading
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (application, GPU type, rows) in the order of the table."""
    headers = frame.attrs["headers"]
    for column in (*APPLICATION, *GPU):
        if column in headers:
            own = frame[[column, "row"]].rename(columns={column: headers[column]})
            refuse(path, own, (frame[column] == "").to_numpy(), headers[column], "a name")
    present = [column for column in APPLICATION if column in headers]
    if present:
        names = frame[present].agg("-".join, axis=1)
        wanted = None if reading.model is None else _wanted(path, names, reading.model)
    else:
        names = pd.Series(reading.model or "application", index=frame.index)
        wanted = None
    if "gpu_type" in headers:
        gpus = frame["gpu_type"]
    else:
        gpus = pd.Series(reading.gpu_type, index=frame.index)
    for (application, gpu_type), part in frame.groupby([names, gpus], sort=False):
        if wanted in (None, application):
            part.attrs["headers"] = headers
            yield str(application), str(gpu_type), part


def _wanted(path: str | Path, names: pd.Series, word: str) -> str:
    """Return the application that a word means."""
    known = list(dict.fromkeys(names))
    near = [name for name in known if name == word] or [name for name in known if word in name]
    if len(near) == 1:
        return str(near[0])
    shown = ", ".join((near or known)[:8])
    found = f"{len(near)} that have it: {shown}" if near else f"no such application, but {shown}"
    raise InputError(f"{path}, --model {word}", found, "the name of one, or a part of it")
