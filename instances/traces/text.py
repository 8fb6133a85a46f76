"""Text files as rows of cells, and cells as numbers and times, for all tables.

A row is a line. A row with more or fewer cells than the header is refused, as its cells cannot be
matched to column names.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, read_bytes, unpack
from ronda.instances.traces.columns import CSV, Dialect

Row = tuple[int, list[str]]
"""A line number of the file, and the cells of the line."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_DAY = r"(?:19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}"
_DATE = rf"^({_DAY}(?:[T ]{_CLOCK})?) ?(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?$"
_MINUTES = r"^([0-9]{1,7}):([0-5][0-9](?:\.[0-9]+)?)$"
_PASSED = r"^(?:([0-9]{1,5})-)?([0-9]{1,7}):([0-5][0-9]):([0-5][0-9](?:\.[0-9]+)?)$"


def read_cells(path: str | Path, dialect: Dialect = CSV) -> pd.DataFrame:
    """Read a plain or compressed text file; raise an InputError if its lines are not table rows."""
    return cells(read_bytes(Path(path)), label(path), dialect)


def cells(data: bytes, place: str, dialect: Dialect = CSV) -> pd.DataFrame:
    """Return the rows in a file's bytes; `place` names the file in errors."""
    rows = _rows(data, place, dialect)
    _, first = next(rows, (0, []))
    if not first:
        raise InputError(place, "an empty file", "a CSV file with a header")
    names = first if dialect.header else [str(k) for k in range(1, len(first) + 1)]
    if not dialect.header:
        rows = _rows(data, place, dialect)
    as_in = "header" if dialect.header else "first row"
    whole = list(_as_wide(rows, len(first), place, as_in))
    frame = pd.DataFrame([row for _, row in whole], columns=names, dtype=str)
    return frame.set_axis([n for n, _ in whole])


def only(frame: pd.DataFrame, name: str, place: str) -> pd.Series:
    """Return the only column with a name, or raise an InputError if there are two."""
    if (times := int((frame.columns == name).sum())) > 1:
        raise InputError(f"{place}, header", f"{times} columns {name!r}", "one")
    return frame[name]


def _rows(data: bytes, place: str, dialect: Dialect) -> Iterator[Row]:
    """Yield the cells of all lines that are not empty and not comments."""
    data = unpack(data, place)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}, which is no UTF-8"
        expected = "a CSV file with a header, in UTF-8 (iconv converts others)"
        raise InputError(f"{place}, row {row}", found, expected) from None
    begun = False
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if not line.strip() or (not begun and line.startswith(dialect.comment)):
            continue
        begun = dialect.separator is not None
        yield number, _cut(line, dialect, f"{place}, row {number}")


def _cut(line: str, dialect: Dialect, place: str) -> list[str]:
    """Return the cells of a line, or refuse a line whose quotes do not match."""
    if not dialect.quotes or '"' not in line:
        return line.split(dialect.separator)
    try:
        return next(csv.reader((line,), delimiter=dialect.separator or " ", strict=True))
    except csv.Error:
        expected = "cells whose quotes end on the same line, before a separator"
        raise InputError(place, "a quote that does not end a cell", expected) from None


def _as_wide(rows: Iterable[Row], width: int, place: str, as_in: str) -> Iterator[Row]:
    """Yield rows with `width` cells, and refuse the first row with another number."""
    for number, row in rows:
        if len(row) != width:
            last = "" if row[-1].strip() else ", the last one empty"
            expected = f"{width}, as in the {as_in}"
            raise InputError(f"{place}, row {number}", f"{len(row)} cells{last}", expected)
        yield number, row


def numbers(text: pd.Series) -> pd.Series:
    """Return cells as finite numbers, NaN where there is none."""
    return pd.Series([number(cell) for cell in text], text.index, dtype=float)


def number(cell: str) -> float:
    """Return a cell as a finite number, or NaN."""
    cell = cell.strip()
    value = float(cell) if _NUMBER.fullmatch(cell) else np.nan
    return value if np.isfinite(value) else np.nan


def passed(text: pd.Series, *, slurm: bool = False) -> pd.Series:
    """Return durations such as ``1-02:03:04`` (days, hours, minutes, seconds) as seconds, or NaN.

    In Slurm's format ``90:00`` means minutes and seconds, and ``2-12`` or ``2-12:30`` days and
    hours.
    """
    told = text.str.strip()
    if slurm:
        told = told.str.replace(r"^([0-9]+-[0-9]+)$", r"\1:00", regex=True)
        told = told.str.replace(r"^([0-9]+-[0-9]+:[0-9]+)$", r"\1:00", regex=True)
    parts = told.str.extract(_PASSED)
    days, hours, minutes, seconds = (pd.to_numeric(parts[k]) for k in range(4))
    found = (((days.fillna(0.0) * 24 + hours) * 60 + minutes) * 60 + seconds).astype(float)
    short = told.str.extract(_MINUTES).astype(float)
    return found.fillna(short[0] * 60 + short[1]) if slurm else found


def dates(text: pd.Series, zone: ZoneInfo, *, later: bool = False) -> pd.Series:
    """Return ISO 8601 dates as seconds since 1970, NaN where there is none.

    A date without a UTC offset is in the given `zone`. In an hour that occurs twice (a clock
    change), it means the first or the `later` occurrence. A date in an hour that does not exist is
    NaN.
    """
    parts = text.str.strip().str.extract(_DATE)
    local = pd.to_datetime(parts[0], errors="coerce", format="ISO8601")
    first = np.full(len(local), not later)
    there = local.dt.tz_localize(zone, ambiguous=first, nonexistent="NaT")
    away = parts[1].fillna("").replace("Z", "+00:00")
    told = (away != "").to_numpy()
    ahead = away.where(away != "", "+00:00").str.replace(":", "")
    ahead_s = pd.to_numeric(ahead.str[1:3]) * 3600 + pd.to_numeric(ahead.str[3:]) * 60
    ahead_s = ahead_s.where(ahead.str[0] == "+", -ahead_s)
    utc_s = (local - pd.Timestamp(0)).dt.total_seconds() - ahead_s
    there_s = (there - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return utc_s.where(told, there_s)
