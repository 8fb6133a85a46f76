"""Threads in which solvers run, apart from those of the host.

HiGHS keeps helpers for each thread that calls it. Where a host has called it with another number of
helpers it refuses to run (an error, and no solution), and in a process that was forked meanwhile it
waits for helpers that are gone. In threads of their own host and library never meet.
"""

import atexit
import os
import time
from collections import defaultdict
from collections.abc import Callable
from math import inf
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

from ronda.instances.errors import RondaError

Answer = TypeVar("Answer")


class SolverError(RondaError):
    """A solver failed for a reason of its own: what it has is neither a solution nor a proof."""


TURN_S = 0.5
"""Seconds after which a caller looks up from its wait."""

_LEFT: "WeakSet[_Call]" = WeakSet()
"""Calls that were left alone, while they go on."""

_Calls: TypeAlias = "SimpleQueue[_Call]"

_IDLE: defaultdict[tuple[int, int], list[_Calls]] = defaultdict(list)
"""What threads without work take calls from, by process and number of helpers."""


def apart(
    call: Callable[[], Answer],
    stop: Callable[[], object] = lambda: None,
    helpers: int = 1,
    seconds: float = inf,
) -> Answer:
    """Return what a call returns, or raise what it raises; it is made in a thread of its own.

    An interrupt of the caller, as by Ctrl-C, makes `stop` end the call; it is raised when the call
    has ended, and a second one at once. Calls with other `helpers` are made in other threads.
    TimeoutError if the call has not ended after some seconds: it is told to stop and left alone.
    """
    idle = _IDLE[os.getpid(), helpers]
    try:
        calls = idle.pop()
    except IndexError:
        calls = SimpleQueue()
        Thread(target=_serve, args=(calls, idle), name="ronda-solver", daemon=True).start()
    made = _Call(call)
    calls.put(made)
    try:
        in_time = made.wait(seconds)
    except BaseException:
        stop()
        made.wait()
        raise
    if not in_time:
        stop()
        _LEFT.add(made)
        raise TimeoutError
    if made.error is not None:
        raise made.error
    return made.answer  # type: ignore[no-any-return]


class _Call:
    """A call that is made in one thread and awaited in another."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call, self.ended, self.process = call, Event(), os.getpid()
        self.answer: Any = None
        self.error: BaseException | None = None

    def wait(self, seconds: float = inf) -> bool:
        """Wait for its end, in turns, as an interrupt just before one is heard after it."""
        end = time.monotonic() + seconds
        while not self.ended.wait(max(0.0, min(TURN_S, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return True


def _serve(calls: _Calls, idle: list[_Calls]) -> None:
    """Make one call after the other."""
    while True:
        made = calls.get()
        try:
            made.answer = made.call()
        except BaseException as raised:  # the caller's
            made.error = raised
        idle.append(calls)
        made.ended.set()
        del made  # and with it the solver


def left_alone() -> list[_Call]:
    """Return the calls of this process that were left alone and still go on."""
    return [made for made in _LEFT if made.process == os.getpid() and not made.ended.is_set()]


@atexit.register
def _wait() -> None:
    """Let calls end before the interpreter does: they would meet it half taken down."""
    for made in left_alone():
        made.wait()
