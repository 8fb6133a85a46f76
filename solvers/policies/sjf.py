"""Shortest job first: without preemption, blocked by the first job that has no room."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.requested import remaining_s
from ronda.instances.instance import Round
from ronda.instances.plan import Plan
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.policies.rigid import start_in_order


@dataclass(frozen=True)
class Sjf:
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
        return Plan(policy=self.name, allocations=start_in_order(round, waiting))
