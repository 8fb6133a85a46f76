"""QSSF, the service of Helios that orders waiting jobs by expected GPU time."""

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

    The queue of each partition is ordered by the expected run time of a job times the GPUs that it
    asked for (Hu et al., SC'21). The first job that finds no room blocks the queue. Ties go to the
    job with fewer GPUs, then to the one submitted earlier. Jobs of unknown size come last. The
    options ``--knowledge`` and ``--predictor`` of the run choose the source of expected times.

    Parameters
    ----------
    by
        Sort key: expected GPU time, expected time, or number of GPUs.
    backfill
        Which jobs may pass a job that finds no room, as for `fifo`.
    """

    by: Service = "gpu-time"
    backfill: Backfill = "none"

    name: ClassVar[str] = "qssf"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs, the one with the least expected GPU time first."""
        return sorted(round.waiting, key=service(round, self.by))
