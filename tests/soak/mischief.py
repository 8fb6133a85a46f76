"""Policies that break their contract now and then, each time in another way."""

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from itertools import count, cycle
from typing import Any

from msgspec.structs import replace

from ronda.instances.clock import Deadline
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.registry import policy


def _fail(error: BaseException) -> Any:
    raise error


def _beyond_capacity(round: Round, plan: Plan) -> Plan:
    """Give every live job all GPUs of the first node."""
    gpus = int(round.cluster.topology.node_gpus[0])
    option = Option(pool=0, gpus=gpus)
    every = {s.job.id: Allocation(option=option, placement=((0, gpus),)) for s in round.jobs}
    return replace(plan, allocations=every | {"nobody": Allocation(option=option, placement=())})


KINDS: dict[str, Callable[[Round, Plan], Any]] = {
    "capacity": _beyond_capacity,
    "raises": lambda _round, _plan: _fail(ValueError("mischief")),
    "exits": lambda _round, _plan: _fail(SystemExit(3)),
    "recurses": lambda _round, _plan: _fail(RecursionError("mischief")),
    "memory": lambda _round, _plan: _fail(MemoryError()),
    "none": lambda _round, _plan: None,
    "number": lambda _round, _plan: 42,
    "no-allocations": lambda _round, plan: replace(plan, allocations=None),
    "words": lambda _round, plan: replace(plan, allocations={"a": "b"}),
    "asleep": lambda _round, plan: replace(plan, asleep=("x",)),
    "nan": lambda _round, plan: replace(plan, objective=float("nan")),
    "thing": lambda _round, plan: replace(plan, memory={"thing": object()}),
}
"""What a policy does in place of giving its plan, by name."""


def turns(every: int, kinds: Sequence[str]) -> Callable[[], str | None]:
    """Return what gives one of `kinds`, in turn, at each `every`-th call, and None at others."""
    calls, names = count(1), cycle(kinds)
    return lambda: next(names) if next(calls) % every == 0 else None


@dataclass
class Mischief:
    """The policy of a specification that gives what it should not whenever `turn` names it.

    `done` has the times of the rounds in which it did, and what.
    """

    spec: str
    turn: InitVar[Callable[[], str | None]]

    def __post_init__(self, turn: Callable[[], str | None]) -> None:
        self._inner, self._turn = policy(self.spec), turn
        self.name: str = self._inner.name
        self.capabilities: Capability = self._inner.capabilities
        self.done: list[tuple[float, str]] = []

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round, or do mischief."""
        plan = self._inner.plan(round, deadline=deadline, seed=seed, initial=initial)
        kind = self._turn()
        if kind is None:
            return plan
        self.done.append((round.now_s, kind))
        answer: Plan = KINDS[kind](round, plan)
        return answer
