"""The clock of a decision: how long it may take, and where building looks whether that is over.

A policy says when building ends (`ending`); what it builds on the way, options, cases, genomes,
placements, asks at every step of a loop that grows with the jobs (`checkpoint`). Without an end
nothing happens.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from time import process_time
from typing import TypeVar

from ronda.instances.arguments import checked
from ronda.instances.base import Positive

SLOWEST = 20.0
"""How many seconds may pass for one of a processor on a machine that is taken for busy."""


class Deadline:
    """The time that one decision may take: building, solving and extraction together.

    `limit_s` counts from `started`, ``time.perf_counter()`` at entry (None: now); None: no limit.
    Nothing is left once `cancelled` is set, whatever the limit.
    """

    @checked
    def __init__(
        self,
        limit_s: Positive | None = None,
        *,
        started: float | None = None,
        cancelled: Event | None = None,
    ) -> None:
        self.limit_s = limit_s
        self.cancelled = cancelled
        self.started = time.perf_counter() if started is None else started
        self._began = time.perf_counter(), process_time()

    @classmethod
    def of(cls, limit_s: "Deadline | float | None") -> "Deadline":
        """Return a deadline as it is given, one of so many seconds from now, or none at all."""
        return limit_s if isinstance(limit_s, Deadline) else cls(limit_s)

    @property
    def end(self) -> float:
        """When it ends, in ``time.perf_counter()``; infinite without a limit."""
        return float("inf") if self.limit_s is None else self.started + self.limit_s

    def elapsed(self) -> float:
        """Return the seconds since entry."""
        return time.perf_counter() - self.started

    def left(self) -> float:
        """Return the seconds that are left (infinite without a limit, never below 0)."""
        if self.cancelled is not None and self.cancelled.is_set():
            return 0.0
        return float("inf") if self.limit_s is None else max(0.0, self.limit_s - self.elapsed())

    def sooner(self, seconds: float) -> "Deadline":
        """Return a deadline of the same entry that ends `seconds` before this one."""
        if self.limit_s is None:
            return self
        limit_s = max(self.limit_s - seconds, 1e-6)
        sooner = Deadline(limit_s, started=self.started, cancelled=self.cancelled)
        sooner._began = self._began
        return sooner

    def paced(self, work_s: float) -> float:
        """Return the seconds that some of a processor take by the clock, as others share it.

        That is at the pace since this deadline was made, and at most `SLOWEST` times as long.
        """
        clock_s = time.perf_counter() - self._began[0]
        worked_s = process_time() - self._began[1]
        return work_s * min(max(1.0, clock_s / max(worked_s, 1e-9)), SLOWEST)

    def share(self, part: float) -> "Deadline":
        """Return a deadline of the same entry that ends when a share of what is left is over."""
        return self if self.limit_s is None else self.sooner((1.0 - part) * self.left())

    def over(self) -> bool:
        """Return whether the time is used up."""
        return self.left() <= 0


BETWEEN = 128
"""Short steps between two looks at the clock: a millisecond or so."""

Item = TypeVar("Item")

_END: ContextVar[float] = ContextVar("ronda.end", default=float("inf"))
_CANCELLED: ContextVar[Event | None] = ContextVar("ronda.cancelled", default=None)


class OutOfTimeError(Exception):
    """The time of a decision is over; who set the end answers with what there is."""


def checkpoint() -> None:
    """Raise `OutOfTimeError` if the end has passed, or the decision was cancelled."""
    if time.perf_counter() > _END.get():
        raise OutOfTimeError
    cancelled = _CANCELLED.get()
    if cancelled is not None and cancelled.is_set():
        raise OutOfTimeError


def watched(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, with a `checkpoint` at every `BETWEEN` of them: for steps that take little."""
    for i, item in enumerate(items):
        if not i % BETWEEN:
            checkpoint()
        yield item


@contextmanager
def ending(at: float) -> Iterator[None]:
    """Let checkpoints inside raise from `at` on, in ``time.perf_counter()``; the inner end counts.

    Each thread and each task has an end of its own.
    """
    before = _END.set(at)
    try:
        yield
    finally:
        _END.reset(before)


@contextmanager
def cancellable(cancelled: Event) -> Iterator[None]:
    """Let checkpoints inside raise as soon as `cancelled` is set, by any thread."""
    before = _CANCELLED.set(cancelled)
    try:
        yield
    finally:
        _CANCELLED.reset(before)
