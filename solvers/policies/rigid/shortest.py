"""Shortest job first, without preemption; shortest remaining time first, with it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from ronda.formulations.clock import Deadline
from ronda.formulations.options.application import Requested
from ronda.formulations.sleeping import rest
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Backfill, beside
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.order import queued
from ronda.solvers.greedy.room import Clocked, preempt_in_order


@dataclass(frozen=True)
class Sjf(Clocked):
    """Start waiting jobs by expected run time as requested, shortest first, ties by submission.

    With exact estimates this is the oracle SJF of the Helios artifact (SC'21). Jobs of unknown
    size come last. Each partition has a queue of its own.

    Parameters
    ----------
    backfill
        Who passes a job that finds no room, as of `fifo`.
    """

    backfill: Backfill = "none"

    name: ClassVar[str] = "sjf"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Start what fits, shortest first."""
        held = beside(round, queued(round, "sjf"), self.backfill, self.clocks(round))
        plan = Plan(policy=self.name, allocations=held)
        return rest(round, plan, initial)


@dataclass(frozen=True)
class Srtf(Clocked):
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

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Admit jobs, shortest remaining time first."""
        live = (*round.waiting, *round.running)
        order = sorted(live, key=Requested(round).remaining_s)
        allocations = preempt_in_order(
            round, order, clocks=self.clocks(round), teardown_s=self.teardown_s
        )
        return rest(round, Plan(policy=self.name, allocations=allocations), initial)
