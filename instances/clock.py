"""The clock of a decision: its deadline, and the checkpoints at which building stops.

A policy says when building ends (`ending`); the code that builds options, cases, genomes and
placements calls `checkpoint` at every step of a loop that grows with the jobs. Without an end
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
"""The most seconds that pass for a processor second on a busy machine."""


class Deadline:
    """The time that one decision may take for building, solving and extraction together.

    `limit_s` counts from `started`, the ``time.perf_counter()`` at entry, by default now; None is
    no limit. No time is left once `cancelled` is set.
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
        """Return a deadline as it is, or one in so many seconds, or one without a limit."""
        return limit_s if isinstance(limit_s, Deadline) else cls(limit_s)

    @property
    def end(self) -> float:
        """The end in ``time.perf_counter()``, infinite without a limit."""
        return float("inf") if self.limit_s is None else self.started + self.limit_s

    def elapsed(self) -> float:
        """Return the seconds since entry."""
        return time.perf_counter() - self.started

    def left(self) -> float:
        """Return the seconds left, at least 0, infinite without a limit."""
        if self.cancelled is not None and self.cancelled.is_set():
            return 0.0
        return float("inf") if self.limit_s is None else max(0.0, self.limit_s - self.elapsed())

    def sooner(self, seconds: float) -> "Deadline":
        """Return a deadline with the same entry that ends `seconds` earlier."""
        if self.limit_s is None:
            return self
        limit_s = max(self.limit_s - seconds, 1e-6)
        sooner = Deadline(limit_s, started=self.started, cancelled=self.cancelled)
        sooner._began = self._began
        return sooner

    def paced(self, work_s: float) -> float:
        """Return the seconds by the clock for some of a processor, which others share.

        They follow the pace since this deadline was made, and are at most `SLOWEST` times as many.
        """
        clock_s = time.perf_counter() - self._began[0]
        worked_s = process_time() - self._began[1]
        return work_s * min(max(1.0, clock_s / max(worked_s, 1e-9)), SLOWEST)

    def share(self, part: float) -> "Deadline":
        """Return a deadline with the same entry after a share of the remaining time."""
        return self if self.limit_s is None else self.sooner((1.0 - part) * self.left())

    def over(self) -> bool:
        """Return whether the time is used up."""
        return self.left() <= 0


BETWEEN = 128
"""The short steps between two looks at the clock, a millisecond or so."""

Item = TypeVar("Item")

_END: ContextVar[float] = ContextVar("ronda.end", default=float("inf"))
_CANCELLED: ContextVar[Event | None] = ContextVar("ronda.cancelled", default=None)


class OutOfTimeError(Exception):
    """The time of a decision is over; the caller that set the end answers with the best so far."""


def checkpoint() -> None:
    """Raise `OutOfTimeError` if the end has passed, or the decision was cancelled."""
    if time.perf_counter() > _END.get():
        raise OutOfTimeError
    cancelled = _CANCELLED.get()
    if cancelled is not None and cancelled.is_set():
        raise OutOfTimeError


def watched(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items of a loop with short steps, with a `checkpoint` at every `BETWEEN` of them."""
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
