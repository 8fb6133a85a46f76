"""Round-robin: every trial gets its turn, all turns as long."""

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping import rest
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked
from ronda.solvers.policies.sweeps.order import in_order
from ronda.solvers.policies.sweeps.trials import trials_of


@dataclass(frozen=True)
class RoundRobin(Clocked):
    """Let every trial report once in turn, then the next in the queue.

    One of the policies that Hermes is compared with. The plan's details carry the queue, and how
    often each running trial had reported when its turn began.
    """

    name: ClassVar[str] = "round-robin"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Move trials whose turn is over to the end of the queue."""
        before = {} if initial is None else initial.details
        queue: list[str] = before.get("queue", [])
        began: dict[str, int] = before.get("began", {})
        place = {name: k for k, name in enumerate(queue)}
        trials = sorted(trials_of(round), key=lambda t: place.get(t.name, len(place)))
        over = {t.name for t in trials if t.reports - began.get(t.name, t.reports) > 0}
        order = [t for t in trials if t.name not in over] + [t for t in trials if t.name in over]
        plan = in_order(round, order, self.clocks(round))
        turns = {
            t.name: t.reports if t.name in over else began.get(t.name, t.reports)
            for t in order
            if t.name in plan.allocations
        }
        details = {"queue": [t.name for t in order], "began": turns}
        return rest(round, replace(plan, policy=self.name, details=details), initial)
