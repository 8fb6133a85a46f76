"""Results on disk: one JSON line per run, in a file that is only appended to.

A line that a kill truncated is dropped, as is an older line for the same case. For other programs,
results are also one plain table: CSV, and optionally Parquet.
"""

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from ronda.bench.runs.specs import KEY, Spec
from ronda.instances.errors import InputError
from ronda.instances.files.seal import BrokenSealError, seal, unseal, whole_lines
from ronda.instances.files.storage import label, naming, read_bytes, write_bytes

Line = TypeVar("Line")

RESULTS = "results.jsonl"
"""The file of results in an output folder."""


class Status(StrEnum):
    """The state in which a run ended."""

    OK = "OK"
    TIME = "TIME"  # the run was still going at its time-out
    OOM = "OOM"  # the run exceeded its memory limit
    ERROR = "ERROR"


class Result(Spec, frozen=True, kw_only=True):
    """The line of a run: its case, its end, its machine, and the limits that it ran under.

    `metrics` are the known fields of `ronda run`; they are empty unless the run is `OK`. The line
    is flat, so the metrics stand next to the other fields.
    """

    key: Annotated[str, msgspec.Meta(pattern=KEY)]
    status: Status
    message: str = ""
    timeout_s: float | None = None
    memory_mib: float | None = None
    wall_s: float = 0.0
    peak_rss_mib: float = 0.0
    versions: dict[str, str] = {}
    host: dict[str, Any] = {}
    commit: str = ""
    metrics: dict[str, Any] = {}

    @property
    def ok(self) -> bool:
        """Whether the run ended with a schedule."""
        return self.status is Status.OK

    @property
    def fault(self) -> str:
        """A description of what went wrong; empty if the run ended and kept every rule."""
        if not self.ok:
            return f"{self.status} {self.message}".strip()
        broken = self.metrics.get("violations")
        return f"{broken} violations" if broken else ""

    def final(self, timeout_s: float | None, memory_mib: float | None) -> bool:
        """Return whether another run under the given limits would only repeat the result."""
        if self.status is Status.TIME:
            return _as_tight(timeout_s, self.timeout_s)
        if self.status is Status.OOM:
            return _as_tight(memory_mib, self.memory_mib)
        return self.ok

    def to_line(self) -> dict[str, Any]:
        """Return the flat line: the fields and the metrics next to each other."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        metrics = fields.pop("metrics")
        return {**metrics, **msgspec.to_builtins(fields)}

    @classmethod
    def from_line(cls, text: bytes) -> "Result":
        """Rebuild a result from its flat line."""
        line = msgspec.json.decode(text, type=dict[str, Any])
        own = {key: line[key] for key in cls.__struct_fields__ if key in line}
        metrics = {k: v for k, v in line.items() if k not in own and v is not None}
        return msgspec.convert(own | {"metrics": metrics}, type=cls)


def _as_tight(limit: float | None, old: float | None) -> bool:
    return old is None or (limit is not None and limit <= old)


class SealedLines(Generic[Line]):
    """A file of JSON lines with checksums that is only appended to; it need not exist yet.

    `key` returns the subject of a line; the latest line for a subject counts. `read` turns a line
    into a record, and `fields` returns the values to write for a record. `expected` is the
    expectation stated in the InputError for an invalid line.
    """

    def __init__(
        self,
        path: Path,
        expected: str,
        key: Callable[[Line], Any],
        read: Callable[[bytes], Line] = msgspec.json.decode,
        fields: Callable[[Line], Any] = lambda line: line,
    ) -> None:
        self.path, self._key, self._fields = path, key, fields
        self._latest: dict[Any, Line] = {}
        lines = whole_lines(read_bytes(path)) if path.exists() else []
        self._whole = sum(len(line) + 1 for line in lines)
        for number, text in enumerate(lines, start=1):
            try:
                line = read(unseal(text))
            except (msgspec.DecodeError, BrokenSealError) as error:
                raise InputError(f"{path} line {number}", str(error), expected) from None
            self._latest[key(line)] = line

    def get(self, key: Any) -> Line | None:
        """Return the latest line for a key."""
        return self._latest.get(key)

    def all(self) -> tuple[Line, ...]:
        """Return the latest line for every key, in the order in which the keys first appeared."""
        return tuple(self._latest.values())

    def append(self, line: Line) -> None:
        """Add a line and flush it to the disk."""
        text = seal(msgspec.json.encode(self._fields(line))) + b"\n"
        mode = "r+b" if self.path.exists() else "wb"
        with naming(self.path), self.path.open(mode) as file:
            file.truncate(self._whole)
            file.seek(self._whole)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            self._whole = file.tell()
        self._latest[self._key(line)] = line


def results_of(folder: Path) -> SealedLines[Result]:
    """Return the results of a comparison."""
    expected = "the line as it was written; without it, its run is made again"
    path = folder / RESULTS
    return SealedLines(path, expected, attrgetter("key"), Result.from_line, Result.to_line)


def results_in(folder: Path) -> tuple[Result, ...]:
    """Return the results in a folder; raise InputError if it has none."""
    if not (folder / RESULTS).exists():
        expected = "a folder of results, as of ronda compare"
        raise InputError(label(folder), f"no {RESULTS}", expected)
    found = results_of(folder).all()
    if not found:
        raise InputError(label(folder / RESULTS), "no whole line", "a line a run")
    return found


ABOUT = (
    *("key", "instance", "policy", "label", "level", "seed", "status", "message"),
    *("wall_s", "peak_rss_mib", "commit"),
)
"""Columns that describe a run, in addition to its figures and the change to its instance."""


def records(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return a row for each run, all with the same columns; a missing value is None.

    `policy` is the policy as the user wrote it, like `label`, so two variants of a policy differ.
    Numbers have no units: the suffix of a column's name is its unit (``_s``, ``_j``, ``_mib``).
    Lists, such as the incumbents of a search, are left out.
    """
    found = []
    for run in results:
        about = {name: getattr(run, name) for name in ABOUT} | {"change": run.variant.title}
        figures = {n: v for n, v in run.metrics.items() if isinstance(v, str | int | float)}
        named = {"policy": run.label, "version": run.versions.get("ronda", "")}
        found.append(about | figures | named)
    names = dict.fromkeys(name for row in found for name in row)
    for row in found:
        row |= {n: None for n, v in row.items() if isinstance(v, float) and not isfinite(v)}
    return [{name: row.get(name) for name in names} for row in found]


def write_runs(results: Sequence[Result], folder: Path, *, parquet: bool) -> None:
    """Write ``results.csv`` into a folder, and with `parquet` also ``results.parquet``."""
    rows = records(results)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]] if rows else ABOUT)
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(folder / "results.csv", text.getvalue().encode())
    if parquet:
        import pyarrow
        from pyarrow.parquet import write_table

        data = io.BytesIO()
        write_table(pyarrow.Table.from_pylist(rows), data)
        write_bytes(folder / "results.parquet", data.getvalue())
