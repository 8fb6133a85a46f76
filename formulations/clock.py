"""The clock that building looks at: a long loop ends when the time of its decision is over.

A policy says when (`ending`); what it builds on the way, options, cases, genomes, placements, asks
at every step of a loop that grows with the jobs (`checkpoint`). Without an end nothing happens.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("ronda.end", default=float("inf"))


class OutOfTimeError(Exception):
    """The time of a decision is over; who set the end answers with what there is."""


def checkpoint() -> None:
    """Raise `OutOfTimeError` if the end has passed."""
    if time.perf_counter() > _END.get():
        raise OutOfTimeError


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
