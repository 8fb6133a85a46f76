"""A policy in a process of its own: a native solver that crashes ends that process, not its host.

The process is started, and warm, before the first decision; one that dies or is much too late is
replaced. Rounds and plans travel as bytes, so that plans are those of the policy itself.
"""

import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from socket import socketpair
from threading import Thread
from typing import Any

import msgspec

from ronda.formulations.clock import Deadline, checkpoint
from ronda.instances.errors import InputError, RondaError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Policy
from ronda.solvers.registry import policy
from ronda.solvers.warm_up import warm_up

POLL_S = 0.05
"""Seconds between two looks at whether a decision was cancelled."""

GRACE, GRACE_S = 0.5, 1.0
"""Share of what is left of the limit, and seconds, by which an answer may be late: then the process
is killed."""

STARTS_S = 60.0
"""Seconds that a process may take to start."""

ORPHANED_S = 1.0
"""Seconds between two looks of the process at whether its host is still there."""


class ProcessDiedError(RondaError):
    """The process of a policy died, or was killed as it came much too late."""


class Question(msgspec.Struct):
    """What a decision needs."""

    round: Round
    seed: int
    limit_s: float | None
    initial: Plan | None


class Answer(msgspec.Struct):
    """The plan, or why there is none."""

    plan: Plan | None = None
    error: str = ""


class Isolated:
    """A policy whose decisions are made in another process.

    Parameters
    ----------
    spec
        Its name with parameters, as in ``"milp(gap=1e-4)"`` or ``"./mine.py:Mine"``.
    **parameters
        More of its parameters.

    Raises
    ------
    InputError
        If there is no such policy, or it is an object, which cannot be made again elsewhere.
    """

    def __init__(self, spec: str, **parameters: Any) -> None:
        made = policy(_word(spec), **parameters)
        self.name, self.capabilities = made.name, made.capabilities
        self._made = msgspec.msgpack.encode((spec, parameters))
        self._process: _Process | None = None
        self._running().ready(Deadline(STARTS_S))

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round, in the other process.

        Raises
        ------
        ProcessDiedError
            If the process dies, or gives no answer in time: then another one is started.
        """
        running = self._running()
        try:
            running.ready(deadline)
            limit_s = None if deadline.limit_s is None else max(deadline.left(), 1e-6)
            running.send(msgspec.msgpack.encode(Question(round, seed, limit_s, initial)))
            late_s = None if limit_s is None else limit_s * (1 + GRACE) + GRACE_S
            answer = msgspec.msgpack.decode(running.heard(Deadline(late_s)), type=Answer)
        except BaseException:
            self.close()
            self._running()
            raise
        if answer.plan is None:
            raise RondaError(answer.error)
        return answer.plan

    def close(self) -> None:
        """End the process; the next decision starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def __del__(self) -> None:
        """End the process with the policy."""
        if getattr(self, "_process", None) is not None:
            self.close()

    def _running(self) -> "_Process":
        if self._process is None:
            self._process = _Process(self._made)
        return self._process


def _word(spec: object) -> str:
    """Return the word for a policy; another process cannot make an object again."""
    if not isinstance(spec, str):
        expected = "the name of one, which another process can make"
        raise InputError("policy", f"a {type(spec).__name__} object", expected)
    return spec


class _Process:
    """The host's end of the other process."""

    def __init__(self, made: bytes) -> None:
        ours, theirs = socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ronda.solvers.isolated", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a solver prints is no answer
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is the host's
            )
        self._pipe, self._ready = Connection(ours.detach()), False
        self.send(made)

    def ready(self, deadline: Deadline) -> None:
        """Wait until the process is warm."""
        if not self._ready:
            if error := msgspec.msgpack.decode(self.heard(deadline), type=str):
                raise InputError("policy", error, "one that another process can make")
            self._ready = True

    def send(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self._pipe.send_bytes(data)
        except OSError:
            raise self._death() from None

    def heard(self, deadline: Deadline) -> bytes:
        """Return what it says, by a deadline."""
        while not self._pipe.poll(min(POLL_S, deadline.left())):
            checkpoint()
            if deadline.over():
                limit_s = deadline.limit_s
                raise ProcessDiedError(f"its process gave no answer within {limit_s:.3g} s")
        try:
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._death() from None

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def _death(self) -> ProcessDiedError:
        """Return how it died."""
        code = self._process.wait()
        how = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return ProcessDiedError(f"its process died {how}")


def _serve(pipe: Connection) -> None:
    """Make the policy, and answer question after question until the host is gone."""
    spec, parameters = msgspec.msgpack.decode(pipe.recv_bytes())
    try:
        made = policy(spec, **parameters)
        warm_up(made)
        pipe.send_bytes(msgspec.msgpack.encode(""))
    except RondaError as error:
        pipe.send_bytes(msgspec.msgpack.encode(str(error)))
        return
    while True:
        pipe.send_bytes(msgspec.msgpack.encode(_answer(made, pipe.recv_bytes())))


def _answer(made: Policy, asked: bytes) -> Answer:
    """Return the answer to a question; what a policy raises is one, too."""
    began = time.perf_counter()
    question = msgspec.msgpack.decode(asked, type=Question)
    deadline = Deadline(question.limit_s, started=began)
    try:
        plan = made.plan(
            question.round, deadline=deadline, seed=question.seed, initial=question.initial
        )
    except (Exception, SystemExit) as error:
        return Answer(error=" ".join(f"{type(error).__name__}: {error}".split()))
    return Answer(plan)


def _end_with(host: int) -> None:
    """End this process once its host is gone, whatever it does."""
    while os.getppid() == host:
        time.sleep(ORPHANED_S)
    os._exit(1)


def main() -> None:
    """Serve the host on the socket that it names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        _serve(Connection(int(sys.argv[1])))
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    main()
