"""Shortest job first: without preemption, blocked by the first job that has no room."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.options.requested import remaining_s
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.greedy.clocked import Clocked
from ronda.solvers.greedy.rigid import start_in_order
from ronda.solvers.greedy.room import Room


@dataclass(frozen=True)
class Sjf(Clocked):
    """Start waiting jobs by expected run time as requested, shortest first, ties by submission.

    With exact estimates this is the oracle SJF of the Helios artifact (SC'21). Jobs of unknown
    size come last.
    """

    name: ClassVar[str] = "sjf"
    capabilities: ClassVar[Capability] = Capability.NONE

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Start what fits, shortest first."""
        waiting = sorted(round.waiting, key=lambda state: remaining_s(round, state))
        room = Room(round, round.running, clocks=self.clocks(round))
        started = start_in_order(room, waiting)
        return Plan(policy=self.name, allocations=round.held | started)
