"""A policy in its own process: a crash of a native solver ends that process, not its host.

The process is started and warmed up before the first decision; a process that dies or is much too
late is replaced. Rounds and plans travel as bytes, so plans are exactly those of the policy.
"""

import pickle
import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from ronda.horizon.gate import ask, malformed
from ronda.horizon.warm_up import warm_up
from ronda.instances.arguments import checked
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import FaultError
from ronda.solvers.process.host import Process, StartingError, with_grace
from ronda.solvers.registry import policy

WORD = "the name of one, which another process can make"

STARTS_S = 60.0
"""The time limit for the start of a process, in seconds."""


class Asked(msgspec.Struct):
    """The question for the other process."""

    round: Round
    seed: int
    limit_s: float | None
    initial: Plan | None


class Answered(msgspec.Struct):
    """The answer of the other process: a plan, or the policy's fault in words.

    `odd` is a pickled plan with parts of other types; the receiver finds its fault.
    """

    plan: Plan | None = None
    odd: bytes = b""
    fault: str = ""


class Isolated:
    """A policy that decides in another process.

    Parameters
    ----------
    spec
        The policy's name with parameters, as in ``"milp(gap=1e-4)"`` or ``"./mine.py:Mine"``.
    **parameters
        More parameters of the policy.

    Raises
    ------
    InputError
        If there is no such policy, or it is an object, which another process cannot make again.
    """

    @checked
    def __init__(self, spec: Annotated[str, WORD], **parameters: Any) -> None:
        self.__wrapped__ = made = policy(spec, **parameters)  # whose config is recorded
        self.name, self.capabilities = made.name, made.capabilities
        self._asked = _pickled(spec, parameters)
        self._process: Process | None = None
        self._running().ready(Deadline(STARTS_S))

    def plan(
        self,
        round: Round,
        *,
        deadline: Deadline | float | None = None,
        seed: int = 0,
        initial: Plan | None = None,
    ) -> Plan:
        """Decide a round in the other process.

        Raises
        ------
        FaultError
            If the policy has no plan, in the words that would be recorded without isolation.
        ProcessDiedError
            If the process dies, or does not answer in time; another process is started.
        """
        deadline, running = Deadline.of(deadline), self._running()
        try:
            running.ready(deadline)
            limit_s = None if deadline.limit_s is None else max(deadline.left(), 1e-6)
            question = msgspec.msgpack.encode(Asked(round, seed, limit_s, initial))
            answer = msgspec.msgpack.decode(
                running.ask(question, with_grace(limit_s)), type=Answered
            )
        except StartingError:
            raise
        except BaseException:
            self.close()
            self._running()
            raise
        if answer.fault:
            raise FaultError(answer.fault)
        plan: Plan = pickle.loads(answer.odd) if answer.plan is None else answer.plan
        return plan

    def close(self) -> None:
        """End the process; the next decision starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def __del__(self) -> None:
        """End the process with the policy."""
        if getattr(self, "_process", None) is not None:
            self.close()

    def _running(self) -> Process:
        if self._process is None:
            self._process = Process("ronda.horizon.isolated:answering", self._asked)
        return self._process


def _pickled(spec: str, parameters: dict[str, Any]) -> bytes:
    """Return the bytes from which another process makes a policy."""
    try:
        return pickle.dumps((spec, parameters))
    except Exception as error:
        found = f"parameters that cannot be pickled: {error}"
        raise InputError("policy", found, "ones that another process can have") from None


def answering(asked: bytes, _tell: Callable[[bytes], None]) -> Callable[[bytes], bytes]:
    """Make a policy in the other process, and return a function that decides with it."""
    spec, parameters = pickle.loads(asked)
    made = policy(spec, **parameters)
    warm_up(made)

    def answer(asked: bytes) -> bytes:
        began = time.perf_counter()
        question = msgspec.msgpack.decode(asked, type=Asked)
        deadline = Deadline(question.limit_s, started=began)
        return _told(
            ask(
                made,
                question.round,
                deadline=deadline,
                seed=question.seed,
                initial=question.initial,
            )
        )

    return answer


def _told(plan: Plan | str) -> bytes:
    """Return a plan or a fault as the bytes of an answer."""
    if isinstance(plan, str):
        return msgspec.msgpack.encode(Answered(fault=plan))
    try:
        data = msgspec.msgpack.encode(Answered(plan))
        msgspec.msgpack.decode(data, type=Answered)
    except Exception as error:
        try:
            return msgspec.msgpack.encode(Answered(odd=pickle.dumps(plan)))
        except Exception:
            return msgspec.msgpack.encode(Answered(fault=malformed(plan, error)))
    return data
