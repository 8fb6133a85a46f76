"""ElasticFlow-like: the fewest GPUs that meet each deadline, then whoever wastes least GPU time."""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.options.ladders import own_batch_ladders
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.greedy.gpu_climb import GpuLadderClimb
from ronda.solvers.greedy.room import Clocked
from ronda.solvers.greedy.satisfactory import FutureGpus
from ronda.solvers.policies.elastic.optimus import remaining


@dataclass(frozen=True)
class ElasticFlowLike(Clocked):
    """Meet deadlines with the fewest GPUs, then spend free ones where they cost least GPU time.

    After ElasticFlow (Gu et al., ASPLOS 2023) and its public code, in two steps at the jobs' own
    batches and in powers of two:

    1. minimum satisfactory shares by progressive filling (`ronda.solvers.greedy.satisfactory`),
       jobs by deadline;
    2. jobs without GPUs get their least count, by deadline and submission; then again and again
       the job whose next step adds the least GPU time ``n R / rate(n)`` per extra GPU takes it,
       while its rate rises and GPUs are free.

    There is no admission control: a job that cannot meet its deadline any more counts as one
    without a deadline.

    Notes
    -----
    The published code sorts the steps by the GPU time that they *add*, largest first, although its
    aim is little GPU time; here the least comes first (docs/policies.md compares both).
    """

    name: ClassVar[str] = "elasticflow-like"
    capabilities: ClassVar[Capability] = Capability.ELASTIC | Capability.PREEMPTS

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide how many GPUs every job gets."""
        climb = GpuLadderClimb(round, own_batch_ladders(round, every=False), self.clocks(round))
        jobs = range(len(climb.ladders))
        work = [remaining(round, climb, j) for j in jobs]
        due_s = [due(round, climb, j) for j in jobs]
        order = sorted(jobs, key=lambda j: due_s[j])
        for j, step in satisfactory(climb, order, work, due_s).items():
            while step >= 0 and not climb.move(j, step):
                step -= 1
        for j in order:
            if climb.step[j] < 0:
                climb.move(j, 0)
        climb.climb(jobs, lambda j: added_gpu_s(climb, j, work[j]) if grows(climb, j) else None)
        return climb.plan(self.name)


def due(round: Round, climb: GpuLadderClimb, j: int) -> float:
    """Return the seconds until a job's deadline, less the pause that it must count on."""
    state = climb.ladders[j].state
    if state.job.deadline_s is None:
        return float("inf")
    costs = state.job.costs or round.costs
    if state.allocation is not None:
        pause_s = max(0.0, state.since_s - round.now_s)
    else:
        least = climb.ladders[j].gpus[0]
        pause_s = (costs.restart(least) if state.started else costs.start_s) + state.owed_s
    left_s = state.job.deadline_s - round.now_s - pause_s
    return left_s if left_s > 0 else float("inf")


def satisfactory(
    climb: GpuLadderClimb, order: list[int], work: list[float], due_s: list[float]
) -> dict[int, int]:
    """Return the step that each job with a deadline that can be met needs now (-1: none yet)."""
    by_pool: defaultdict[int, list[int]] = defaultdict(list)
    for j in order:
        if math.isfinite(due_s[j]):
            by_pool[climb.ladders[j].pool].append(j)
    needed = {}
    for pool, jobs in by_pool.items():
        future = FutureGpus(climb.left[pool], [due_s[j] for j in jobs])
        for j in jobs:
            ladder = climb.ladders[j]
            step = future.fill(due_s[j], work[j], ladder.gpus, ladder.rate)
            if step is not None:
                needed[j] = step
    return needed


def grows(climb: GpuLadderClimb, j: int) -> bool:
    """Tell whether a job that has GPUs would be faster one step up."""
    step = climb.step[j]
    return (
        step >= 0
        and not climb.top(j)
        and climb.ladders[j].rate[step + 1] > climb.ladders[j].rate[step]
    )


def added_gpu_s(climb: GpuLadderClimb, j: int, work: float) -> float:
    """Return by how many GPU-seconds each GPU of a job's next step lengthens its GPU time."""
    ladder, step = climb.ladders[j], climb.step[j]
    few, more = ladder.gpus[step], ladder.gpus[step + 1]
    return (more * work / ladder.rate[step + 1] - few * work / ladder.rate[step]) / (more - few)
