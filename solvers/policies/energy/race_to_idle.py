"""Race to idle: jobs run at full speed, and nodes without a job are off."""

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.sleeping import unused
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.policies.rigid.queues import Queue, queued


@dataclass(frozen=True)
class RaceToIdle(TimelyPolicy):
    """Run jobs as requested at full clock, in order, and let nodes without a job sleep.

    This is the opposite of slowing jobs down. The policy ignores the power that a job draws beyond
    idle power, but keeps no node awake without a job. A node sleeps as soon as its last job ends.
    The next job that finds no room on awake nodes wakes it, with a delay. A job without room does
    not block the jobs behind it. As sleeping nodes leave more watts, more jobs may run under a
    power limit than with `sjf`.

    Parameters
    ----------
    queue
        The order of waiting jobs. By default the shortest job is first.
    """

    queue: Queue = "sjf"

    name: ClassVar[str] = "race-to-idle"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start the jobs that fit, in order; let unused nodes sleep."""
        room = Room(round, round.running, sleeping=True)
        started = start_in_order(room, queued(round, self.queue))
        plan = Plan(policy=self.name, allocations=round.held | started)
        return replace(plan, asleep=unused(round, plan))
