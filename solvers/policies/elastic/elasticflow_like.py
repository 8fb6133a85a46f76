"""ElasticFlow-like: the fewest GPUs that meet each deadline, then more GPUs at least GPU time."""

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ronda.formulations.options.gpu_ladders import own_batch_ladders
from ronda.instances.base import Ints
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.gpu_climb import GpuLadderClimb
from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.policies.elastic.optimus import remaining


@dataclass(frozen=True)
class ElasticFlowLike(Clocked):
    """Meet deadlines with the fewest GPUs, then give free GPUs to jobs that waste least GPU time.

    The policy follows ElasticFlow (Gu et al., ASPLOS 2023) and its public code. It keeps the jobs'
    own batches. GPU counts are those of `Application.sizes`: powers of two, and any count that a
    job names. There are two steps:

    1. Jobs get their minimum satisfactory shares by progressive filling (`FutureGpus`), in order of
       deadline.
    2. Jobs without GPUs get their least count, in order of deadline and submission. While GPUs are
       free, the job whose next step adds the least GPU time ``n R / rate(n)`` per extra GPU takes
       that step, if its rate rises.

    There is no admission control. A job that can no longer meet its deadline counts as a job
    without a deadline.

    Notes
    -----
    The published code sorts the steps by the GPU time that they *add*, largest first, although it
    aims at little GPU time. This policy takes the smallest first (docs/policies.md compares both).
    """

    name: ClassVar[str] = "elasticflow-like"
    capabilities: ClassVar[Capability] = (
        Capability.ELASTIC | Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS
    )
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide the number of GPUs of every job."""
        climb = GpuLadderClimb(round, own_batch_ladders(round, every=False), self.clocks(round))
        jobs = range(len(climb.ladders))
        work = remaining(round, climb)
        due_s = [due(round, climb, j) for j in jobs]
        order = sorted(jobs, key=lambda j: due_s[j])
        for j, step in satisfactory(climb, order, work, due_s).items():
            while step >= 0 and not climb.move(j, step):
                step -= 1
        for j in order:
            if climb.step[j] < 0:
                climb.move(j, 0)
        climb.climb(jobs, lambda j: added_gpu_s(climb, j, work[j]) if grows(climb, j) else None)
        return climb.plan(self.name, initial)


def due(round: Round, climb: GpuLadderClimb, j: int) -> float:
    """Return the seconds until a job's deadline minus its expected pause, infinite without any."""
    state = climb.ladders[j].state
    if state.job.deadline_s is None:
        return float("inf")
    if state.allocation is not None:
        pause_s = state.rest_at(round.now_s)
    else:
        pause_s = state.pause_at(round.now_s, climb.ladders[j].gpus[0], round.costs)
    left_s = state.job.deadline_s - round.now_s - pause_s
    return left_s if left_s > 0 else float("inf")


def satisfactory(
    climb: GpuLadderClimb, order: list[int], work: list[float], due_s: list[float]
) -> dict[int, int]:
    """Return the current step of each job whose deadline can be met (-1: no GPUs yet)."""
    by_pool: defaultdict[int, list[int]] = defaultdict(list)
    for j in order:
        if math.isfinite(due_s[j]):
            by_pool[climb.ladders[j].pool].append(j)
    needed = {}
    for pool, jobs in by_pool.items():
        future = FutureGpus(climb.left.gpus[pool], [due_s[j] for j in jobs])
        for j in jobs:
            checkpoint()
            ladder = climb.ladders[j]
            step = future.fill(due_s[j], work[j], ladder.gpus, ladder.rate)
            if step is not None:
                needed[j] = step
    return needed


def grows(climb: GpuLadderClimb, j: int) -> bool:
    """Return whether a job with GPUs would be faster one step up."""
    step = climb.step[j]
    return (
        step >= 0
        and not climb.top(j)
        and climb.ladders[j].rate[step + 1] > climb.ladders[j].rate[step]
    )


def added_gpu_s(climb: GpuLadderClimb, j: int, work: float) -> float:
    """Return the GPU-seconds that a job's next step adds to its GPU time, per added GPU."""
    ladder, step = climb.ladders[j], climb.step[j]
    few, more = ladder.gpus[step], ladder.gpus[step + 1]
    return (more * work / ladder.rate[step + 1] - few * work / ladder.rate[step]) / (more - few)


class FutureGpus:
    """Free GPUs of one pool over time, up to the last deadline, for progressive filling.

    Each job takes the smallest level of GPUs at which it can complete in time on the GPUs that
    earlier jobs left free. It uses that level as late as possible, and the level below before that.

    Time is divided at the deadlines `due_s` (seconds from now, above 0), or at quantiles of them if
    there are more than `most_slots` deadlines.
    """

    def __init__(self, gpus: int, due_s: list[float], most_slots: int = 64) -> None:
        ends = np.unique(np.asarray(due_s, dtype=float))
        if len(ends) > most_slots:
            ends = ends[np.linspace(0, len(ends) - 1, most_slots).astype(int)]
        self._ends: list[float] = ends.tolist()
        self._length = np.diff(ends, prepend=0.0)
        self.free: Ints = np.full(len(ends), gpus, dtype=np.int64)
        self._counts: dict[tuple[int, ...], Ints] = {}

    def fill(
        self, due_s: float, work: float, gpus: tuple[int, ...], rate: tuple[float, ...]
    ) -> int | None:
        """Book GPUs for a job, and return its current step (-1: no GPUs yet).

        Without a level that meets the deadline nothing is booked, and the result is None. `gpus`
        (L,) are the job's GPU counts, ascending; `rate` (L,) is its work per second at each count.
        """
        slots = bisect_right(self._ends, due_s)
        if not slots or work > max(rate) * due_s:
            return None
        length, free = self._length[:slots], self.free[:slots]
        counts, pace = self._of(gpus), np.array((0.0, *rate))  # index: step + 1
        top = np.maximum.accumulate(pace)
        fastest = top.searchsorted(top)  # best step + 1 up to each: more GPUs may be slower
        most = fastest.take(counts.searchsorted(free, side="right") - 1)
        if np.add.reduce(pace.take(most) * length) < work:
            return None
        for level in range(1, len(counts)):
            booked = fastest.take(np.minimum(most, level))
            done = pace.take(booked) * length
            if np.add.reduce(done) >= work:
                break
        late = done[::-1].cumsum()[::-1]  # work done from each slot to the deadline
        first = max(int(np.count_nonzero(late >= work)) - 1, 0)
        if first:
            booked[:first] = fastest.take(np.minimum(most[:first], level - 1))
            done = pace.take(booked) * length
        before = done.cumsum() - done
        booked[before >= work] = 0
        free -= counts.take(booked)
        return int(booked[0]) - 1

    def _of(self, gpus: tuple[int, ...]) -> Ints:
        """Return the array of 0 and the GPU counts, cached because many jobs share it."""
        if gpus not in self._counts:
            self._counts[gpus] = np.array((0, *gpus))
        return self._counts[gpus]
