"""The host's end of a separate process."""

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
"""The seconds between two checks whether a question was cancelled."""

LOOK_S = 0.2
"""The seconds between two checks of the process's memory."""

ENDS_S = 5.0
"""The seconds that a process may take to exit after it has closed its end."""


class ProcessDiedError(RondaError):
    """The failure of a process that died, gave no answer in time, or held too much memory."""


class LateAnswerError(ProcessDiedError):
    """The failure of a process that gave no answer in time."""


class MemoryHeldError(ProcessDiedError):
    """The failure of a process that held more memory than its limit."""


class StartingError(RondaError):
    """The error for a process that is not ready yet and is still starting."""


def with_grace(limit_s: float | None) -> float | None:
    """Return the seconds after which to give up on an answer that was due within `limit_s`."""
    return None if limit_s is None else 1.5 * limit_s + 1.0


class Process:
    """A separate process that answers one question after another.

    It starts immediately and leads its own session. So Ctrl-C reaches only the host, and a kill
    reaches all processes that it started. It ends with its host, whatever the cause.

    Parameters
    ----------
    maker
        Function that the process calls, as ``module:function``. It takes `asked` and a function
        that sends the host a message before an answer. It returns a function from bytes to bytes.
    asked
        The first argument of the maker.
    told
        Function that is called with each message before an answer.
    between
        Function that is called repeatedly during the wait for an answer. Its exceptions end the
        wait.
    memory_mib
        Limit on the resident memory of the process and its descendants, in MiB. The attribute
        ``peak_rss_mib`` is the highest value seen. None: memory is not checked.
    output
        File for the output of the process. None: stderr.
    environment
        Environment variables that differ from those of the host.
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
                stdout=output or 2,  # keep a solver's output apart from answers
                stderr=output,
                env=os.environ | dict(environment or {}),
                pass_fds=inherited,
                start_new_session=True,
            )
        self._ready = False
        self._send(pickle.dumps((sys.path, asked)))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def ready(self, deadline: Deadline) -> None:
        """Wait until the process can answer.

        Raises
        ------
        StartingError
            If it is not ready by the deadline; it goes on starting.
        InputError
            If the process cannot make the answering function.
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
            If it died, gave no answer within `limit_s`, or held too much memory. The caller must
            kill it in that case.
        """
        self._send(question)
        answer = self._heard(Deadline(limit_s))
        if answer is None:
            raise LateAnswerError(f"its process gave no answer within {limit_s:.3g} s")
        return answer

    def kill(self) -> None:
        """Kill the process and all processes that it started, and wait for its end."""
        with suppress(ProcessLookupError, PermissionError):  # all processes have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _send(self, data: bytes) -> None:
        try:
            self._pipe.send_bytes(data)
        except OSError:
            raise self._death() from None

    def _heard(self, deadline: Deadline) -> bytes | None:
        """Return the answer, or None if there is none by the deadline."""
        try:
            while True:
                while not self._pipe.poll(min(POLL_S, deadline.left())):
                    self._look()
                    if deadline.over():
                        return None
                    if self._process.poll() is not None:  # its children may hold its end
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
        """Check whether to go on waiting: for a cancellation, and for the memory limit."""
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
