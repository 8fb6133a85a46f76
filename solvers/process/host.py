"""The host's end of another process."""

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Pipe

from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.errors import InputError, RondaError

POLL_S = 0.05
"""Seconds between two looks at whether a question was cancelled."""

GRACE, GRACE_S = 0.5, 1.0
"""Share of the limit, and seconds, by which an answer may be late: then the process is killed."""

ENDS_S = 5.0
"""Seconds that a process may take to end by itself once it has hung up."""


class ProcessDiedError(RondaError):
    """A process died, or gave no answer in time."""


class StartingError(RondaError):
    """A process is not ready yet, and goes on starting."""


class Process:
    """A process that answers questions, one after the other.

    It begins to start at once, and leads a session of its own: Ctrl-C is the host's, and a kill
    reaches all that the process started. It ends with its host, whatever that dies of.

    Parameters
    ----------
    maker
        Function that is called there, as ``module:function``: it takes `asked` and returns what
        answers bytes with bytes.
    asked
        What it is told.
    """

    def __init__(self, maker: str, asked: bytes = b"") -> None:
        self._pipe, theirs = Pipe()
        lifeline, self._held = Pipe(duplex=False)
        with theirs, lifeline:
            inherited = theirs.fileno(), lifeline.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", _CHILD, *map(str, inherited), maker],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a solver prints is no answer
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
            If it died.
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
        """Return the answer to a question that takes `limit_s` at most, and may be a little late.

        Raises
        ------
        ProcessDiedError
            If it died, or gave no answer: it must be killed then.
        """
        self._send(question)
        late_s = None if limit_s is None else limit_s * (1 + GRACE) + GRACE_S
        answer = self._heard(Deadline(late_s))
        if answer is None:
            raise ProcessDiedError(f"its process gave no answer within {late_s:.3g} s")
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
        """Return what it says, None if it says nothing by a deadline."""
        try:
            while not self._pipe.poll(min(POLL_S, deadline.left())):
                checkpoint()
                if deadline.over():
                    return None
                if self._process.poll() is not None:  # what it started may hold its end
                    raise EOFError
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._death() from None

    def _death(self) -> ProcessDiedError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDS_S)
        self.kill()
        code = self._process.returncode
        how = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return ProcessDiedError(f"its process died {how}")


_CHILD = "ronda.solvers.process.child"
