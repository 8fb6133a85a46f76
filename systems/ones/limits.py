"""The batch-size limits of ONES, counted in GPUs (artifact, src/scheduler.py, controller.py).

A job's limit R starts at one GPU. It doubles after the job has run on R GPUs and is halved while
the job waits to be resumed. The dominant job shrinks after it has run for a long time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from statistics import median

from msgspec.structs import replace

from ronda.instances.clock import checkpoint
from ronda.systems.ones.memory import JobMemory
from ronda.systems.ones.subproblem import OnesJob, Subproblem

EXECUTED = 2
"""Number of epochs after which a job counts as executed (num_epochs_before_next_scaling)."""


def grown(limit: int, gpus: int, most: int) -> int:
    """Return R of a job that may scale up: doubled, up to `most`, if `gpus` uses all of R."""
    return min(2 * limit, most) if gpus >= limit else min(limit, most)


def shrunk(gpus: int, ran_s: float, median_s: float) -> int:
    """Return the GPUs to which the dominant job, on c `gpus`, is scaled down.

    The number is ``max(1, floor(2 c / (sigma T_j / T_med + 1)))``, rounded up to an even number. It
    is c if the job has run for the median time of all started jobs, and c / 2 after three times the
    median.
    """
    sigma = 1.0  # the artifact's scale_down_factor
    whole = max(1, floor(2 * gpus / (sigma * ran_s / median_s + 1)))
    return whole + whole % 2


def halved(limit: int, least: int = 1) -> int:
    """Return R after a deployment that leaves the job waiting."""
    return max(least, limit // 2)


@dataclass(slots=True)
class Candidate:
    """A job of a subproblem during a tick, with its progress and its fewest and most GPUs.

    `epochs` is the number of completed epochs, and `start` the number of GPUs on which the job
    starts. `target` is ones_max, the number of GPUs that it may keep or resume with. Its limit is
    in the memory `known`.
    """

    job: OnesJob
    known: JobMemory
    epochs: int
    most: int
    start: int
    target: int = 0

    @property
    def executed(self) -> bool:
        """Whether the job has run long enough to be predicted, scaled and stopped."""
        return self.epochs >= EXECUTED

    @property
    def new(self) -> bool:
        """Whether the job waits and is not executed yet."""
        return self.job.gpus == 0 and not self.executed


def candidates(problem: Subproblem, known: Mapping[str, JobMemory]) -> list[Candidate]:
    """Return the candidates of a subproblem, with grown limits and a smaller dominant job.

    A running job grows once it has completed two epochs since it was last scaled. The largest such
    job is scaled down if it has half of the GPUs and has run longer than the median.
    """
    found, eligible = list[Candidate](), list[Candidate]()
    capacity = len(problem.node)
    for job in problem.jobs:
        checkpoint()
        own, sizes, asked = known[job.id], job.sizes, job.state.job
        most = int(sizes[min(capacity, len(sizes) - 1)])
        start = int(sizes[sizes > 0].min(initial=capacity + 1))
        if not asked.preemptible:
            start = int(sizes[min(max(asked.gpus, start), len(sizes) - 1)])
        target, epochs = job.gpus or own.limit * job.state.started, own.epochs(job.epoch)
        found.append(Candidate(job, own, epochs, most, start, target))
        if job.gpus and epochs - own.scaled >= EXECUTED:
            limit = grown(own.limit, job.gpus, most)
            found[-1].known, found[-1].target = replace(own, limit=limit), max(job.gpus, limit)
            eligible.append(found[-1])
    if not eligible:
        return found
    largest = max(eligible, key=lambda each: each.job.gpus)
    gpus, ran_s = largest.job.gpus, largest.known.ran_s
    middle = median(each.known.ran_s for each in found if each.job.state.started or each.executed)
    if 2 * gpus >= capacity and ran_s > middle > 0:
        largest.target = min(gpus, max(shrunk(gpus, ran_s, middle), largest.start))
    return found
