"""Any table with a job a row as an instance: which rows are jobs, and why others are not.

CSV (or another separator), Parquet (where pandas finds an engine), and by name the output of
Slurm's ``sacct --parsable2``, the Standard Workload Format (Chapin et al., JSSPP 1999) and the pods
of Alibaba's GPU trace of 2023 (`ronda.instances.traces.columns`).
"""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError, printable, short
from ronda.instances.files.storage import load
from ronda.instances.instance import Instance
from ronda.instances.rules.jobs import LAST_S
from ronda.instances.rules.problem import limits
from ronda.instances.traces.columns import (
    ALL,
    SHARES,
    Columns,
    Dropped,
    Filters,
    checked,
    dialect_of,
    zone_of,
)
from ronda.instances.traces.rigid import Machine, rigid_instance
from ronda.instances.traces.table import SHORTEST_S, Reasons, filtered, passing
from ronda.instances.traces.text import Cells, dates, numbers, only, passed, read_cells

_WHEN = ("submit", "start", "end")

ROUNDED_S, ROUNDED = 1.0, 0.01
"""Seconds, and the share of a run time, by which times that are told twice may differ."""


@dataclass(frozen=True, slots=True)
class Converted:
    """An instance, and what became of the rows of its table: jobs, or `dropped`, by reason.

    `runs` of the jobs are further runs under an id that was there before. Columns that the mapping
    does not name are `unread`.
    """

    instance: Instance
    dropped: Dropped
    load: float
    runs: int
    unread: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return len(self.instance.jobs) + self.dropped.total()


def read_mapped(
    path: str | Path,
    columns: Columns,
    *,
    machine: Machine,
    nodes: int | Mapping[str, int] | None = None,
    share: float | None = None,
    filters: Filters = ALL,
    name: str = "table",
) -> Converted:
    """Read a table as rigid jobs whose sizes are known (oracle), on equal nodes.

    With `nodes` by virtual cluster each becomes a partition, and jobs of others are dropped.
    Without `nodes` there are as few as make the load at most `share`: GPU-seconds of all jobs over
    those of the cluster from the first submission to the last. What cannot be a job is dropped and
    counted; jobs larger than their cluster are too. A job that ran several times under one id is
    one each time: the second is ``id#2``.

    Raises
    ------
    InputError
        If the file is no table, lacks a column, or no job is left; or if the mapping names
        something that does nothing.
    """
    by_name = isinstance(nodes, Mapping)
    checked(columns, by_name=by_name)
    table = table_of(Path(path), columns)
    frame = canonical(table.frame, columns, str(path))
    why = nobody(frame, table.frame, columns) | unusable(frame, columns)
    vcs = nodes if isinstance(nodes, Mapping) else None
    frame, dropped = passing(frame, why | filtered(frame, filters, vcs))
    if table.broken:
        cells = f"other cells than the {table.frame.shape[1]} of the header"
        dropped[f"{cells} (row {table.broken[0]})"] = len(table.broken)
    if nodes is None:
        nodes = _fitting(frame, machine.gpus, share or 1.0, str(path))
    frame, large = passing(frame, _too_large(frame, nodes, machine.gpus))
    dropped.update(large)
    if frame.empty:
        told = "; ".join(f"{count:,} with {reason}" for reason, count in dropped.items())
        raise InputError(
            str(path), f"no row that can be a job: {told or 'no rows'}", "at least one"
        )
    run = frame.groupby("job_id").cumcount() + 1
    frame["job_id"] += ("#" + run.astype(str)).where(run > 1, "")
    instance = rigid_instance(
        frame, path=path, name=name, machine=machine, nodes=nodes, filters=ALL, source=str(name)
    )
    used = asked_s(frame) / (span_s(frame) * instance.cluster.gpus)
    read = set(columns.named.values())
    unread = tuple(header for header in table.frame.columns if header not in read)
    return Converted(instance, dropped, used, int((run > 1).sum()), unread)


def table_of(path: Path, columns: Columns) -> Cells:
    """Return the rows of a table as text; refuse one without the columns of the mapping."""
    if path.suffix == ".parquet":
        try:
            frame = pd.read_parquet(io.BytesIO(load(path))).astype(str)
        except (ValueError, ImportError, OSError) as error:
            raise InputError(str(path), str(error).splitlines()[0], "a table of jobs") from error
        found = Cells(frame.set_axis(range(1, len(frame) + 1)))
    else:
        found = read_cells(path, dialect_of(columns))
    headers = found.frame.columns
    for name in columns.named.values():
        if name not in headers:
            shown = ", ".join(map(repr, headers[:12]))
            raise InputError(f"{path}, header", shown, f"a column {name!r}")
    for name, whole in SHARES.items():
        if columns.share is None and name in headers:
            told = f"a column {name!r} of shares of a GPU, which the mapping does not read"
            raise InputError(f"{path}, header", told, f"share={name},whole={whole} in --map")
    return found


def canonical(raw: pd.DataFrame, columns: Columns, path: str) -> pd.DataFrame:
    """Return all rows in canonical columns, and ``held``, ``start_s`` and ``end_s``.

    ``held`` is the share that a job has of each GPU. Numbers that are none are NaN.
    """
    cells = {field: only(raw, name, path).str.strip() for field, name in columns.named.items()}
    told = {field: own.where(~own.isin(columns.unknown), "") for field, own in cells.items()}
    empty = pd.Series("", index=raw.index, dtype=str)
    numbered = pd.Series(range(len(raw)), index=raw.index).astype(str)
    submit, start, end = (times(told, field, columns, path) for field in ("submit", "start", "end"))
    gpus, held = _gpus(told, columns)
    run_s = end - start
    if "duration" in told:
        own = told["duration"]
        run_s = (numbers(own) * columns.unit_s("duration")).fillna(passed(own))
    return pd.DataFrame(
        {
            "job_id": told.get("id", numbered),
            "submit_s": submit,
            "num_gpus": gpus,
            "duration_s": run_s,
            "vc": told.get("vc", empty),
            "user": told.get("user", empty),
            "name": told.get("name", empty),
            "status": told.get("state", empty),
            "row": raw.index,
            "held": held,
            "start_s": start,
            "end_s": end,
        }
    )


def times(told: Mapping[str, pd.Series], field: str, columns: Columns, path: str) -> pd.Series:
    """Return a column of times as seconds, of dates since 1970; NaN where there is none.

    It holds numbers or dates, whichever are more.
    """
    if field not in told:
        return pd.Series(np.nan, index=told["submit"].index)
    number = numbers(told[field]) * columns.unit_s(field)
    date = dates(told[field], zone_of(columns))
    if (count := number.notna().sum()) and count == date.notna().sum():
        found = f"{count} numbers and {count} dates"
        raise InputError(f"{path}, {columns.named[field]}", found, "times of one kind")
    return number if number.notna().sum() > date.notna().sum() else date


def _gpus(told: Mapping[str, pd.Series], columns: Columns) -> tuple[pd.Series, pd.Series]:
    """Return numbers of GPUs, and the share of each that a job has; NaN where there is none."""
    text = told["gpus"]
    if "requested" in told:
        text = text.where(text != "", told["requested"])
    tres = text.str.contains("=", regex=False)
    gpus = numbers(text).where(~tres, text.where(tres, "").map(_in_tres).astype(float))
    if "share" in told:
        return gpus, numbers(told["share"]) / columns.whole
    return gpus / columns.whole, pd.Series(1.0, index=text.index)


_GENERIC = re.compile(r"gres/(gpu|shard|mps)(?::(.+))?")
_SLICE = re.compile(r"\d+g\.\d+gb")


def _in_tres(text: str) -> float:
    """Return the GPUs in Slurm's TRES, such as ``cpu=8,gres/gpu=2,gres/gpu:a100=2``.

    Those of all types are told once more as a total, or are added up. A job with slices of a GPU
    (MIG, shards, MPS) has a half more than its whole ones. NaN where the numbers contradict.
    """
    count: dict[tuple[str, str | None], int] = {}
    for part in text.split(","):
        key, _, number = part.strip().partition("=")
        found = _GENERIC.fullmatch(key)
        if found is None:
            continue
        if not re.fullmatch("[0-9]{1,9}", number) or found.groups() in count:
            return np.nan
        count[found[1], found[2]] = int(number)
    by_type = {kind: n for (what, kind), n in count.items() if what == "gpu" and kind is not None}
    gpus = count.get(("gpu", None), sum(by_type.values()))
    slices = sum(n for kind, n in by_type.items() if _SLICE.search(kind))
    shared = slices + sum(n for (what, _), n in count.items() if what != "gpu")
    if gpus < sum(by_type.values()):
        return np.nan
    return gpus - slices + (0.5 if shared else 0.0)


def nobody(frame: pd.DataFrame, raw: pd.DataFrame, columns: Columns) -> Reasons:
    """Return which rows are no job of their own, or none that ended, by reason."""
    state = frame.status.str.extract(r"(\S*)", expand=False)
    other = ~state.isin(columns.states) & bool(columns.states)
    words = (printable(short(word, 20)) or "none" for word in sorted(set(state[other]))[:5])
    return {
        "the same row once more": raw.duplicated() & (columns.id is not None),
        "a step of a job": frame.job_id.str.contains(".", regex=False)
        & (columns.dialect == "sacct"),
        "no id": frame.job_id == "",
        f"another state: {', '.join(words)}": other,
    }


def unusable(frame: pd.DataFrame, columns: Columns) -> Reasons:
    """Return which rows do not tell GPUs and times, or contradict themselves, by reason."""
    gpus, held = frame.num_gpus, frame.held
    submit, start, end, run_s = (frame[c] for c in ("submit_s", "start_s", "end_s", "duration_s"))
    missed_s = np.maximum(ROUNDED * (end - start), ROUNDED_S)
    return {
        f"no number of GPUs in {columns.gpus}": ~(gpus >= 0),
        f"more than {limits().gpus:,} GPUs": gpus > limits().gpus,
        "no GPUs": gpus == 0,
        f"no share of a GPU in {columns.share}": ~((held > 0) & (held <= 1)),
        "a part of a GPU": (gpus % 1 != 0) | (held < 1),
        f"no time in {columns.submit}": ~(submit.abs() <= LAST_S),
        "a start before the submission": start <= submit - ROUNDED_S,
        "an end before the start": end < start,
        "a run time longer than from submission to end": start.isna()
        & (end - run_s <= submit - ROUNDED_S),
        "a run time that is not from start to end": (run_s - (end - start)).abs() > missed_s,
        "no run time": ~run_s.between(SHORTEST_S, LAST_S),
    }


def asked_s(frame: pd.DataFrame) -> float:
    """Return the GPU-seconds of jobs."""
    return float((frame.num_gpus * frame.duration_s).sum())


def span_s(frame: pd.DataFrame) -> float:
    """Return the seconds from the first submission to the last, 1 at least."""
    return max(1.0, float(np.ptp(frame.submit_s))) if len(frame) else 1.0


def _fitting(frame: pd.DataFrame, gpus: int, share: float, path: str) -> int:
    """Return the nodes of so many GPUs that make the load at most `share`, and hold every job.

    InputError, naming the largest job, if no cluster has as many.
    """
    wide = int(frame.num_gpus.max()) if len(frame) else 0
    nodes = max(1, round(asked_s(frame) / (span_s(frame) * share * gpus)), -(-wide // gpus))
    if nodes > limits().nodes or nodes * gpus > limits().gpus:
        most = frame.iloc[int(np.argmax(frame.num_gpus * frame.duration_s))]
        found = f"{most.num_gpus:g} GPUs for {most.duration_s:g} s"
        expected = f"less, or --nodes: for the load it would take {nodes:,} nodes"
        raise InputError(f"{path}, row {most['row']}", found, expected)
    return nodes


def _too_large(frame: pd.DataFrame, nodes: int | Mapping[str, int], gpus: int) -> Reasons:
    if isinstance(nodes, int):
        return {f"more than {nodes * gpus:,} GPUs": frame.num_gpus > nodes * gpus}
    return {"more GPUs than its cluster has": frame.num_gpus > frame.vc.map(nodes) * gpus}
