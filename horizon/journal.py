"""The record of decisions from which a killed run resumes by replaying them, not solving again.

A journal is a text file: a header line that identifies the run, followed by one JSON line per
decision with its changes. Each line has a checksum of itself and the previous line, so that a
missing or altered decision is refused. An incomplete last line is dropped.

A plan's memory is written as the difference from the last plan's: 0 for an equal value, [value] for
a different one, and a dictionary of these if only parts of a dictionary differ.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress, filterfalse
from operator import is_not
from pathlib import Path
from typing import IO, Any

import msgspec

from ronda.instances.base import Record
from ronda.instances.errors import InputError
from ronda.instances.files.seal import BrokenSealError, checksum, seal, unseal, whole_lines
from ronda.instances.files.storage import label, naming
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.schedule import RoundRecord

FORMAT = "ronda/journal/3"


class Header(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The identity of a journal's run, all of which must agree before the run resumes."""

    format: str = "ronda/journal/2"  # the format of journals that do not state one
    instance: str
    fingerprint: str
    policy: str
    config: dict[str, Any]
    seed: int
    settings: dict[str, Any]
    version: str


class Change(Record, frozen=True, kw_only=True):
    """The changes that a plan makes."""

    held: dict[str, Allocation] = {}  # new allocations of jobs that start or change
    stopped: tuple[str, ...] = ()
    asleep: tuple[int, ...] = ()  # all nodes that sleep from now on


def change_of(held: Mapping[str, Allocation], plan: Plan, asleep: Iterable[int]) -> Change:
    """Return the changes that a plan makes to allocations and sleeping nodes."""
    new, rest = plan.allocations, asleep if plan.asleep is None else plan.asleep
    others = compress(new.items(), map(is_not, new.values(), map(held.get, new)))
    return Change(
        held={i: a for i, a in others if i not in held or not held[i].goes_on(a)},
        stopped=tuple(filterfalse(new.__contains__, held)),
        asleep=tuple(sorted(rest)),
    )


class Decision(Record, frozen=True, kw_only=True):
    """A decision: its change, the plan without allocations, and the record of the round.

    In the file, `memory` is the difference (see the module) for the plan's memory.
    """

    change: Change
    plan: Plan
    record: RoundRecord
    memory: Any = 0


def difference(new: Any, last: Any) -> Any:
    """Return the difference of plain values from earlier ones, in the order of the new ones."""
    if not isinstance(new, dict) or not isinstance(last, dict):
        return 0 if new == last else [new]
    parts = {key: difference(value, last.get(key, ...)) for key, value in new.items()}
    return 0 if list(new) == list(last) and all(p == 0 for p in parts.values()) else parts


def applied(change: Any, last: Any) -> Any:
    """Return the new values of a `difference` to the `last` ones."""
    if isinstance(change, dict):
        return {key: applied(part, last.get(key)) for key, part in change.items()}
    return last if change == 0 else change[0]


class Journal:
    """The decisions of a run on disk: replay the existing ones first, then append.

    Raises
    ------
    InputError
        If the file holds the decisions of a run with another header.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._encoder = msgspec.json.Encoder()
        self._memory: dict[str, Any] = {}
        self._last = ""  # the checksum of the last line
        self._old = self._load(header)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("r+b" if self._old is not None else "wb")
        except OSError as error:
            raise InputError(
                str(path), error.strerror or str(error), "a place that can be written to"
            ) from None
        if self._old is None:
            self._write(header)
        else:
            self._file.truncate(self._end)
            self._file.seek(self._end)

    def _load(self, header: Header) -> list[bytes] | None:
        """Return the complete decision lines of the file, or None if there is no journal yet."""
        if not self.path.exists():
            return None
        if not self.path.is_file():
            raise InputError(label(self.path), "no regular file", "a journal of ronda, or no file")
        lines = whole_lines(self.path.read_bytes())
        if not lines:
            return None
        try:
            body = unseal(lines[0])
            found = msgspec.json.decode(body, type=Header)
        except (msgspec.DecodeError, BrokenSealError):
            raise InputError(
                str(self.path), "a file of another kind", "a journal of ronda, or no file"
            ) from None
        ours, theirs = (msgspec.json.decode(self._encoder.encode(h)) for h in (header, found))
        for key in Header.__struct_fields__:
            if ours.get(key) != theirs.get(key):
                raise InputError(
                    str(self.path),
                    f"the journal of a run with {key} {theirs.get(key)!r}",
                    f"{key} {ours.get(key)!r}, or another output folder",
                )
        self._end = sum(len(line) + 1 for line in lines)
        self._last = checksum(body)
        return lines[1:]

    def replay(self) -> Iterator[Decision]:
        """Yield the decisions that the file held when it was opened."""
        decoder = msgspec.json.Decoder(Decision)
        for number, line in enumerate(self._old or (), start=2):
            try:
                body = unseal(line, self._last)
                decision = self._whole(decoder.decode(body))
            except (msgspec.DecodeError, BrokenSealError):
                raise self.refused(number) from None
            self._last = checksum(body, self._last)
            yield decision

    def refused(self, number: int) -> InputError:
        """Return the error for a line that does not hold the original decision."""
        found = "a decision that was changed, or follows one that is missing"
        expected = "the journal as it was written, or none: the run then starts again"
        return InputError(f"{label(self.path)} line {number}", found, expected)

    def append(self, decision: Decision) -> None:
        """Append a decision."""
        last, self._memory = self._memory, decision.plan.memory
        plan = msgspec.structs.replace(decision.plan, memory={})
        new = difference(self._memory, last)
        self._write(msgspec.structs.replace(decision, plan=plan, memory=new))

    def _whole(self, decision: Decision) -> Decision:
        self._memory = applied(decision.memory, self._memory)
        plan = msgspec.structs.replace(decision.plan, memory=self._memory)
        return msgspec.structs.replace(decision, plan=plan, memory=0)

    def _write(self, record: Record) -> None:
        body = self._encoder.encode(record)
        with naming(self.path):
            self._file.write(seal(body, self._last) + b"\n")
            self._file.flush()
        self._last = checksum(body, self._last)

    def close(self) -> None:
        """Flush everything to the disk and close the file."""
        with naming(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
