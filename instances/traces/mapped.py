"""Read any table with one job per row as an instance, and explain why other rows are no jobs.

The table may be CSV (or have another separator) or Parquet (if pandas finds an engine). Mappings
exist by name for public traces (see `ronda.instances.traces.columns`). What schedulers log has
readers of its own in `ronda.instances.traces.logs`.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError, printable, short
from ronda.instances.files.storage import read_bytes
from ronda.instances.instance import Instance
from ronda.instances.rules.problem import Problem, limits
from ronda.instances.traces.columns import (
    ALL,
    NUMBERS,
    OWN,
    SHARES,
    TIMES,
    UNREADABLE,
    Columns,
    Dropped,
    Filters,
    checked,
    dialect_of,
    zone_of,
)
from ronda.instances.traces.recorded import Recorded, RecordedRun
from ronda.instances.traces.rigid import RESTARTS, Machine, rigid_instance
from ronda.instances.traces.slurm_cells import settled, tres
from ronda.instances.traces.table import (
    Reasons,
    clean_jobs,
    faults,
    filtered,
    passing,
)
from ronda.instances.traces.text import dates, number, numbers, only, passed, read_cells

NOTHING = ("NA", "N/A", "n/a", "nan", "NaN", "NaT", "<NA>", "None", "null", "NULL", "Unknown", "-")
"""Cells that mean an unknown number or time in the output of Slurm, pandas and others."""

NO_LIMIT = ("UNLIMITED", "Partition_Limit", "NOT_SET", "INVALID", "0", "00:00:00")
"""Slurm's values for no time limit."""


PRODUCT = " * "
"""The separator between cells of columns that are multiplied."""


@dataclass(frozen=True, slots=True)
class Converted:
    """An instance with an account of its table's rows, which became jobs or were `dropped`.

    `runs` is the number of jobs that are repeated runs under one id. `unread` lists the columns
    that the mapping does not name. `notes` state the source of the sizes and the assumptions.
    `recorded` has the runs of the jobs whose starts are told.
    """

    instance: Instance
    dropped: Dropped
    load: float
    runs: int
    unread: tuple[str, ...]
    notes: tuple[str, ...]
    recorded: Recorded

    @property
    def rows(self) -> int:
        """The number of rows in the table."""
        return len(self.instance.jobs) + self.dropped.total()

    @property
    def fields(self) -> dict[str, Any]:
        """The outcome of the conversion as fields for programs."""
        return {
            "rows": self.rows,
            "runs": self.runs,
            "load": round(self.load, 4),
            "dropped": self.dropped,
            "examples": self.dropped.examples,
            "unread": self.unread,
            "notes": self.notes,
        }

    @property
    def words(self) -> Iterator[str]:
        """The outcome of the conversion as lines of text."""
        yield f"rows: {self.rows:,}, of which {len(self.instance.jobs):,} are jobs"
        if self.runs:
            yield f"further runs of a job under its id: {self.runs:,}; the second is ID#2"
        if self.unread:
            yield f"columns not read: {', '.join(map(printable, self.unread))}"
        yield from self.notes
        yield f"load: {self.load:.2f} of the cluster, from the first submission to the last"


@dataclass(frozen=True)
class ReadTable:
    """The rows of a table as text, by line, with the mapping of its columns."""

    path: str
    raw: pd.DataFrame
    columns: Columns

    def parts(self, field: str) -> list[str]:
        """Return the columns of a field: several if GPUs are their product."""
        header = self.columns.named[field]
        if field not in ("gpus", "requested") or header in self.raw.columns:
            return [header]
        return [part.strip() for part in header.split("*")]

    @cached_property
    def told(self) -> dict[str, pd.Series]:
        """The cells of each field, which are empty where a column of the field is unknown."""
        found: dict[str, pd.Series] = {}
        for field in self.columns.named:
            silent = {*self.columns.unknown, *(NOTHING if field in NUMBERS else ())}
            silent |= {*(NO_LIMIT if field == "limit" else ())}
            own = [only(self.raw, name, self.path).str.strip() for name in self.parts(field)]
            first, *more = (each.where(~each.isin(silent), "") for each in own)
            for other in more:
                first = (first + PRODUCT + other).where((first != "") & (other != ""), "")
            found[field] = first
        return found

    @property
    def unread(self) -> tuple[str, ...]:
        """The named columns that the mapping does not read."""
        read = {part for field in self.columns.named for part in self.parts(field)}
        return tuple(header for header in self.raw.columns if header and header not in read)


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
    """Read a table as rigid jobs on equal nodes.

    Estimates are the users' time limits if the mapping has a column for them, and true run times
    (oracle) otherwise. A run that exceeded its limit keeps its true length. With `nodes` per
    virtual cluster, each virtual cluster becomes a partition, and jobs of others are dropped.
    Without `nodes` the instance gets as many nodes as make the load about `share`, and at least
    enough for the widest job. The load is the GPU-seconds of all jobs divided by those of the
    cluster between the first and the last submission. Rows that cannot be jobs and jobs that are
    larger than their cluster are dropped and counted. A job that ran several times under one id
    becomes several jobs; the second is ``id#2``.

    Raises
    ------
    InputError
        If the file is not a table or lacks a column, if no job is left, if more than a hundredth of
        the rows have unreadable cells, or if the mapping sets something that has no effect.
    """
    by_name = isinstance(nodes, Mapping)
    table = table_of(Path(path), columns, by_name=by_name)
    frame, dropped = own_rows(table)
    vcs = nodes if isinstance(nodes, Mapping) else None
    why = unreadable(table, frame, dropped)
    why |= {fault.why: fault.bad for fault in faults(frame, table.columns)}
    frame, left_out = passing(frame, why | filtered(frame, filters, vcs))
    dropped.add(left_out)
    if nodes is None:
        nodes = _fitting(frame, machine.gpus, share or 1.0, table.path)
    frame, large = passing(frame, _too_large(frame, nodes, machine.gpus))
    dropped.add(large)
    refuse_empty(frame, dropped, table.path)
    runs = tell_runs_apart(frame)
    notes = (sizes(frame, table), _machines(frame, machine), RESTARTS)
    jobs = clean_jobs(path, frame)
    instance = rigid_instance(
        jobs,
        path=path,
        name=name,
        machine=machine,
        nodes=nodes,
        source=str(name),
        made={"notes": [*notes]},
    )
    used = asked_s(frame) / (span_s(frame) * instance.cluster.gpus)
    return Converted(instance, dropped, used, runs, table.unread, notes, recorded_in(jobs))


def table_of(
    path: Path, columns: Columns, *, by_name: bool | None, own: bool = False, sized: bool = True
) -> ReadTable:
    """Return a table with its mapping, and refuse a contradictory mapping or a missing column.

    `by_name` states that there may be several partitions; None for those that the table has. `own`
    and `sized` are as in `checked`.
    """

    def there(columns: Columns) -> Columns:
        parted = columns.vc is not None if own or by_name is None else by_name
        checked(columns, by_name=parted, own=own, sized=sized)
        return columns

    columns = there(columns.without(("vc",) if by_name is False else ()))
    if path.suffix == ".parquet":
        try:
            frame = pd.read_parquet(io.BytesIO(read_bytes(path))).astype(str)
        except (ValueError, ImportError, OSError) as error:
            raise InputError(str(path), str(error).splitlines()[0], "a table of jobs") from error
        found = frame.set_axis(range(1, len(frame) + 1))
    else:
        found = read_cells(path, dialect_of(columns))
    table = mapped_onto(found, str(path), columns)
    there(table.columns)
    for name, whole in SHARES.items():
        if table.columns.share is None and name in found.columns:
            told_of = f"a column {name!r} of shares of a GPU, which the mapping does not read"
            raise InputError(f"{path}, header", told_of, f"share={name},whole={whole} in --map")
    return table


def mapped_onto(found: pd.DataFrame, path: str, columns: Columns) -> ReadTable:
    """Return a table mapped by its header, or raise an InputError that names a missing column."""
    headers = found.columns
    columns = columns.within(headers)
    columns = columns.without(f for f, name in columns.named.items() if name not in headers)
    table = ReadTable(path, found, columns)
    needed = (part for field in columns.named for part in table.parts(field))
    if missing := [" or ".join(map(repr, n.split("/"))) for n in needed if n not in headers]:
        expected = ", ".join(f"a column {each}" for each in missing)
        raise InputError(f"{path}, header", ", ".join(map(repr, headers[:12])), expected)
    return table


def own_rows(table: ReadTable) -> tuple[pd.DataFrame, Dropped]:
    """Return the rows that are jobs in canonical columns, and the reasons for all other rows.

    There are additional columns. ``held`` is the job's share of each GPU, and ``kinds`` are the GPU
    types in its TRES. ``start_s``, ``end_s`` and ``limit_s`` are in seconds. Missing numbers are
    NaN. ``odd`` names the first column with a cell that is not empty but unreadable.
    """
    frame = canonical(table)
    return passing(frame, _no_jobs(frame, table))


def canonical(table: ReadTable) -> pd.DataFrame:
    """Return all rows in the canonical columns of `own_rows`, whether they are jobs or not."""
    told, columns, raw = table.told, table.columns, table.raw
    empty = pd.Series("", index=raw.index, dtype=str)
    numbered = pd.Series(range(len(raw)), index=raw.index).astype(str)
    counts, kinds = _gpus(table)
    ran_s, limit_s = _lasting(table, "duration"), _lasting(table, "limit")
    share = numbers(told.get("share", empty))
    others = (f for f in NUMBERS if f in told and f not in {*TIMES, *counts})
    values = {field: numbers(told[field]) for field in others}
    values |= counts | _settled(table, ran_s)
    values |= {"duration": ran_s, "limit": limit_s, "deadline": times(table, "deadline")}
    gpus, odd = counts["gpus"].fillna(counts.get("requested", np.nan)), empty
    for field, value in values.items():
        said = told.get(field, empty) != ""
        if field == "requested":
            said &= told["gpus"] == ""
        odd = odd.where((odd != "") | ~said | value.notna(), field)
    return pd.DataFrame(
        {
            "job_id": told.get("id", numbered),
            "submit_s": values["submit"],
            "num_gpus": gpus if "share" in told else gpus / columns.whole,
            "duration_s": ran_s.fillna(values["end"] - values["start"]),
            "vc": told.get("vc", empty),
            "user": told.get("user", empty),
            "name": told.get("name", empty),
            "status": told.get("state", empty),
            "row": raw.index,
            "held": share / columns.whole if "share" in told else 1.0,
            "kinds": kinds,
            "start_s": values["start"],
            "end_s": values["end"],
            "limit_s": limit_s,
            "due_s": values["deadline"],
            "odd": odd,
            **{
                field: values.get(field, np.nan) if field in NUMBERS else told.get(field, empty)
                for field in OWN
            },
        }
    )


def _lasting(table: ReadTable, field: str) -> pd.Series:
    """Return a column of durations in seconds, NaN where there is none."""
    if field not in table.told:
        return pd.Series(np.nan, index=table.raw.index)
    text = table.told[field]
    found = table.columns.seconds(field, numbers(text))
    return found if found.notna().all() else found.fillna(passed(text, slurm=field == "limit"))


def times(table: ReadTable, field: str, *, later: bool = False) -> pd.Series:
    """Return a column of times in seconds, NaN where there is none.

    The column is read as numbers or as dates, whichever are more frequent. Dates count from the
    mapping's date. In an hour that occurs twice (a clock change), a date means the first or the
    `later` occurrence.
    """
    if field not in table.told:
        return pd.Series(np.nan, index=table.raw.index)
    text, columns = table.told[field], table.columns
    number = columns.seconds(field, numbers(text))
    if number.notna().all():
        return number
    since_s = (columns.since - date(1970, 1, 1)).total_seconds()
    dated = dates(text, zone_of(columns), later=later) - since_s
    if (count := number.notna().sum()) and count == dated.notna().sum():
        found = f"{count} numbers and {count} dates"
        raise InputError(f"{table.path}, {columns.named[field]}", found, "times of one kind")
    return number if number.notna().sum() > dated.notna().sum() else dated


def _settled(table: ReadTable, ran_s: pd.Series) -> dict[str, pd.Series]:
    """Return submissions, starts and ends, with hours that occur twice resolved.

    The chosen occurrence makes the run as long as the table says or, failing that, puts the start
    after the submission and the end after the start. The first occurrence wins a tie.
    """
    fields = ("submit", "start", "end")
    first = {field: times(table, field) for field in fields}
    if table.columns.zone == "UTC":
        return first
    second = {field: times(table, field, later=True) for field in fields}
    twice = pd.concat([first[f].notna() & (first[f] != second[f]) for f in first], axis=1)
    for row in twice.index[twice.any(axis=1)]:
        ways = tuple((first[f][row], second[f][row]) for f in first)
        best = settled(ways, ran_s[row])
        for field, value in zip(first, best, strict=True):
            first[field].at[row] = value
    return first


def _gpus(table: ReadTable) -> tuple[dict[str, pd.Series], pd.Series]:
    """Return the numbers in fields of GPUs, NaN where there is none, and the GPU types in TRES.

    Requested GPUs are returned only where the allocated GPUs are unknown.
    """
    found, told, index = dict[str, pd.Series](), table.told["gpus"], table.raw.index
    kinds: list[tuple[str, ...]] = [()] * len(told)
    for field in ("gpus", *({"requested"} & table.told.keys())):
        text = told if field == "gpus" else table.told[field].where(told == "", "")
        parsed = [
            [tres(part)[:2] if "=" in part else (number(part), ()) for part in cell.split(PRODUCT)]
            for cell in text
        ]
        found[field] = pd.Series([prod(n for n, _ in each) for each in parsed], index, dtype=float)
        kinds = [own or each[0][1] for own, each in zip(kinds, parsed, strict=True)]
    return found, pd.Series(kinds, index, dtype=object)


def _no_jobs(frame: pd.DataFrame, table: ReadTable) -> Reasons:
    """Return the rows that are not separate jobs or did not end as required, by reason."""
    columns = table.columns
    state = frame.status.str.extract(r"(\S*)", expand=False)
    other = ~state.isin(columns.states) & bool(columns.states)
    words = (printable(short(word, 20)) or "none" for word in sorted(set(state[other]))[:5])
    return {
        "the same row once more": table.raw.duplicated() & (columns.id is not None),
        "no id": frame.job_id == "",
        f"another state: {', '.join(words)}": other,
    }


def unreadable(table: ReadTable, frame: pd.DataFrame, dropped: Dropped) -> Reasons:
    """Return the rows with a cell that is not empty but unreadable.

    An InputError that names the first is raised if they are too large a share of the rows. Without
    them the table would be a different one, for example without any run time of 1,000 s and more
    ("5,400").
    """
    odd = frame.odd != ""
    why = "a cell that cannot be read"
    if not odd.any():
        return {}
    first = next(odd_cells(table, frame))
    if odd.sum() > UNREADABLE * len(frame):
        many = f"{odd.sum():,} of {len(frame):,} rows with cells that cannot be read"
        expected = f"{first.expected}; at most {UNREADABLE:.0%} of the rows may have others"
        raise InputError(f"{table.path}, {first.place}", f"{first.found}, and {many}", expected)
    dropped.examples[why] = f"{first.place}: {first.found}"
    return {why: odd}


def odd_cells(table: ReadTable, frame: pd.DataFrame) -> Iterator[Problem]:
    """Yield the first unreadable cell of each row."""
    columns = table.columns
    dated = f"a time: a number, or a date that {columns.zone} has, such as 2026-03-02T09:00"
    lasting = "a number without a unit or marks of thousands, or as in 1-02:03:04"
    kinds = dict.fromkeys(TIMES, dated) | {"duration": lasting, "limit": lasting}
    for row, field in frame.loc[frame.odd != "", ["row", "odd"]].itertuples(index=False):
        place, found = f"row {row}, {columns.named[field]}", repr(table.told[field][row])
        yield Problem(place, found, kinds.get(field, "a number above 0"))


def asked_s(frame: pd.DataFrame) -> float:
    """Return the GPU-seconds of all jobs."""
    return float((frame.num_gpus * frame.duration_s).sum())


def span_s(frame: pd.DataFrame) -> float:
    """Return the seconds from the first submission to the last, at least 1."""
    return max(1.0, float(np.ptp(frame.submit_s))) if len(frame) else 1.0


def _fitting(frame: pd.DataFrame, gpus: int, share: float, path: str) -> int:
    """Return the number of nodes of `gpus` GPUs with a load of about `share` that hold every job.

    An InputError that names the largest job is raised if the number exceeds the limits.
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


def recorded_in(jobs: pd.DataFrame) -> Recorded:
    """Return the runs of jobs whose start is told, from canonical rows with times from the start.

    A run without an end lasts for its run time.
    """
    told = jobs[jobs.start_s.notna()]
    ends_s = told.end_s.fillna(told.start_s + told.duration_s)
    runs = {
        job: (RecordedRun(start_s, None if np.isnan(end_s) else end_s, {}, state),)
        for job, start_s, end_s, state in zip(
            told.job_id, told.start_s.tolist(), ends_s.tolist(), told.status, strict=True
        )
    }
    return Recorded(runs, float(np.nanmax([0.0, *told.start_s, *ends_s])))


def refuse_empty(frame: pd.DataFrame, dropped: Dropped, path: str) -> None:
    """Raise an InputError if no row of a table can be a job."""
    if frame.empty:
        raise dropped.all_rows(path)


def tell_runs_apart(frame: pd.DataFrame) -> int:
    """Rename the second row of an id to ``id#2``, and so on, and return the number of such rows."""
    run = frame.groupby("job_id").cumcount() + 1
    frame["job_id"] += ("#" + run.astype(str)).where(run > 1, "")
    return int((run > 1).sum())


def sizes(frame: pd.DataFrame, table: ReadTable) -> str:
    """Describe the source of the estimates."""
    limited, known = frame.limit_s > 0, frame.duration_s.notna() | ("work" in table.told)
    true = "their work, as told" if "work" in table.told else "true run times"
    words = f"users' time limits ({table.columns.limit})"
    if not limited.any():
        words = f"{true} (limit=COLUMN reads users' time limits)" if known.any() else "not known"
    elif without := int((~limited & known).sum()):
        words += f"; of {without:,} jobs without one, {true}"
    if longer := int((frame.duration_s > frame.limit_s).sum()):
        many = f"{longer:,} of {len(frame):,} jobs"
        words += f"; {many} ran longer than theirs, as Slurm may let them, and do so again"
    return f"sizes: {words}"


def _machines(frame: pd.DataFrame, machine: Machine) -> str:
    gpu = machine.gpu
    words = (
        f"GPUs: all taken for {gpu.name} ({gpu.memory_gib:g} GiB, {gpu.idle_w:g} W idle, "
        f"{machine.busy_w:g} W busy), hosts for {machine.host_idle_w:g} W (--gpu)"
    )
    kinds = Counter(kind for own in frame.kinds for kind in own)
    told = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common())
    return f"{words}; jobs by types that --cluster keeps apart: {told}" if told else words
