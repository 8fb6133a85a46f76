"""First in, first out: the order of submission, without preemption, blocked by the first job."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping.standby import rest
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked, Room, start_in_order


@dataclass(frozen=True)
class Fifo(Clocked):
    """Start jobs in order of submission as they were requested; the first without room blocks.

    The baseline of the Helios artifact (SC'21), with its *consolidate* placer.
    """

    name: ClassVar[str] = "fifo"
    capabilities: ClassVar[Capability] = Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Start what fits, oldest first."""
        room = Room(round, round.running, clocks=self.clocks(round))
        started = start_in_order(room, round.waiting)
        plan = Plan(policy=self.name, allocations=round.held | started)
        return rest(round, plan, initial)
