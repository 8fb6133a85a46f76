"""The results of a comparison on disk: one JSON line a run, only ever appended.

A line that a kill cut in half is dropped, and so is an older line of the same case.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from ronda.bench.runs.specs import KEY, Spec
from ronda.instances.errors import InputError
from ronda.instances.files.seal import BrokenSealError, seal, unseal, whole_lines
from ronda.instances.files.storage import load, naming

Line = TypeVar("Line")


class Status(StrEnum):
    """How a run ended."""

    OK = "OK"
    TIME = "TIME"  # it was still running at its time-out
    OOM = "OOM"  # it needed more memory than it may
    ERROR = "ERROR"


class Result(Spec, frozen=True, kw_only=True):
    """One run's line: what it was of, how and where it ended, and the limits that it ran under.

    `metrics` are the fields of `ronda run`, empty unless the run is `OK`; they are written beside
    the others on the line, not nested.
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

    def final(self, timeout_s: float | None, memory_mib: float | None) -> bool:
        """Tell whether to run again under these limits would only repeat the result."""
        if self.status is Status.TIME:
            return _as_tight(timeout_s, self.timeout_s)
        if self.status is Status.OOM:
            return _as_tight(memory_mib, self.memory_mib)
        return self.ok

    def to_line(self) -> dict[str, Any]:
        """Return the flat line: the fields and the metrics beside each other."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        metrics = fields.pop("metrics")
        return {**metrics, **msgspec.to_builtins(fields)}

    @classmethod
    def from_line(cls, text: bytes) -> "Result":
        """Rebuild a result from its flat line, sealed as `ResultsFile` writes it."""
        line = msgspec.json.decode(unseal(text), type=dict[str, Any])
        own = {key: line[key] for key in cls.__struct_fields__ if key in line}
        metrics = {key: value for key, value in line.items() if key not in own}
        return msgspec.convert(own | {"metrics": metrics}, type=cls)


def _as_tight(limit: float | None, old: float | None) -> bool:
    return old is None or (limit is not None and limit <= old)


def read_records(
    path: Path, kind: type[Line], expected: str, read: Callable[[bytes], Line] | None = None
) -> list[Line]:
    """Return the whole lines of a file of JSON lines; none if there is no file.

    What a sudden end left behind them is dropped. `read` makes a record of a line, if that is more
    than to decode it; `expected` says in an InputError what a line should have been.
    """
    decode = read or msgspec.json.Decoder(kind).decode
    records = []
    for number, text in enumerate(_lines(path), start=1):
        try:
            records.append(decode(text))
        except (msgspec.DecodeError, BrokenSealError) as error:
            raise InputError(f"{path} line {number}", str(error), expected) from None
    return records


def _lines(path: Path) -> list[bytes]:
    return whole_lines(load(path)) if path.exists() else []


class ResultsFile:
    """The file ``results.jsonl`` of a comparison; it need not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._whole = sum(len(line) + 1 for line in _lines(path))
        expected = "the line as it was written; without it, its run is made again"
        results = read_records(path, Result, expected, Result.from_line)
        self._latest = {result.key: result for result in results}

    def get(self, key: str) -> Result | None:
        """Return the latest result of a case."""
        return self._latest.get(key)

    def all(self) -> tuple[Result, ...]:
        """Return the latest result of every case, in the order in which they first came."""
        return tuple(self._latest.values())

    def append(self, result: Result) -> None:
        """Add a line and see it onto the disk."""
        line = seal(msgspec.json.encode(result.to_line())) + b"\n"
        mode = "r+b" if self.path.exists() else "wb"
        with naming(self.path), self.path.open(mode) as file:
            file.truncate(self._whole)
            file.seek(self._whole)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self._whole = file.tell()
        self._latest[result.key] = result
