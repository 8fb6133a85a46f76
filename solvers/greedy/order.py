"""The order of a queue: who came first, who is shortest, or who needs the least service."""

from collections.abc import Callable
from typing import Literal

from ronda.formulations.options.application import Requested
from ronda.instances.job import JobState
from ronda.instances.round import Round

Queue = Literal["fifo", "sjf", "qssf"]
"""By submission, by expected time, or by expected GPU time, as the policies of these names do."""

Service = Literal["gpu-time", "time", "gpus"]
"""What a job's service is: expected GPU time, expected time, or just GPUs."""


def queued(round: Round, queue: Queue) -> list[JobState]:
    """Return the waiting jobs in the order of a queue."""
    match queue:
        case "fifo":
            return list(round.waiting)
        case "sjf":
            return sorted(round.waiting, key=Requested(round).remaining_s)
        case "qssf":
            return sorted(round.waiting, key=service(round, "gpu-time"))


def service(
    round: Round, by: Service, ageing_s: float | None = None
) -> Callable[[JobState], tuple[float, int]]:
    """Return what jobs are ranked by: least service first, then fewer GPUs."""
    requested = Requested(round)

    def rank(state: JobState) -> tuple[float, int]:
        gpus = state.job.gpus
        size = 1.0 if by == "gpus" else requested.remaining_s(state)
        if by != "time":
            size *= gpus
        if ageing_s is not None:
            size /= 1.0 + (round.now_s - state.job.submit_s) / ageing_s
        return size, gpus

    return rank
