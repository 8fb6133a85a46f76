"""Batch-size limits of ONES, held in GPUs (artifact, src/scheduler.py, controller.py).

A job's limit R starts at one GPU, doubles when the job has run on as many, is halved while it waits
to be resumed, and the dominant job gives way when it has run for long.
"""

from dataclasses import dataclass
from math import floor
from statistics import median

from msgspec.structs import replace

from ronda.formulations.clock import checkpoint
from ronda.solvers.ones.board import Board, OnesJob
from ronda.solvers.ones.memory import JobMemory, OnesMemory

EXECUTED = 2
"""Epochs after which a job counts as executed (num_epochs_before_next_scaling)."""

SIGMA = 1.0
"""The artifact's scale_down_factor."""


def grown(limit: int, gpus: int, most: int) -> int:
    """Return R after a job on `gpus` may scale up: doubled, up to `most`, if all of it is used."""
    return min(2 * limit, most) if gpus >= limit else min(limit, most)


def shrunk(gpus: int, ran_s: float, median_s: float) -> int:
    """Return the GPUs to which the dominant job, on c `gpus`, is scaled down.

    ``max(1, floor(2 c / (sigma T_j / T_med + 1)))``, rounded up to an even number: c for a job that
    has run for the median time of all jobs that have started, half of it after three times as long.
    """
    whole = max(1, floor(2 * gpus / (SIGMA * ran_s / median_s + 1)))
    return whole + whole % 2


def halved(limit: int, least: int = 1) -> int:
    """Return R after a deployment that left the job waiting."""
    return max(least, limit // 2)


@dataclass(slots=True)
class Seat:
    """A job of a board for the length of a tick: how far it is, and its least and most GPUs.

    `epochs` are those completed; `start` is what it begins with; `target` is ones_max, the GPUs
    that it may keep or come back to.
    """

    job: OnesJob
    known: JobMemory
    epochs: int
    most: int
    start: int
    target: int = 0

    @property
    def executed(self) -> bool:
        """Whether it has been executed for long enough to be predicted, scaled and stopped."""
        return self.epochs >= EXECUTED

    @property
    def new(self) -> bool:
        """Whether it waits and has not been executed for long enough."""
        return self.job.gpus == 0 and not self.executed


def seats(board: Board, memory: OnesMemory) -> list[Seat]:
    """Return the seats of a board's jobs; limits grow in memory too, the dominant job's shrinks."""
    found = []
    capacity = len(board.node)
    for job in board.jobs:
        checkpoint()
        known, sizes, asked = memory.jobs[job.id], job.sizes, job.state.job
        most = int(sizes[min(capacity, len(sizes) - 1)])
        start = int(sizes[sizes > 0].min(initial=capacity + 1))
        if not asked.preemptible:
            start = int(sizes[min(max(asked.gpus, start), len(sizes) - 1)])
        target = job.gpus or known.limit * job.state.started
        found.append(Seat(job, known, known.epochs(job.epoch), most, start, target))
    _scale(found, capacity)
    memory.jobs |= {seat.job.id: seat.known for seat in found}
    return found


def _scale(found: list[Seat], capacity: int) -> None:
    """Let executed running jobs grow; scale down the largest if it dominates and has run long.

    A job grows once it has completed two epochs since it was last scaled.
    """
    eligible = [
        seat for seat in found if seat.job.gpus and seat.epochs - seat.known.scaled >= EXECUTED
    ]
    for seat in eligible:
        limit = grown(seat.known.limit, seat.job.gpus, seat.most)
        seat.known = replace(seat.known, limit=limit)
        seat.target = max(seat.job.gpus, limit)
    if not eligible:
        return
    largest = max(eligible, key=lambda seat: seat.job.gpus)
    gpus, ran_s = largest.job.gpus, largest.known.ran_s
    middle = median(seat.known.ran_s for seat in found if seat.job.state.started or seat.executed)
    if 2 * gpus >= capacity and ran_s > middle > 0:
        largest.target = min(gpus, max(shrunk(gpus, ran_s, middle), largest.start))
