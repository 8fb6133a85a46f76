"""Readers of plain columns and values from dicts, numpy arrays and data frames of hosts.

No frame library is imported: any object with ``columns`` and ``frame[name]`` is a frame.
"""

from collections.abc import Iterable, Mapping, Sequence
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import one_of, show

Columns = dict[str, NDArray[Any]]
"""Arrays of equal length, keyed by name."""


def is_frame(given: object) -> bool:
    """Return whether an object is a data frame, such as one of pandas or polars."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def columns_of(
    given: object, place: str, required: Sequence[str], optional: Sequence[str]
) -> Columns:
    """Return the columns of a frame or of a mapping of arrays; a single value fills all rows.

    InputError names `place` and the column if a column is missing, unknown or of another length.
    """
    if not is_frame(given) and not isinstance(given, Mapping):
        raise InputError(place, type(given).__name__, "a data frame, or columns by name")
    found, known = dict(_columns(given)), list(dict.fromkeys((*required, *optional)))
    for name in found:
        if name not in known:
            raise InputError(place, f"unknown column {show(name)}", one_of(known))
    for name in required:
        if name not in found:
            raise InputError(place, f"no column {show(name)}", f"columns {', '.join(required)}")
    return _even(found.items(), place)


def _columns(given: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(given, Mapping):
        return given.items()
    return ((str(name), given[name]) for name in given.columns)


def _even(columns: Iterable[tuple[str, Any]], place: str) -> Columns:
    """Return columns as arrays of equal length; a single value fills all rows."""
    arrays = {name: array(column) for name, column in columns}
    lengths = {len(array) for array in arrays.values() if array.ndim}
    if len(lengths) > 1:
        told = ", ".join(f"{len(a)} {name}" for name, a in arrays.items() if a.ndim)
        raise InputError(place, f"columns of {told}", "columns of one length")
    rows = lengths.pop() if lengths else 1
    return {n: a if a.ndim else np.repeat(a[None], rows) for n, a in arrays.items()}


def array(column: Any) -> NDArray[Any]:
    """Return a column as an array of at most one dimension."""
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy())
    try:
        found = np.asarray(column)
    except ValueError:  # rows of different lengths
        found = np.empty((1, 1))
    return found if found.ndim < 2 else np.fromiter(column, dtype=object)


def numbers(
    columns: Columns, name: str, place: str, *, whole: bool = False, missing: bool = False
) -> Floats:
    """Return a column as finite floats; InputError names the first other value.

    `whole` requires whole numbers, and `missing` allows NaN.
    """
    column, expected = columns[name], "a whole number" if whole else "a finite number"
    try:
        values = column.astype(float)
    except (TypeError, ValueError):
        values = np.array([_number(value) for value in column.tolist()])
    odd = np.isinf(values) | (np.isnan(values) & (not missing))
    if whole:
        odd |= values != np.floor(values)
    if odd.any():
        row = int(np.argmax(odd))
        raise InputError(f"{place}, column {name}, row {row}", show(plain(column[row])), expected)
    return values


def _number(value: Any) -> float:
    """Return a value as a float: infinity if it is not a number, NaN for None."""
    try:
        return np.nan if value is None else float(value)
    except (TypeError, ValueError):
        return np.inf


def plain(value: Any) -> Any:
    """Return a value without numpy types: as numbers, strings, lists and dicts."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)  # frames turn integers into floats if one is missing
    if isinstance(value, Mapping):
        keys = (key.item() if isinstance(key, np.generic) else key for key in value)
        return dict(zip(keys, map(plain, value.values()), strict=True))
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def amount(value: object, place: str, expected: str = "a number, 0 or more") -> float:
    """Return a finite number >= 0; raise InputError for anything else."""
    found = plain(value)
    if (
        isinstance(found, bool)
        or not isinstance(found, int | float)
        or not 0 <= found <= float_info.max
    ):
        raise InputError(place, show(found), expected)
    return float(found)


def by_name(given: object, place: str) -> dict[Any, Any]:
    """Return a mapping keyed by jobs, nodes or models; raise InputError for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(place, type(given).__name__, "a dict by name")
    return dict(given)


def ids_of(given: object, place: str) -> list[Any]:
    """Return the ids of jobs; raise InputError if they are not a list."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(place, type(given).__name__, "a list of the ids of jobs")
    return list(given)


def rows_of(given: object, place: str) -> list[dict[str, Any]]:
    """Return rows keyed by column, without the missing cells of a frame."""
    if is_frame(given):
        columns = {n: column.tolist() for n, column in _even(_columns(given), place).items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return [{k: v for k, v in row.items() if not _is_missing(v)} for row in rows]
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(given, Iterable):
        return [_row(row, f"{place}[{k}]") for k, row in enumerate(given)]
    raise InputError(place, type(given).__name__, "a list of dicts, or a data frame")


def _row(row: object, place: str) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    raise InputError(place, type(row).__name__, "a dict")


def _is_missing(value: Any) -> bool:
    return value is None or (np.ndim(value) == 0 and bool(value != value))  # NaN, NaT
