"""Read a CSV trace into the canonical job schema, refusing what cannot be a job.

The canonical columns are ``job_id`` (text), ``submit_s`` (seconds in the trace's own clock),
``num_gpus`` (all of them at once), ``duration_s`` (run time without queueing), ``vc`` (virtual
cluster), ``user``, ``name`` and ``status`` (empty text where unknown), and ``row`` (line in the
file).
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, load, unpack

_CANONICAL = ("job_id", "submit_s", "num_gpus", "duration_s", "vc", "user", "name", "status")


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which rows of a trace become jobs; the literature's values stand in each reader.

    Kept are jobs submitted in [`start_s`, `end_s`) of the trace's own clock; the instance's time 0
    is `start_s`, or the first submission where it is None. The other limits are inclusive, but for
    `max_gpu_hours`.
    """

    start_s: float | None = None
    end_s: float | None = None
    min_duration_s: float = 0.0
    max_duration_s: float = float("inf")
    max_gpu_hours: float = float("inf")
    max_gpus: float = float("inf")


ALL = Filters()


def read_columns(
    path: str | Path,
    aliases: Mapping[str, Sequence[str]],
    optional: Iterable[str] = (),
    kind: str = "job",
) -> pd.DataFrame:
    """Read the named columns of a CSV file as text.

    The file may be gzipped; lines before its header may begin with ``#``. `aliases` has the headers
    that each column may have in the file; an `optional` one that is missing becomes empty text.
    ``row`` is the line in the file, ``attrs["headers"]`` the header that each column had; `kind` is
    what errors call a row.

    Raises
    ------
    InputError
        If the file cannot be read, is no CSV, lacks a column or has no rows.
    """
    comments, raw = read_text(Path(path))
    columns, headers = {}, {}
    for name, known in aliases.items():
        found = [header for header in known if header in raw.columns]
        if found:
            columns[name], headers[name] = raw[found[0]], found[0]
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
    frame["row"] = np.arange(len(frame)) + comments + 2  # the header is line comments + 1
    return frame


def read_jobs(
    path: str | Path,
    aliases: Mapping[str, Sequence[str]] | None = None,
    optional: Iterable[str] = (),
) -> pd.DataFrame:
    """Read the canonical columns, under their own names but for the aliases, as text."""
    names: dict[str, Sequence[str]] = {name: (name,) for name in _CANONICAL}
    optional = ("vc", "user", "name", "status", *optional)
    return read_columns(path, names | dict(aliases or {}), optional)


def read_text(path: Path, **how: Any) -> tuple[int, pd.DataFrame]:
    """Return the number of comment lines before the header, and all columns as text.

    `how` is for `pandas.read_csv`.
    """
    data = io.BytesIO(unpack(load(path), label(path)))
    comments = sum(1 for _ in takewhile(lambda line: line.startswith(b"#"), data))
    data.seek(0)
    try:
        raw = pd.read_csv(
            data, dtype=str, skiprows=comments, keep_default_na=False, encoding="utf-8", **how
        )
    except (ValueError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(str(path), reason, "a CSV file with a header") from error
    return comments, raw


def rows(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows as named tuples of plain Python values."""
    return frame.itertuples(index=False)


def to_number(
    path: str | Path, frame: pd.DataFrame, column: str, header: str | None = None
) -> pd.Series:
    """Return a text column as finite floats; refuse the first row that holds something else."""
    values = pd.to_numeric(frame[column], errors="coerce").astype(float)
    refuse(path, frame, ~np.isfinite(values.to_numpy()), column, "a finite number", header)
    return values


def refuse(
    path: str | Path,
    frame: pd.DataFrame,
    bad: np.ndarray[tuple[int], np.dtype[np.bool_]],
    column: str,
    expected: str,
    header: str | None = None,
) -> None:
    """Raise an `InputError` that names the first row where `bad` holds, if any, and the column."""
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
) -> pd.DataFrame:
    """Check and filter canonical rows (see `read_columns`) and put them in order of submission.

    Rows with 0 GPUs (CPU jobs) are left out. Jobs of the same second keep the file's order.
    Submissions count from the start. Without `vcs` all virtual clusters are kept. A bad row is
    refused (not a number, negative, repeated id), and so is a trace of which nothing is left.
    """
    frame = frame.copy()
    for column in ("submit_s", "num_gpus", "duration_s"):
        frame[column] = to_number(path, frame, column)
    refuse(path, frame, frame.num_gpus.to_numpy() < 0, "num_gpus", "a number of GPUs")
    refuse(path, frame, frame.num_gpus.to_numpy() % 1 != 0, "num_gpus", "a whole number of GPUs")
    refuse(path, frame, frame.duration_s.to_numpy() < 0, "duration_s", "seconds, 0 or more")
    repeated = frame.job_id.duplicated().to_numpy()
    refuse(path, frame, repeated, "job_id", "an id that no other row has")
    kept = frame[_keep(frame, filters, vcs)]
    if kept.empty:
        known = sorted(set(frame.vc))
        raise InputError(
            str(path),
            f"no row that passes the filters, of {len(frame)} (virtual clusters: {known[:20]})",
            "at least one job; widen the filters",
        )
    kept = kept.sort_values("submit_s", kind="stable", ignore_index=True)
    zero = kept.duration_s.to_numpy() == 0
    refuse(path, kept, zero, "duration_s", "a positive time; min_duration_s=1 drops such rows")
    start = kept.submit_s.iloc[0] if filters.start_s is None else filters.start_s
    kept["submit_s"] -= start
    kept["num_gpus"] = kept.num_gpus.astype(np.int64)
    return kept


def _keep(frame: pd.DataFrame, filters: Filters, vcs: Iterable[str] | None) -> pd.Series:
    """Return which rows pass the filters."""
    start = -np.inf if filters.start_s is None else filters.start_s
    end = np.inf if filters.end_s is None else filters.end_s
    keep = (frame.num_gpus > 0) & (frame.num_gpus <= filters.max_gpus)
    keep &= (frame.submit_s >= start) & (frame.submit_s < end)
    keep &= frame.duration_s.between(filters.min_duration_s, filters.max_duration_s)
    keep &= frame.num_gpus * frame.duration_s < filters.max_gpu_hours * 3600
    if vcs is not None:
        keep &= frame.vc.isin(set(vcs))
    return keep
