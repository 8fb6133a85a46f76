"""QSSF, the service of Helios that orders waiting jobs: least expected GPU time first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ronda.instances.job import JobState
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Backfill
from ronda.solvers.policies.rigid.queues import Queued, Service, service


@dataclass(frozen=True)
class Qssf(Queued):
    """Start waiting jobs by expected GPU time, least first, as the QSSF service of Helios does.

    Hu et al. (SC'21): the believed run time of a job, times the GPUs that it asked for, is its
    place in the queue of its partition; the first job that finds no room blocks. Ties go to fewer
    GPUs, then to the earlier submission. Jobs of unknown size come last. The run says where beliefs
    come from (``--knowledge``, ``--predictor``).

    Parameters
    ----------
    by
        The key of the order: expected GPU time, expected time, or just GPUs.
    backfill
        The jobs that pass one that finds no room, as for `fifo`.
    """

    by: Service = "gpu-time"
    backfill: Backfill = "none"

    name: ClassVar[str] = "qssf"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs, least service first."""
        return sorted(round.waiting, key=service(round, self.by))
