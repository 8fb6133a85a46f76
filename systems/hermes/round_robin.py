"""Round-robin: every trial gets its turn, and all turns are equally long."""

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.order import in_order
from ronda.systems.hermes.trials import trials_of


class Turns(PlanMemory, frozen=True):
    """The queue of trials, and the reports of each running trial when its turn began."""

    key: ClassVar[str] = "turns"

    queue: list[str] = []
    began: dict[str, int] = {}


@dataclass(frozen=True)
class RoundRobin(Clocked):
    """Let each trial in the queue run for one report in turn.

    Hermes is compared with this policy.
    """

    name: ClassVar[str] = "round-robin"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Move trials whose turn is over to the end of the queue."""
        before = Turns.recall(initial)
        began, place = before.began, {name: k for k, name in enumerate(before.queue)}
        trials = sorted(trials_of(round), key=lambda t: place.get(t.name, len(place)))
        over = {t.name for t in trials if t.reports - began.get(t.name, t.reports) > 0}
        order = [t for t in trials if t.name not in over] + [t for t in trials if t.name in over]
        plan = in_order(round, order, self.clocks(round))
        turns = {
            t.name: t.reports if t.name in over else began.get(t.name, t.reports)
            for t in order
            if t.name in plan.allocations
        }
        memory = Turns([t.name for t in order], turns).noted()
        return rest(round, replace(plan, policy=self.name, memory=memory), initial)
