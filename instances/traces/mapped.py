"""Any table with a job a row: which column says what, and which rows cannot be jobs.

CSV (or another separator), Parquet (where pandas finds an engine), and by name the output of
Slurm's ``sacct --parsable2`` and the Standard Workload Format (Chapin et al., JSSPP 1999). GPUs
may stand in a column of their own or in Slurm's TRES, as in ``cpu=8,gres/gpu=2``.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import numpy as np
import pandas as pd

from ronda.instances.base import Name, Record
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, load
from ronda.instances.instance import Instance
from ronda.instances.traces.rigid import Machine, rigid_instance
from ronda.instances.traces.table import ALL, Filters, read_text

UNITS = MappingProxyType({"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0})
"""Units of numbers in columns of times, in seconds."""

BLANKS = "blanks"
"""A separator with which a file has no header: its columns are called 1, 2, 3 ..."""


class Columns(Record, frozen=True, kw_only=True):
    """Which column of a table says what of a job; a file of these is JSON.

    Attributes
    ----------
    submit, gpus
        Columns of the submission, and of the GPUs (all of them).
    duration, start, end
        The run time without queueing, or the columns of its start and end.
    id, user, vc, name, state
        Columns of the id (by default the line), user, virtual cluster, name, how the job ended.
    states
        First words of the states that are kept; none: all.
    unit
        Of times that are numbers, one of `UNITS`; others are dates.
    zone
        Time zone of dates that say none.
    separator
        Between columns; ``blanks``: any, and there is no header.
    """

    submit: Name
    gpus: Name
    duration: Name | None = None
    start: Name | None = None
    end: Name | None = None
    id: Name | None = None
    user: Name | None = None
    vc: Name | None = None
    name: Name | None = None
    state: Name | None = None
    states: tuple[str, ...] = ()
    unit: str = "s"
    zone: str = "UTC"
    separator: Name = ","


NAMED = MappingProxyType(
    {
        "sacct": Columns(
            submit="Submit",
            gpus="AllocTRES",
            start="Start",
            end="End",
            id="JobID",
            user="User",
            vc="Partition",
            state="State",
            states=("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
            separator="|",
        ),
        "swf": Columns(submit="2", gpus="5", duration="4", id="1", user="12", separator=BLANKS),
    }
)
"""Mappings by name; SWF counts processors, which are read as GPUs."""


@dataclass(frozen=True, slots=True)
class Converted:
    """An instance, and the rows of the table that are not in it, by reason."""

    instance: Instance
    dropped: Mapping[str, int]
    load: float


def read_mapped(
    path: str | Path,
    columns: Columns,
    *,
    machine: Machine,
    nodes: int | None = None,
    share: float | None = None,
    filters: Filters = ALL,
    name: str = "table",
) -> Converted:
    """Read a table as rigid jobs whose sizes are known (oracle), on equal nodes.

    Without `nodes` there are as few as make the load at most `share`: GPU-seconds of all jobs over
    those of the cluster from the first submission to the last. What cannot be a job is dropped and
    counted; jobs larger than the cluster are too.

    Raises
    ------
    InputError
        If the file is no table, lacks a column, or no job is left.
    """
    raw = _table(Path(path), columns)
    frame, dropped = _jobs(raw, columns, str(path), filters)
    wide = frame.num_gpus.max() if len(frame) else 0
    span_s = float(np.ptp(frame.submit_s)) if len(frame) else 0.0
    asked_s = float((frame.num_gpus * frame.duration_s).sum())
    if nodes is None:
        fitting = asked_s / (max(span_s, 1.0) * (share or 1.0) * machine.gpus)
        nodes = max(1, round(fitting), int(-(-wide // machine.gpus)))
    large = frame.num_gpus > nodes * machine.gpus
    if large.any():
        dropped[f"more than {nodes * machine.gpus:,} GPUs"] = int(large.sum())
        frame = frame[~large]
    if frame.empty:
        told = "; ".join(f"{count:,} with {why}" for why, count in dropped.items())
        raise InputError(str(path), f"no row that can be a job: {told}", "at least one")
    instance = rigid_instance(
        frame, path=path, name=name, machine=machine, nodes=nodes, filters=ALL, source=str(name)
    )
    used_s = float((frame.num_gpus * frame.duration_s).sum())
    return Converted(instance, dropped, used_s / (max(span_s, 1.0) * nodes * machine.gpus))


def columns_of(text: str) -> Columns:
    """Return a mapping by its name, from a ``.json`` file, or as ``submit=...,gpus=...``."""
    if text in NAMED:
        return NAMED[text]
    if text.endswith(".json"):
        given = load(Path(text))
        try:
            return msgspec.json.decode(given, type=Columns)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(
                label(text), str(error), "a mapping, as --keep-map writes it"
            ) from None
    pairs = [part.partition("=") for part in text.split(",")]
    found: dict[str, object] = {key.strip(): value.strip() for key, _, value in pairs}
    if isinstance(states := found.get("states"), str):
        found["states"] = states.split("/")
    try:
        return msgspec.convert(found, type=Columns)
    except msgspec.ValidationError as error:
        known = ", ".join((*NAMED, "a .json file", "or submit=COLUMN,gpus=COLUMN,duration=COLUMN"))
        raise InputError("--map", str(error), known) from None


def _table(path: Path, columns: Columns) -> pd.DataFrame:
    """Return the table as text, its rows by their lines in the file."""
    if columns.unit not in UNITS:
        raise InputError("--map: unit", repr(columns.unit), f"one of {', '.join(UNITS)}")
    if path.suffix == ".parquet":
        try:
            first, raw = 1, pd.read_parquet(io.BytesIO(load(path))).astype(str)
        except (ValueError, ImportError, OSError) as error:
            raise InputError(str(path), str(error).splitlines()[0], "a table of jobs") from error
    elif columns.separator != BLANKS:
        comments, raw = read_text(path, sep=columns.separator)
        first = comments + 2
    else:
        comments, raw = read_text(path, sep=r"\s+", comment=";", header=None)
        first = comments + 1
        raw = raw.set_axis(range(1, raw.shape[1] + 1), axis=1).rename(columns=str)
    return raw.set_axis(range(first, first + len(raw)))


def _jobs(
    raw: pd.DataFrame, columns: Columns, path: str, filters: Filters
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows that are jobs in canonical columns, and how many are not, by reason."""
    frame = _canonical(raw, columns, path)
    left, dropped = pd.Series(True, frame.index), dict[str, int]()
    for why, bad in _reasons(frame, columns, filters).items():
        if count := int((left & bad).sum()):
            dropped[why] = count
        left &= ~bad
    return frame[left], dropped


def _canonical(raw: pd.DataFrame, columns: Columns, path: str) -> pd.DataFrame:
    """Return the canonical columns of all rows; numbers that are none are NaN."""

    def column(name: str) -> pd.Series:
        if name not in raw.columns:
            found = ", ".join(map(repr, raw.columns[:12]))
            raise InputError(f"{path}, header", found, f"a column {name!r}")
        return raw[name].str.strip()

    def text(name: str | None) -> pd.Series | str:
        return "" if name is None else column(name)

    if columns.duration is not None:
        duration = _seconds(column(columns.duration), columns)
    elif columns.start is not None and columns.end is not None:
        duration = _seconds(column(columns.end), columns)
        duration -= _seconds(column(columns.start), columns)
    else:
        raise InputError("--map", "no duration", "duration=COLUMN, or start= and end=COLUMN")
    return pd.DataFrame(
        {
            "job_id": np.arange(len(raw)).astype(str) if columns.id is None else column(columns.id),
            "submit_s": _seconds(column(columns.submit), columns),
            "num_gpus": _gpus(column(columns.gpus)),
            "duration_s": duration,
            "vc": text(columns.vc),
            "user": text(columns.user),
            "name": text(columns.name),
            "status": text(columns.state),
            "row": raw.index,
        },
        index=raw.index,
    )


def _reasons(frame: pd.DataFrame, columns: Columns, filters: Filters) -> dict[str, pd.Series]:
    """Return which rows are no jobs, by reason: the first one counts."""
    submit, gpus, run_s = frame.submit_s, frame.num_gpus, frame.duration_s
    step = frame.job_id.str.contains(".", regex=False)
    first = -np.inf if filters.start_s is None else filters.start_s
    last = np.inf if filters.end_s is None else np.nextafter(filters.end_s, -np.inf)
    state = frame.status.str.split().str[0]
    return {
        "no id of its own, or a step of a job": frame.job_id.duplicated() | step,
        "another state": ~state.isin(columns.states) & bool(columns.states),
        f"no number of GPUs in {columns.gpus}": ~(gpus >= 0),
        "no GPUs": gpus == 0,
        "a part of a GPU": gpus % 1 != 0,
        f"no time in {columns.submit}": ~np.isfinite(submit),
        "no run time": ~(run_s > 0),
        "a submission outside the limits": ~submit.between(first, last),
        "a run time outside the limits": ~run_s.between(
            filters.min_duration_s, filters.max_duration_s
        ),
        "too many GPUs": gpus > filters.max_gpus,
        "too many GPU-hours": gpus * run_s >= filters.max_gpu_hours * 3600,
    }


def _gpus(text: pd.Series) -> pd.Series:
    """Return numbers of GPUs, also out of Slurm's TRES; NaN where there is none."""
    tres = text.str.contains("=", regex=False)
    typed = text.str.extract(r"gres/gpu=(\d+)")[0].fillna(
        text.str.extract(r"gres/gpu:[^=,]+=(\d+)")[0]
    )
    inside = pd.to_numeric(typed, errors="coerce").fillna(0.0)  # nothing of it: none
    return pd.to_numeric(text, errors="coerce").where(~tres, inside).astype(float)


def _seconds(text: pd.Series, columns: Columns) -> pd.Series:
    """Return times as seconds, those that are dates since 1970; NaN where there is none."""
    number = pd.to_numeric(text, errors="coerce").astype(float) * UNITS[columns.unit]
    if number.notna().any() or not len(text):
        return number
    try:
        zone = ZoneInfo(columns.zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError("--map: zone", repr(columns.zone), "as in Europe/Berlin") from error
    told = text.str.contains(r"(?:Z|[+-]\d\d:?\d\d)$").any()
    dates = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=bool(told))
    if not told:
        first = np.ones(len(dates), dtype=bool)  # of an hour that comes twice
        dates = dates.dt.tz_localize(zone, ambiguous=first, nonexistent="NaT")
    return (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
