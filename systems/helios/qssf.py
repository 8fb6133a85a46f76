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

    Hu et al. (SC'21): what is believed of a job's run time, times the GPUs that it asked for, ranks
    the queue of its partition; the first that finds no room blocks. Ties go to fewer GPUs, then to
    who came first. Jobs of unknown size come last. Whose beliefs these are says the run
    (``--knowledge``, ``--predictor``).

    Parameters
    ----------
    by
        What ranks jobs: expected GPU time, expected time, or just GPUs.
    backfill
        Who passes a job that finds no room, as of `fifo`.
    """

    by: Service = "gpu-time"
    backfill: Backfill = "none"

    name: ClassVar[str] = "qssf"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def order(self, round: Round) -> Sequence[JobState]:
        """Return the waiting jobs, least service first."""
        return sorted(round.waiting, key=service(round, self.by))
