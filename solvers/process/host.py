"""The host's end of another process."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import IO

import psutil

from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.errors import InputError, RondaError
from ronda.solvers.process.child import ANSWER

POLL_S = 0.05
"""Seconds between two looks at whether a question was cancelled."""

LOOK_S = 0.2
"""Seconds between two looks at its memory."""

ENDS_S = 5.0
"""Seconds that a process may take to end by itself once it has hung up."""


class ProcessDiedError(RondaError):
    """A process died, gave no answer in time, or held too much memory."""


class LateAnswerError(ProcessDiedError):
    """A process gave no answer in time."""


class MemoryHeldError(ProcessDiedError):
    """A process held more memory than it may."""


class StartingError(RondaError):
    """A process is not ready yet, and goes on starting."""


def with_grace(limit_s: float | None) -> float | None:
    """Return when to give up an answer that should be there within a limit, in seconds."""
    return None if limit_s is None else 1.5 * limit_s + 1.0


class Process:
    """A process that answers questions, one after the other.

    It begins to start at once, and leads a session of its own: Ctrl-C is the host's, and a kill
    reaches all that the process started. It ends with its host, whatever that dies of.

    Parameters
    ----------
    maker
        Function that is called there, as ``module:function``. It takes `asked`, and a function
        that tells the host something before an answer; it returns what answers bytes with bytes.
    asked
        What the maker gets.
    told
        Called with what is told before an answer.
    between
        Called now and then while an answer is waited for; what it raises ends the waiting.
    memory_mib
        Most memory of the process and all that it started in MiB, resident; ``peak_rss_mib`` is
        the most that was seen. None: nobody looks.
    output
        File for all that it prints; None: stderr.
    environment
        Variables of its environment that differ from this one.
    """

    def __init__(
        self,
        maker: str,
        asked: bytes = b"",
        *,
        told: Callable[[bytes], None] | None = None,
        between: Callable[[], None] = checkpoint,
        memory_mib: float | None = None,
        output: IO[bytes] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._told, self._between = told, between
        self._memory_mib, self.peak_rss_mib, self._looked_s = memory_mib, 0.0, 0.0
        self._pipe, theirs = Pipe()
        lifeline, self._held = Pipe(duplex=False)
        with theirs, lifeline:
            inherited = theirs.fileno(), lifeline.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ronda.solvers.process.child", *map(str, inherited), maker],
                stdin=subprocess.DEVNULL,
                stdout=output or 2,  # what a solver prints is no answer
                stderr=output,
                env=os.environ | dict(environment or {}),
                pass_fds=inherited,
                start_new_session=True,
            )
        self._ready = False
        self._send(pickle.dumps((sys.path, asked)))

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    def ready(self, deadline: Deadline) -> None:
        """Wait until it can answer.

        Raises
        ------
        StartingError
            If it cannot by the deadline; it goes on starting.
        InputError
            If what answers cannot be made there.
        ProcessDiedError
            If it died, or held too much memory.
        """
        if self._ready:
            return
        said = self._heard(deadline)
        if said is None:
            raise StartingError(f"its process has not started within {deadline.limit_s:.3g} s")
        if said:
            raise InputError("policy", said.decode(), "one that another process can make")
        self._ready = True

    def ask(self, question: bytes, limit_s: float | None) -> bytes:
        """Return the answer to a question.

        Raises
        ------
        ProcessDiedError
            If it died, gave no answer within `limit_s`, or held too much memory: it must be killed
            then.
        """
        self._send(question)
        answer = self._heard(Deadline(limit_s))
        if answer is None:
            raise LateAnswerError(f"its process gave no answer within {limit_s:.3g} s")
        return answer

    def kill(self) -> None:
        """Kill it with all that it started, and wait for its end."""
        with suppress(ProcessLookupError, PermissionError):  # all of them have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _send(self, data: bytes) -> None:
        try:
            self._pipe.send_bytes(data)
        except OSError:
            raise self._death() from None

    def _heard(self, deadline: Deadline) -> bytes | None:
        """Return what it answers, None if it says nothing by a deadline."""
        try:
            while True:
                while not self._pipe.poll(min(POLL_S, deadline.left())):
                    self._look()
                    if deadline.over():
                        return None
                    if self._process.poll() is not None:  # what it started may hold its end
                        raise EOFError
                said = self._pipe.recv_bytes()
                if said[:1] == ANSWER:
                    return said[1:]
                self._look()
                if self._told is not None:
                    self._told(said[1:])
        except (EOFError, OSError):
            raise self._death() from None

    def _look(self) -> None:
        """See whether to go on waiting."""
        self._between()
        clock = time.perf_counter()
        if self._memory_mib is None or clock < self._looked_s + LOOK_S:
            return
        self._looked_s = clock
        held_mib = _rss_mib(self.pid)
        self.peak_rss_mib = max(self.peak_rss_mib, held_mib)
        if held_mib > self._memory_mib:
            words = f"it held {held_mib:.0f} MiB, more than {self._memory_mib:g} MiB"
            raise MemoryHeldError(words)

    def _death(self) -> ProcessDiedError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDS_S)
        self.kill()
        code = self._process.returncode
        how = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        how += " (killed for want of memory?)" * (code == -signal.SIGKILL)
        return ProcessDiedError(f"its process died {how}")


def _rss_mib(pid: int) -> float:
    """Return the resident memory of a process and its descendants in MiB; 0 once it is gone."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += member.memory_info().rss
    return total / 2**20
