"""Threads in which solvers run, apart from those of the host.

HiGHS keeps helpers for each thread that calls it. If a host has called it with another number of
helpers it fails, and in a process that was forked meanwhile it waits for helpers that are gone.
With threads for solvers alone, host and library do not meet.
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
    """A solver failed for a reason of its own, without a solution or a proof."""


TURN_S = 0.5
"""The seconds after which a caller looks for interrupts."""

_LEFT: "WeakSet[_Call]" = WeakSet()
"""The running calls that were left alone."""

_Calls: TypeAlias = "SimpleQueue[_Call]"

_IDLE: defaultdict[tuple[int, int], list[_Calls]] = defaultdict(list)
"""The queues of threads without work, by process and number of helpers."""


def apart(
    call: Callable[[], Answer],
    stop: Callable[[], object] = lambda: None,
    helpers: int = 1,
    seconds: float = inf,
) -> Answer:
    """Return the result of a call in another thread, or raise its exception.

    An interrupt of the caller, as by Ctrl-C, makes `stop` end the call; it is raised when the call
    has ended, and a second one at once. Calls with other `helpers` are made in other threads.
    TimeoutError if the call has not ended after some seconds; then it must stop, and is left alone.
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
    def __init__(self, call: Callable[[], object]) -> None:
        self.call, self.ended, self.process = call, Event(), os.getpid()
        self.answer: Any = None
        self.error: BaseException | None = None

    def wait(self, seconds: float = inf) -> bool:
        """Wait for the end in turns, so that an interrupt is heard soon."""
        end = time.monotonic() + seconds
        while not self.ended.wait(max(0.0, min(TURN_S, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return True


def _serve(calls: _Calls, idle: list[_Calls]) -> None:
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
    """Return the calls of this process that were left alone and still run."""
    return [made for made in _LEFT if made.process == os.getpid() and not made.ended.is_set()]


@atexit.register
def _wait() -> None:
    for made in left_alone():
        made.wait()
