"""The record of decisions that lets a killed run go on: replayed, not solved again.

A journal is a text file: a header line that names the run, then one JSON line a decision, holding
what changed. Each line has a checksum of itself and the line before, so that a missing or altered
decision is refused. What a sudden end left of a last line is dropped.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
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


class Header(Record, frozen=True, kw_only=True):
    """Which run a journal belongs to: all of it must agree before the run goes on."""

    format: str = "ronda/journal/2"
    instance: str
    fingerprint: str
    policy: str
    config: dict[str, Any]
    seed: int
    settings: dict[str, Any]
    version: str


class Change(Record, frozen=True, kw_only=True):
    """The difference that a plan makes."""

    held: dict[str, Allocation] = {}  # jobs that start or change, with what they now hold
    stopped: tuple[str, ...] = ()
    asleep: tuple[int, ...] = ()  # all nodes that sleep from now on


def change_of(held: Mapping[str, Allocation], plan: Plan, asleep: Iterable[int]) -> Change:
    """Return what a plan changes of what jobs hold and which nodes are asleep."""
    new, rest = plan.allocations, asleep if plan.asleep is None else plan.asleep
    return Change(
        held={i: a for i, a in new.items() if i not in held or not held[i].goes_on(a)},
        stopped=tuple(i for i in held if i not in new),
        asleep=tuple(sorted(rest)),
    )


class Decision(Record, frozen=True, kw_only=True):
    """One decision: its change, the plan without allocations, and the record of the round.

    In the file, `same` names the plan's details that are the very objects of the last decision's:
    they are not written again.
    """

    change: Change
    plan: Plan
    record: RoundRecord
    same: tuple[str, ...] = ()


class Journal:
    """Decisions of a run on disk: first replay what is there, then append.

    Raises
    ------
    InputError
        If the file holds the decisions of another run than the header's.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._encoder = msgspec.json.Encoder()
        self._details: dict[str, Any] = {}
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
        """Return the whole lines of decisions in the file, or None if there is no journal yet."""
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
            except (msgspec.DecodeError, BrokenSealError, KeyError):
                raise self.refused(number) from None
            self._last = checksum(body, self._last)
            yield decision

    def refused(self, number: int) -> InputError:
        """Return the error that a line is not the decision that was made there."""
        found = "a decision that was changed, or follows one that is missing"
        expected = "the journal as it was written, or none: the run then starts again"
        return InputError(f"{label(self.path)} line {number}", found, expected)

    def append(self, decision: Decision) -> None:
        """Write one more decision."""
        last, self._details = self._details, decision.plan.details
        same = tuple(k for k, value in self._details.items() if k in last and last[k] is value)
        if same:
            fewer = {k: v for k, v in self._details.items() if k not in set(same)}
            plan = msgspec.structs.replace(decision.plan, details=fewer)
            decision = msgspec.structs.replace(decision, plan=plan, same=same)
        self._write(decision)

    def _whole(self, decision: Decision) -> Decision:
        """Return a decision with the details that were not written again."""
        details = {key: self._details[key] for key in decision.same} | decision.plan.details
        self._details = details
        plan = msgspec.structs.replace(decision.plan, details=details)
        return msgspec.structs.replace(decision, plan=plan, same=())

    def _write(self, record: Record) -> None:
        body = self._encoder.encode(record)
        with naming(self.path):
            self._file.write(seal(body, self._last) + b"\n")
            self._file.flush()
        self._last = checksum(body, self._last)

    def close(self) -> None:
        """Write everything to the disk."""
        with naming(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
