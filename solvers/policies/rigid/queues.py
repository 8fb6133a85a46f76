"""Queues that stop nothing: first in, first out; shortest job first.

What fits starts in the order of the queue of its partition, and its first job that finds no room
blocks; who may pass it says `ronda.solvers.greedy.backfill`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ronda.formulations.options.application import Requested
from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Backfill, beside
from ronda.solvers.greedy.policy import Clocked

Queue = Literal["fifo", "sjf", "qssf"]
"""By submission, by expected time, or by expected GPU time, as the policies of these names do."""

Service = Literal["gpu-time", "time", "gpus"]
"""A job's service: its expected GPU time, its expected time, or just its GPUs."""


class Queued(Clocked):
    """A policy that is an order of the waiting jobs: it stops nothing, and starts what fits.

    Who passes a job that finds no room is said by `backfill`.
    """

    backfill: Backfill

    @abstractmethod
    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs, the first one to start first."""

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start what fits, in order."""
        held = beside(round, self.order(round), self.backfill, self.clocks(round))
        return rest(round, Plan(policy=self.name, allocations=held), initial)


@dataclass(frozen=True)
class Fifo(Queued):
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

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs, oldest first."""
        return round.waiting


@dataclass(frozen=True)
class Sjf(Queued):
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

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs, shortest first."""
        return queued(round, "sjf")


def queued(round: Round, queue: Queue) -> list[JobState]:
    """Return the waiting jobs in the order of a queue."""
    match queue:
        case "fifo":
            return list(round.waiting)
        case "sjf":
            return sorted(round.waiting, key=Requested(round).remaining_s)
        case "qssf":
            return sorted(round.waiting, key=service(round, "gpu-time"))


def service(round: Round, by: Service) -> Callable[[JobState], tuple[float, int]]:
    """Return what jobs are ranked by: least service first, then fewer GPUs."""
    requested = Requested(round)

    def rank(state: JobState) -> tuple[float, int]:
        gpus = state.job.gpus
        size = 1.0 if by == "gpus" else requested.remaining_s(state)
        if by != "time":
            size *= gpus
        return size, gpus

    return rank
