"""Queues that stop no job: first in, first out, and shortest job first.

Jobs that fit start in the order of their partition's queue. The first job without room blocks the
queue. `ronda.solvers.greedy.backfill` decides which jobs may pass it.
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
"""The orders of a queue: by submission, expected time or expected GPU time, as in the policies of
these names."""

Service = Literal["gpu-time", "time", "gpus"]
"""The measures of a job's service: its expected GPU time, its expected time, or just its GPUs."""


class Queued(Clocked):
    """A policy that starts waiting jobs that fit, in a given order, and stops no job.

    The parameter `backfill` decides which jobs may pass a job without room.
    """

    backfill: Backfill

    @abstractmethod
    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs in the order in which they start."""

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start the jobs that fit, in order."""
        held = beside(round, self.order(round), self.backfill, self.clocks(round))
        return rest(round, Plan(policy=self.name, allocations=held), initial)


@dataclass(frozen=True)
class Fifo(Queued):
    """Start jobs as requested, in order of submission.

    This is the baseline of the Helios artifact (SC'21), with its *consolidate* placer. Each
    partition has its own queue.

    Parameters
    ----------
    backfill
        Jobs that may pass a job without room (`ronda.solvers.greedy.backfill`): no job (none), any
        job that fits (free), a job that does not delay the first one (easy), or a job that delays
        no job before it (conservative).
    """

    backfill: Backfill = "none"

    name: ClassVar[str] = "fifo"
    capabilities: ClassVar[Capability] = Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs in order of submission."""
        return round.waiting


@dataclass(frozen=True)
class Sjf(Queued):
    """Start jobs as requested, in order of expected run time, with ties by submission.

    With exact estimates this is the oracle SJF of the Helios artifact (SC'21). Jobs of unknown size
    come last. Each partition has its own queue.

    Parameters
    ----------
    backfill
        Jobs that may pass a job without room, as for `fifo`.
    """

    backfill: Backfill = "none"

    name: ClassVar[str] = "sjf"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs in order of expected run time."""
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
    """Return the sort key of jobs: least service first, then fewer GPUs."""
    requested = Requested(round)

    def rank(state: JobState) -> tuple[float, int]:
        gpus = state.job.gpus
        size = 1.0 if by == "gpus" else requested.remaining_s(state)
        if by != "time":
            size *= gpus
        return size, gpus

    return rank
