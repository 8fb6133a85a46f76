"""The clock of a decision: its deadline, and the checkpoints at which building stops.

A policy sets the end of building with `ending`. The code that builds options, cases, genomes and
placements calls `checkpoint` at every step of a loop that grows with the jobs. Without an end,
`checkpoint` does nothing.
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
"""The most wall-clock seconds that a processor second may take on a busy machine."""


class Deadline:
    """The deadline of one decision, for building, solving and extraction together.

    `limit_s` counts from `started`, the ``time.perf_counter()`` at entry, by default now. None
    means no limit. No time is left once `cancelled` is set.
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
        """Return `limit_s` itself if it is a deadline, or else a new deadline."""
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
        """Return a deadline with the same start that ends `seconds` earlier."""
        if self.limit_s is None:
            return self
        limit_s = max(self.limit_s - seconds, 1e-6)
        sooner = Deadline(limit_s, started=self.started, cancelled=self.cancelled)
        sooner._began = self._began
        return sooner

    def paced(self, work_s: float) -> float:
        """Return the wall-clock seconds for `work_s` processor seconds on a shared machine.

        The ratio is that observed since the deadline was made, between 1 and `SLOWEST`.
        """
        clock_s = time.perf_counter() - self._began[0]
        worked_s = process_time() - self._began[1]
        return work_s * min(max(1.0, clock_s / max(worked_s, 1e-9)), SLOWEST)

    def share(self, part: float) -> "Deadline":
        """Return a deadline with the same start, after the share `part` of the remaining time."""
        return self if self.limit_s is None else self.sooner((1.0 - part) * self.left())

    def over(self) -> bool:
        """Return whether the time is used up."""
        return self.left() <= 0


BETWEEN = 128
"""The number of short steps between two looks at the clock, about a millisecond of work."""

Item = TypeVar("Item")

_END: ContextVar[float] = ContextVar("ronda.end", default=float("inf"))
_CANCELLED: ContextVar[Event | None] = ContextVar("ronda.cancelled", default=None)


class OutOfTimeError(Exception):
    """An expired decision time; the caller that set the end answers with the best result so far."""


def left_s() -> float:
    """Return the seconds until checkpoints raise, infinite if no end is set."""
    return _END.get() - time.perf_counter()


def checkpoint() -> None:
    """Raise `OutOfTimeError` if the end has passed, or the decision was cancelled."""
    if time.perf_counter() > _END.get():
        raise OutOfTimeError
    cancelled = _CANCELLED.get()
    if cancelled is not None and cancelled.is_set():
        raise OutOfTimeError


def watched(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items of a loop with short steps, and call `checkpoint` every `BETWEEN` items."""
    for i, item in enumerate(items):
        if not i % BETWEEN:
            checkpoint()
        yield item


@contextmanager
def ending(at: float) -> Iterator[None]:
    """Make checkpoints inside raise from the ``time.perf_counter()`` `at` on.

    The innermost end counts. Each thread and each task has its own end.
    """
    before = _END.set(at)
    try:
        yield
    finally:
        _END.reset(before)


@contextmanager
def cancellable(cancelled: Event) -> Iterator[None]:
    """Make checkpoints inside raise as soon as any thread sets `cancelled`."""
    before = _CANCELLED.set(cancelled)
    try:
        yield
    finally:
        _CANCELLED.reset(before)
