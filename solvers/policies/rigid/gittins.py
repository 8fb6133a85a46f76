"""Service first by the whole of what is believed of sizes: the Gittins index, with preemption."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ronda.formulations.clock import Deadline
from ronda.formulations.options.application import Requested
from ronda.formulations.sleeping import rest
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked, preempt_in_order


@dataclass(frozen=True)
class Gittins(Clocked):
    """Admit live jobs by GPUs times the Gittins index of the time left, stop those not admitted.

    The index of a job whose time left S is believed to be distributed in some way is ::

        min over x of  E[min(S, x)] / P(S <= x)

    the least time that must be spent on it for each completion (Gittins, *J. R. Statist. Soc.* B
    1979; Aalto, Ayesta and Righter, *Queueing Systems* 2009). A job that is probably short goes
    first, and gives way when it has turned out long, which its mean alone would not tell. Of a job
    whose estimate has no quantiles the mean is all that is known.
    """

    name: ClassVar[str] = "gittins"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Admit jobs, least index first."""
        requested = Requested(round)

        def rank(state: JobState) -> float:
            gpus = state.job.gpus
            if state.allocation is not None:
                gpus = state.allocation.option.gpus
            return gpus * requested.remaining_s(state) * index_over_mean(round, state)

        live = sorted((*round.waiting, *round.running), key=rank)
        allocations = preempt_in_order(round, live, clocks=self.clocks(round))
        return rest(round, Plan(policy=self.name, allocations=allocations), initial)


def index_over_mean(round: Round, state: JobState) -> float:
    """Return the Gittins index of the work left over the work that is expected to be left."""
    estimate, mean = state.job.estimate, state.remaining_at(round.now_s)
    if estimate is None or mean is None or not estimate.quantiles:
        return 1.0
    left = np.array(estimate.quantiles) - state.done_at(round.now_s)
    left = left[left > 0]
    return index(left) / mean if len(left) else 1.0


def index(left: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the Gittins index of equally likely sizes (n,), ascending."""
    count = np.arange(1, len(left) + 1)
    spent = np.cumsum(left) + left * (len(left) - count)
    return float((spent / count).min())
