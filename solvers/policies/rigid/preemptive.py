"""Policies that admit jobs in order and stop others: least time left, least service, Gittins."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ronda.formulations.options.application import Requested
from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.greedy.room import preempt_in_order


class Admitting(Clocked):
    """A policy that admits live jobs in a given order while GPUs last, and stops the others.

    A job holds its GPUs for another `teardown_s` seconds after its end.
    """

    teardown_s: float = 0.0

    @abstractmethod
    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs in order of admission."""

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Admit jobs in order, and stop the others."""
        allocations = preempt_in_order(
            round, self.order(round), clocks=self.clocks(round), teardown_s=self.teardown_s
        )
        return rest(round, Plan(policy=self.name, allocations=allocations), initial)


@dataclass(frozen=True)
class Srtf(Admitting):
    """Admit live jobs by remaining time while GPUs last; stop running jobs that are not admitted.

    The policy follows the Helios artifact (SC'21). The remaining time of a stopped job includes its
    restart. Admission counts GPUs only. An admitted job that finds no nodes waits without blocking
    the jobs behind it.

    Parameters
    ----------
    teardown_s
        Seconds for which a job holds its GPUs after its last work. Under SRTF alone, the artifact's
        simulator counts a running job down second by second and releases it one second after it
        reaches zero. The default of 1 s reproduces its results to the digit. With 0 the mean JCT on
        venus-vcvgl is 5,125.58 s instead of 5,056.42 s.
    """

    teardown_s: Annotated[float, msgspec.Meta(ge=0)] = 1.0

    name: ClassVar[str] = "srtf"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs in order of remaining time."""
        return sorted((*round.waiting, *round.running), key=Requested(round).remaining_s)


@dataclass(frozen=True)
class Las(Admitting):
    """Admit jobs in order of the GPU-seconds that they have used, with ties by submission.

    This is plain least attained service for gangs, without the queues of `tiresias`. Jobs that have
    used nearly the same GPU time take turns, and each turn costs restarts.
    """

    name: ClassVar[str] = "las"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs in order of GPU-seconds used."""

        def served(state: JobState) -> tuple[float, float]:
            return state.gpu_s_at(round.now_s), state.job.submit_s

        return sorted(round.jobs, key=served)


@dataclass(frozen=True)
class Gittins(Admitting):
    """Admit jobs in order of GPUs times the Gittins index of the time left; stop the others.

    The Gittins index of a job with random time left S is ::

        min over x of  E[min(S, x)] / P(S <= x)

    This is the least time spent on the job per completion (Gittins, *J. R. Statist. Soc.* B 1979;
    Aalto, Ayesta and Righter, *Queueing Systems* 2009). A job that is probably short goes first,
    and gives way once it turns out to be long. Its mean alone would not show this. If an estimate
    has no quantiles, only its mean counts. The objective `gittins`
    (`ronda.formulations.objectives.rank`) uses the index of a lognormal size instead.
    """

    name: ClassVar[str] = "gittins"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs in order of GPUs times index."""
        requested = Requested(round)

        def rank(state: JobState) -> float:
            gpus = state.job.gpus
            if state.allocation is not None:
                gpus = state.allocation.option.gpus
            return gpus * requested.remaining_s(state) * relative_index(round, state)

        return sorted((*round.waiting, *round.running), key=rank)


def relative_index(round: Round, state: JobState) -> float:
    """Return the Gittins index of the work left, divided by the expected work left."""
    estimate, mean = state.job.estimate, state.remaining_at(round.now_s)
    if estimate is None or mean is None or not estimate.quantiles:
        return 1.0
    left = np.array(estimate.quantiles) - state.done_at(round.now_s)
    left = left[left > 0]
    return gittins_index(left) / mean if len(left) else 1.0


def gittins_index(left: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the Gittins index of equally likely sizes (n,), which must ascend."""
    count = np.arange(1, len(left) + 1)
    spent = np.cumsum(left) + left * (len(left) - count)
    return float((spent / count).min())
