"""Tiresias: preemptive, discretised least attained service in two queues."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.greedy.room import preempt_in_order


class SecondQueue(PlanMemory, frozen=True):
    """The jobs of the second queue, in order."""

    key: ClassVar[str] = "second_queue"

    jobs: list[str] = []


@dataclass(frozen=True)
class Tiresias(Clocked):
    """Admit jobs with little used GPU time first; stop running jobs that are not admitted.

    This is the two-queue discretised LAS of Tiresias (Gu et al., NSDI 2019) as in the artifact of
    Pollux (OSDI 2021). Jobs run on all the GPUs that they asked for, or wait. The first queue holds
    the jobs below the threshold in order of submission. The second queue holds the others in the
    order in which they passed it. A job for which too few GPUs are left does not block the jobs
    behind it. As in the artifact, no rule prevents starvation.

    Parameters
    ----------
    threshold_gpu_s
        GPU-seconds after which a job enters the second queue; 16 GPU-hours in the artifact.
    most_free
        Whether jobs are placed as in the artifact, on the nodes with most free GPUs, spread if
        necessary. Otherwise best fit places them, never on more nodes than necessary.
    """

    threshold_gpu_s: Annotated[float, msgspec.Meta(gt=0)] = 16 * 3600.0
    most_free: bool = True

    name: ClassVar[str] = "tiresias"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Admit jobs, the first queue first."""
        jobs = sorted(round.jobs, key=lambda state: state.job.submit_s)
        passed_s = {s.job.id: self._passed_s(round, s) for s in jobs}
        rank = {job: place for place, job in enumerate(SecondQueue.recall(initial).jobs)}
        late = [s for s in jobs if passed_s[s.job.id] is not None]
        late.sort(key=lambda s: (rank.get(s.job.id, len(rank)), passed_s[s.job.id]))
        first = [s for s in jobs if passed_s[s.job.id] is None]
        clocks, spread = self.clocks(round), self.most_free
        allocations = preempt_in_order(round, first + late, clocks=clocks, most_free=spread)
        memory = SecondQueue([s.job.id for s in late]).noted()
        plan = Plan(policy=self.name, allocations=allocations, memory=memory)
        return rest(round, plan, initial)

    def _passed_s(self, round: Round, state: JobState) -> float | None:
        """Return the time when a job passed the threshold (0: before its current run), or None."""
        left = self.threshold_gpu_s - state.gpu_s
        if left <= 0:
            return 0.0
        if state.allocation is None:
            return None
        when_s = state.held_s + left / state.allocation.option.gpus
        return when_s if when_s <= round.now_s else None
