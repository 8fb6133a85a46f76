"""Least attained service: the job that has had the fewest GPU-seconds goes first."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping import rest
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked, preempt_in_order


@dataclass(frozen=True)
class Las(Clocked):
    """Admit jobs by the GPU-seconds that they have had, least first, ties by submission.

    Plain least attained service of gangs, without the queues of `tiresias`: jobs that have had
    nearly as much take turns, and each turn costs restarts.
    """

    name: ClassVar[str] = "las"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Admit jobs, the least served first."""

        def served(state: JobState) -> tuple[float, float]:
            return state.gpu_s_at(round.now_s), state.job.submit_s

        order = sorted(round.jobs, key=served)
        allocations = preempt_in_order(round, order, clocks=self.clocks(round))
        return rest(round, Plan(policy=self.name, allocations=allocations), initial)
