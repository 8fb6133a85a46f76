"""Threads in which solvers run, apart from those of the host.

HiGHS keeps helpers for each thread that calls it. Where a host has called it with another number of
helpers it refuses to run (an error, and no solution), and in a process that was forked meanwhile it
waits for helpers that are gone. In threads of their own host and library never meet.
"""

import os
from collections import defaultdict
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeAlias, TypeVar

from ronda.instances.errors import RondaError

Answer = TypeVar("Answer")


class SolverError(RondaError):
    """A solver failed for a reason of its own: what it has is neither a solution nor a proof."""


TURN_S = 0.5
"""Seconds after which a caller looks up from its wait."""

_Calls: TypeAlias = "SimpleQueue[_Call]"

_IDLE: defaultdict[tuple[int, int], list[_Calls]] = defaultdict(list)
"""What threads without work take calls from, by process and number of helpers."""


def apart(
    call: Callable[[], Answer], stop: Callable[[], object] = lambda: None, helpers: int = 1
) -> Answer:
    """Return what a call returns, or raise what it raises; it is made in a thread of its own.

    An interrupt of the caller, as by Ctrl-C, makes `stop` end the call; it is raised when the call
    has ended, and a second one at once. Calls with other `helpers` are made in other threads.
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
        made.wait()
    except BaseException:
        stop()
        made.wait()
        raise
    if made.error is not None:
        raise made.error
    return made.answer  # type: ignore[no-any-return]


class _Call:
    """A call that is made in one thread and awaited in another."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call, self.ended = call, Event()
        self.answer: Any = None
        self.error: BaseException | None = None

    def make(self) -> None:
        """Make the call, and keep what comes of it."""
        try:
            self.answer = self.call()
        except BaseException as raised:  # the caller's
            self.error = raised

    def wait(self) -> None:
        """Wait for its end; an interrupt just before a turn is heard after it."""
        while not self.ended.wait(TURN_S):
            pass


def _serve(calls: _Calls, idle: list[_Calls]) -> None:
    """Make one call after the other."""
    while True:
        made = calls.get()
        made.make()
        idle.append(calls)
        made.ended.set()
        del made  # and with it the solver
