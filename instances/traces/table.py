"""CSV tables read by their headers, and checks of which canonical rows can be jobs.

The canonical columns are ``job_id`` (text), ``submit_s`` (seconds on the trace's own clock),
``num_gpus`` (total), ``duration_s`` (run time without queueing), ``vc`` (virtual cluster),
``user``, ``name`` and ``status`` (empty text if unknown), and ``row`` (line in the file).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.rules.jobs import LAST_S
from ronda.instances.rules.problem import limits
from ronda.instances.traces.columns import ALL, Columns, Dropped, Filters
from ronda.instances.traces.rigid import SWITCH
from ronda.instances.traces.text import numbers, only, read_cells

MEASURED = (1e-20, 1e20)
"""The range of measurements, whose squares and products remain finite."""

SHORTEST_S = 1e-6
"""The shortest run time, as no clock is finer."""

ROUNDED_S, ROUNDED = 1.0, 0.01
"""The seconds and the share of a run time by which redundant times may differ."""


def read_columns(
    path: str | Path,
    aliases: Mapping[str, Sequence[str]],
    optional: Iterable[str] = (),
    kind: str = "job",
) -> pd.DataFrame:
    """Read the named columns of a CSV file as text.

    The file may be gzipped, and lines before its header may begin with ``#``. `aliases` gives the
    possible headers of each column. A missing `optional` column becomes empty text. ``row`` is the
    line in the file, and ``attrs["headers"]`` holds the header of each column. Errors call a row
    `kind`.

    Raises
    ------
    InputError
        If the file cannot be read, is not CSV, lacks a column or has no rows.
    """
    raw = read_cells(path)
    columns, headers = {}, {}
    for name, known in aliases.items():
        found = [header for header in known if header in raw.columns]
        if found:
            columns[name], headers[name] = only(raw, found[0], str(path)), found[0]
        elif name in optional:
            columns[name] = pd.Series("", index=raw.index, dtype=str)
        else:
            raise InputError(
                f"{path}, header",
                ", ".join(map(repr, raw.columns[:12])),
                f"a column {' or '.join(map(repr, known))}",
            )
    if raw.empty:
        raise InputError(str(path), "no rows", f"at least one {kind}")
    frame = pd.DataFrame(columns)
    frame.attrs["headers"] = headers
    frame["row"] = frame.index
    return frame.reset_index(drop=True)


def rows(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows as named tuples of plain Python values."""
    return frame.astype(object).itertuples(index=False)


def to_number(
    path: str | Path, frame: pd.DataFrame, column: str, header: str | None = None
) -> pd.Series:
    """Return a text column as finite floats, or refuse the first row that holds something else."""
    own = frame[column]
    values = own if pd.api.types.is_numeric_dtype(own) else numbers(own)
    refuse(path, frame, ~np.isfinite(values.to_numpy(float)), column, "a finite number", header)
    return values


def positive(
    path: str | Path, frame: pd.DataFrame, column: str, header: str | None = None
) -> pd.Series:
    """Return a text column as measurements above 0, or refuse the first row without one."""
    values = to_number(path, frame, column, header)
    refuse(path, frame, (values <= 0).to_numpy(), column, "a number above 0", header)
    odd = ~values.between(*MEASURED).to_numpy()
    refuse(path, frame, odd, column, "{:g} to {:g}".format(*MEASURED), header)
    return values


def refuse(
    path: str | Path,
    frame: pd.DataFrame,
    bad: np.ndarray[tuple[int], np.dtype[np.bool_]],
    column: str,
    expected: str,
    header: str | None = None,
) -> None:
    """Raise an `InputError` that names the column and the first row where `bad` holds, if any."""
    if bad.any():
        first = frame.iloc[int(np.argmax(bad))]
        value = first[column]
        found = repr(value) if isinstance(value, str) else f"{value:g}"
        raise InputError(f"{path}, row {first['row']}, {header or column}", found, expected)


def clean_jobs(
    path: str | Path,
    frame: pd.DataFrame,
    *,
    filters: Filters = ALL,
    vcs: Iterable[str] | None = None,
    dropped: Dropped | None = None,
) -> pd.DataFrame:
    """Return checked and filtered canonical rows in order of submission.

    Rows with 0 GPUs (CPU jobs) are left out. Jobs of the same second keep the file's order.
    Submission times count from the start. Without `vcs` all virtual clusters are kept. `dropped`
    receives the number of rows left out, by reason. A bad row (not a number, negative, repeated id)
    is refused, and so is a trace without any remaining row.
    """
    for fault in faults(frame, least_s=0.0):
        refuse(path, frame, fault.bad.to_numpy(), fault.column, fault.expected)
    refuse(path, frame, (frame.job_id == "").to_numpy(), "job_id", "an id")
    repeated = frame.job_id.duplicated().to_numpy()
    refuse(path, frame, repeated, "job_id", "an id that no other row has")
    kept, left_out = passing(frame, filtered(frame, filters, vcs))
    if kept.empty:
        known = sorted(set(frame.vc))
        raise InputError(
            str(path),
            f"no row that passes the filters, of {len(frame)} (virtual clusters: {known[:20]})",
            "at least one job; widen the filters",
        )
    if dropped is not None:
        dropped.add(left_out)
    kept = kept.sort_values("submit_s", kind="stable", ignore_index=True)
    short = kept.duration_s.to_numpy() < SHORTEST_S
    refuse(path, kept, short, "duration_s", "a positive time; min_duration_s=1 drops such rows")
    kept = from_start(kept, filters)
    late = kept.submit_s.to_numpy() > LAST_S
    refuse(path, kept, late, "submit_s", f"{LAST_S:g} s after the start at most")
    kept["num_gpus"] = kept.num_gpus.astype(np.int64)
    return kept


def from_start(frame: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """Return ordered rows with times since the filters' start or else the first submission."""
    first_s = frame.submit_s.iloc[0] if len(frame) else 0.0
    start_s = first_s if filters.start_s is None else filters.start_s
    times = frame.columns.intersection(["submit_s", "due_s", "start_s", "end_s"])
    return frame.assign(**{column: frame[column] - start_s for column in times})


class BadRows(NamedTuple):
    """The rows that cannot be jobs for one reason, with the column and its expected content."""

    why: str
    column: str
    expected: str
    bad: "pd.Series[bool]"


def faults(
    frame: pd.DataFrame,
    columns: Columns | None = None,
    *,
    least_s: float = SHORTEST_S,
    timeless: bool = False,
) -> list[BadRows]:
    """Return the canonical rows that cannot be jobs.

    Their GPUs or times are impossible for a job. Rows of a mapped table may also contradict
    themselves, and the reasons name its `columns` in that case. A job runs for `least_s` seconds or
    more. If rows may be `timeless`, a row without any run time is valid.
    """
    gpus, submit, run_s = frame.num_gpus, frame.submit_s, frame.duration_s
    whole, late = "a whole number of GPUs", f"seconds, {LAST_S:g} at most, either way"
    told = ("", "") if columns is None else (f" in {columns.gpus}", f" in {columns.submit}")
    part = (gpus % 1 > 0) | (frame.get("held", 1.0) < 1)
    most, at_most = f"more than {limits().gpus:,} GPUs", limits().at_most("gpus")
    counts = [
        BadRows(f"no number of GPUs{told[0]}", "num_gpus", whole, ~(gpus >= 0)),
        BadRows(most, "num_gpus", at_most, gpus > limits().gpus),
        BadRows("a part of a GPU", "num_gpus", whole, part),
        BadRows(f"no time{told[1]}", "submit_s", late, ~(submit.abs() <= LAST_S)),
    ]
    lasts = f"a run time, {least_s:g} to {LAST_S:g} s"
    none = ~run_s.between(least_s, LAST_S) & (run_s.notna() | (not timeless))
    runs = BadRows("no run time", "duration_s", lasts, none)
    if columns is None:
        return [*counts, runs]
    held, start, end = frame.held, frame.start_s, frame.end_s
    took_s = end - start
    missed_s = np.maximum(ROUNDED * took_s, ROUNDED_S)
    others = {
        f"no share of a GPU in {columns.share}": ~((held > 0) & (held <= 1)),
        "a start before the submission": start <= submit - ROUNDED_S,
        "an end before the start": end < start,
        "a run time longer than from submission to end": start.isna()
        & (end - run_s <= submit - ROUNDED_S),
        "a run time that is not from start to end": (run_s - took_s).abs() > missed_s,
    }
    own = [
        BadRows(f"{header} is not {expected}", field, expected, bad)
        for field, expected, bad in _odd_of_own(frame)
        if (header := columns.named.get(field)) is not None
    ]
    odd = [BadRows(why, "", "", bad) for why, bad in others.items()]
    return [BadRows("no GPUs", "", "", gpus == 0), *counts, *odd, runs, *own]


def _odd_of_own(frame: pd.DataFrame) -> Iterator[tuple[str, str, "pd.Series[bool]"]]:
    """Yield each rare field with the expected content and a mask of rows with another content."""
    switches = frame.preemptible.str.lower()
    yield "preemptible", "yes or no", (switches != "") & ~switches.isin(SWITCH)
    yield "deadline", "a time after the submission", frame.due_s <= frame.submit_s
    for field in ("weight", "work"):
        yield field, "a number above 0", frame[field] <= 0
    for field in ("min_gpus", "max_gpus"):
        number = frame[field]
        odd = (number <= 0) | (number % 1 > 0) | (number > limits().gpus)
        yield field, "a whole number of GPUs", odd


Reasons = dict[str, "pd.Series[bool]"]
"""Masks of the rows that are left out, by reason."""


def filtered(frame: pd.DataFrame, filters: Filters, vcs: Iterable[str] | None = None) -> Reasons:
    """Return the rows that have no GPUs or do not pass the filters, by reason."""
    gpus, run_s = frame.num_gpus, frame.duration_s
    start = -np.inf if filters.start_s is None else filters.start_s
    end = np.inf if filters.end_s is None else filters.end_s
    reasons = {} if vcs is None else {"another virtual cluster": ~frame.vc.isin(set(vcs))}
    return reasons | {
        "no GPUs": gpus == 0,
        "a submission outside the limits": (frame.submit_s < start) | (frame.submit_s >= end),
        "a run time outside the limits": ~run_s.between(
            filters.min_duration_s, filters.max_duration_s
        ),
        "too many GPUs": gpus > filters.max_gpus,
        "too many GPU-hours": gpus * run_s >= filters.max_gpu_hours * 3600,
    }


def passing(frame: pd.DataFrame, reasons: Reasons) -> tuple[pd.DataFrame, Dropped]:
    """Return the rows that no reason leaves out, and the number of other rows by reason.

    A row that several reasons leave out counts under the first reason.
    """
    left, dropped = pd.Series(True, frame.index), Dropped()
    for why, bad in reasons.items():
        dropped.count(why, frame.row[left & bad])
        left &= ~bad
    return frame[left], dropped
