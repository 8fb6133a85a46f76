"""Threads in which solvers run, apart from those of the host.

HiGHS keeps helper threads for each thread that calls it. It fails if the same thread has called it
with another number of helpers. In a forked process it waits for helpers that no longer exist. With
separate threads for solvers, the host's own calls of HiGHS do not interfere.
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
    """The failure of a solver for a reason of its own, without a solution or a proof."""


TURN_S = 0.5
"""The seconds between two checks of a waiting caller for interrupts."""

_LEFT: "WeakSet[_Call]" = WeakSet()
"""The running calls for which callers no longer wait."""

_Calls: TypeAlias = "SimpleQueue[_Call]"

_IDLE: defaultdict[tuple[int, int], list[_Calls]] = defaultdict(list)
"""The queues of idle threads, keyed by process and number of helpers."""


def apart(
    call: Callable[[], Answer],
    stop: Callable[[], object] = lambda: None,
    helpers: int = 1,
    seconds: float = inf,
) -> Answer:
    """Return the result of a call in another thread, or raise its exception.

    An interrupt of the caller, such as Ctrl-C, calls `stop`, and is raised when the call has ended.
    A second interrupt is raised immediately. Calls with other `helpers` run in other threads.
    Raises TimeoutError if the call has not ended after `seconds`. In that case `stop` is called,
    and the caller no longer waits for the end.
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
        """Wait for the end in short turns, so that an interrupt is noticed soon."""
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
        except BaseException as raised:  # for the caller
            made.error = raised
        idle.append(calls)
        made.ended.set()
        del made  # this frees the solver too


def left_alone() -> list[_Call]:
    """Return the calls of this process that still run after their callers stopped waiting."""
    return [made for made in _LEFT if made.process == os.getpid() and not made.ended.is_set()]


@atexit.register
def _wait() -> None:
    for made in left_alone():
        made.wait()
