"""Orders of admission, which stop other jobs: least time left, least service, the Gittins index."""

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
    """A policy that is an order of live jobs, who are admitted while GPUs last; the others stop.

    A job that ends holds its GPUs for `teardown_s` seconds more.
    """

    teardown_s: float = 0.0

    @abstractmethod
    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs, the first one to run first."""

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Admit jobs, in order."""
        allocations = preempt_in_order(
            round, self.order(round), clocks=self.clocks(round), teardown_s=self.teardown_s
        )
        return rest(round, Plan(policy=self.name, allocations=allocations), initial)


@dataclass(frozen=True)
class Srtf(Admitting):
    """Admit live jobs by remaining time while GPUs last; stop running jobs that are not admitted.

    As in the Helios artifact (SC'21): the remaining time of a stopped job includes the restart
    that it will need, admission counts GPUs only, and an admitted job that finds no nodes waits
    without blocking those behind it.

    Parameters
    ----------
    teardown_s
        Seconds that a job holds its GPUs after its last work. The artifact's simulator counts a
        running job down second by second and releases it one second after it reached zero, under
        SRTF alone. With the default of 1 s its results are met to the digit; with 0 the mean JCT
        on venus-vcvgl is 5,125.58 s instead of 5,056.42 s.
    """

    teardown_s: Annotated[float, msgspec.Meta(ge=0)] = 1.0

    name: ClassVar[str] = "srtf"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs, shortest remaining time first."""
        return sorted((*round.waiting, *round.running), key=Requested(round).remaining_s)


@dataclass(frozen=True)
class Las(Admitting):
    """Admit jobs by the GPU-seconds that they have had, least first, ties by submission.

    Plain least attained service of gangs, without the queues of `tiresias`: jobs that have had
    nearly as much take turns, and each turn costs restarts.
    """

    name: ClassVar[str] = "las"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs, the least served first."""

        def served(state: JobState) -> tuple[float, float]:
            return state.gpu_s_at(round.now_s), state.job.submit_s

        return sorted(round.jobs, key=served)


@dataclass(frozen=True)
class Gittins(Admitting):
    """Admit live jobs by GPUs times the Gittins index of the time left, stop those not admitted.

    The index of a job whose time left S is believed to be distributed in some way is ::

        min over x of  E[min(S, x)] / P(S <= x)

    the least time that must be spent on it for each completion (Gittins, *J. R. Statist. Soc.* B
    1979; Aalto, Ayesta and Righter, *Queueing Systems* 2009). A job that is probably short goes
    first, and gives way when it has turned out long, which its mean alone would not tell. Of a job
    whose estimate has no quantiles only the mean counts. The objective `gittins`
    (`ronda.formulations.objectives.rank`) has the index of a lognormal size in its place.
    """

    name: ClassVar[str] = "gittins"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the live jobs, least index first."""
        requested = Requested(round)

        def rank(state: JobState) -> float:
            gpus = state.job.gpus
            if state.allocation is not None:
                gpus = state.allocation.option.gpus
            return gpus * requested.remaining_s(state) * relative_index(round, state)

        return sorted((*round.waiting, *round.running), key=rank)


def relative_index(round: Round, state: JobState) -> float:
    """Return the Gittins index of the work left over the work that is expected to be left."""
    estimate, mean = state.job.estimate, state.remaining_at(round.now_s)
    if estimate is None or mean is None or not estimate.quantiles:
        return 1.0
    left = np.array(estimate.quantiles) - state.done_at(round.now_s)
    left = left[left > 0]
    return gittins_index(left) / mean if len(left) else 1.0


def gittins_index(left: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the Gittins index of equally likely sizes (n,), ascending."""
    count = np.arange(1, len(left) + 1)
    spent = np.cumsum(left) + left * (len(left) - count)
    return float((spent / count).min())
