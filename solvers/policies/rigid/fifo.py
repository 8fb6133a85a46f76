"""First in, first out: the order of submission, without preemption, blocked by the first job."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping import rest
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Backfill, beside
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked


@dataclass(frozen=True)
class Fifo(Clocked):
    """Start jobs in order of submission as they were requested.

    The baseline of the Helios artifact (SC'21), with its *consolidate* placer. Each partition has
    a queue of its own.

    Parameters
    ----------
    backfill
        Who passes a job that finds no room (`ronda.solvers.greedy.backfill`): nobody (none), who
        fits (free), who delays not the first (easy) or nobody before it (conservative).
    """

    backfill: Backfill = "none"

    name: ClassVar[str] = "fifo"
    capabilities: ClassVar[Capability] = Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Start what fits, oldest first."""
        held = beside(round, round.waiting, self.backfill, self.clocks(round))
        plan = Plan(policy=self.name, allocations=held)
        return rest(round, plan, initial)
