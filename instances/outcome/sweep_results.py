"""The results of a sweep: the reported losses of its trials, with times and GPU-seconds."""

from dataclasses import dataclass
from math import floor, inf, nan

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.schedule import JobOutcome, Schedule
from ronda.instances.violation import ROUNDING

TOLERANCE = 0.01
"""The relative distance within which a reported loss counts as equal to the least final loss."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The results of a sweep, with its R reports in order of time.

    `time_s` counts from the sweep's first submission. `gpu_s` are the GPU-seconds that its trials
    had held at each report, including pauses. `best` is the least loss reported so far (infinite
    before the first). `least` is the least final loss of all trials. `paused_gpu_s` are the
    GPU-seconds without progress. At the sweep's deadline, if any, `begun` trials had begun, and
    `in_time` was the least reported loss (infinite without reports). `all_good_s` is the time at
    which every trial that ends within `TOLERANCE` of the least had reported a loss within 10 % of
    it (NaN if one never did).
    """

    time_s: Floats
    gpu_s: Floats
    best: Floats
    least: float
    paused_gpu_s: float
    begun: int
    in_time: float
    all_good_s: float

    def within(self, tolerance: float = TOLERANCE) -> tuple[float, float]:
        """Return the time and the GPU-seconds until the best loss is near the least, or NaN."""
        near = np.flatnonzero(self.best <= self.least * (1 + tolerance))
        return (
            (float(self.time_s[near[0]]), float(self.gpu_s[near[0]])) if near.size else (nan, nan)
        )

    def regret(self) -> float:
        """Return the relative distance between the best reported loss and the least final loss."""
        if not self.best.size:
            return inf
        return max(0.0, float(self.best[-1]) - self.least) / (self.least or 1.0)


def searched(instance: Instance, schedule: Schedule, sweep: str) -> Searched:
    """Return the results that a sweep of an instance has in a schedule.

    A job is assumed to progress evenly within a segment.
    """
    outcomes = zip(instance.jobs, schedule.jobs, strict=True)
    trials = [(job, outcome) for job, outcome in outcomes if job.sweep == sweep]
    first_s = min((job.submit_s for job, _ in trials), default=0.0)
    told = [reports(job, outcome) for job, outcome in trials]
    table = np.array(sorted(each for own in told for each in own), dtype=float).reshape(-1, 2)
    deadline_s = instance.sweeps[sweep].deadline_s
    end_s = inf if deadline_s is None else deadline_s
    least = min(final_loss(job) for job, _ in trials)
    good_s = [
        min((time_s for time_s, loss in own if loss <= least * (1 + 0.1)), default=nan)
        for own, (job, _) in zip(told, trials, strict=True)
        if final_loss(job) <= least * (1 + TOLERANCE)
    ]
    held = [s for _, outcome in trials for s in outcome.segments]
    spans = np.array([(s.start_s, s.end_s, s.option.own_gpus) for s in held]).reshape(-1, 3)
    return Searched(
        time_s=table[:, 0] - first_s,
        gpu_s=_since(table[:, 0], spans[:, 0], spans[:, 2])
        - _since(table[:, 0], spans[:, 1], spans[:, 2]),
        best=np.minimum.accumulate(table[:, 1]),
        least=least,
        paused_gpu_s=sum(s.option.own_gpus * (s.resume_s - s.start_s) for s in held),
        begun=sum(bool(o.segments) and o.segments[0].start_s < end_s for _, o in trials),
        in_time=float(min(table[table[:, 0] <= end_s, 1], default=inf)),
        all_good_s=float(np.max(good_s)) - first_s,
    )


def _since(times_s: Floats, began_s: Floats, gpus: Floats) -> Floats:
    """Return the GPU-seconds by each of R times if GPUs are held from `began_s` (S,) on forever."""
    order = np.argsort(began_s)
    held = np.append(0.0, np.cumsum(gpus[order]))
    offset = np.append(0.0, np.cumsum(gpus[order] * began_s[order]))
    index = np.searchsorted(began_s[order], times_s)
    return np.asarray(held[index] * times_s - offset[index])


def _losses(job: Job) -> list[float]:
    """Return a trial's losses, the first from before its first epoch; infinite if it diverged."""
    assert job.truth is not None
    assert isinstance(job.truth.learning, tuple)  # instances are validated
    return [inf if loss is None else loss for loss in job.truth.learning]


def final_loss(job: Job) -> float:
    """Return the loss of a trial at its end."""
    assert job.truth is not None
    assert job.epoch is not None
    return _losses(job)[floor(job.truth.work / job.epoch + ROUNDING)]


def reports(job: Job, outcome: JobOutcome) -> list[tuple[float, float]]:
    """Return the time and the loss of each report of a trial."""
    losses, epoch = _losses(job), job.epoch
    assert epoch is not None
    found, done = [], 0.0
    for segment in outcome.segments:
        first, last = (floor(d / epoch + ROUNDING) for d in (done, done + segment.done))
        for k in range(first + 1, last + 1):
            share = min(1.0, (k * epoch - done) / segment.done)
            time_s = segment.resume_s + share * (segment.end_s - segment.resume_s)
            found.append((time_s, losses[k]))
        done += segment.done
    return found
