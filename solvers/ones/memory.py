"""What ONES remembers of each live job from tick to tick, and how it brings it up to date."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from ronda.formulations.clock import checkpoint
from ronda.formulations.models.learning import epochs_over
from ronda.instances.base import Record
from ronda.instances.job import Allocation
from ronda.instances.plan import PlanMemory
from ronda.solvers.ones.board import OnesJob
from ronda.solvers.ones.progress import features

MEASUREMENTS = 5
"""The last measurements at a size that count (the artifact's num_monitored_throughputs)."""

PAST = 256
"""Finished jobs that are remembered, the last ones: a process may run for months."""


class JobMemory(Record, frozen=True, array_like=True):
    """A live job as ONES knows it.

    `limit` is R, its batch-size limit in GPUs; `samples` Y, trained on so far, follow from the work
    `done`; in `ran_s` seconds it held GPUs. `placed` and `scaled` are the epochs completed when it
    was last given GPUs or other ones, and when their number last changed while it ran.
    """

    limit: int
    samples: float = 0.0
    done: float = 0.0
    ran_s: float = 0.0
    placed: int = 0
    scaled: int = 0

    def epochs(self, epoch: float) -> int:
        """Return the epochs that it has completed."""
        return epochs_over(self.samples, epoch)


class FinishedLog(Record, frozen=True, array_like=True):
    """The log of a job that ended: features after each epoch, and the progress that these were."""

    rows: list[list[float]]
    done: list[float]


class Trained(Record, frozen=True):
    """A trained predictor, and how many jobs had ended with a log by then."""

    ended: int
    weights: list[float]
    shift: list[float]
    scale: list[float]


class Population(Record, frozen=True):
    """The genomes (K, GPUs) of a pool, in numbers of the jobs `ids`."""

    ids: list[str]
    genomes: list[list[int]]


class OnesMemory(PlanMemory, frozen=False):  # type: ignore[misc]  # a tick changes it
    """What is carried from tick to tick, written at `now_s`.

    `ended` counts the jobs that ended with a log. By job id: live `jobs`; `speeds`, samples per
    second of the last epochs by number of GPUs; `rows`, features of the predictor after each epoch,
    and samples; `past`, of the jobs that ended, in this order. By pool: the last `population`, and
    what was `deployed` of it.
    """

    key: ClassVar[str] = "ones"

    now_s: float = 0.0
    ended: int = 0
    jobs: dict[str, JobMemory] = {}
    speeds: dict[str, dict[int, list[float]]] = {}
    rows: dict[str, list[list[float]]] = {}
    past: dict[str, FinishedLog] = {}
    predictor: Trained | None = None
    population: dict[int, Population] = {}
    deployed: dict[int, list[list[str]]] = {}

    def measure(self, job_id: str, gpus: int, samples_per_s: float) -> None:
        """Note the speed of an epoch, or of the part of one that a change of GPUs ended."""
        known = self.speeds.setdefault(job_id, {})
        known[gpus] = [*known.get(gpus, ()), samples_per_s][-MEASUREMENTS:]

    def change(self, job_id: str, **fields: Any) -> None:
        """Change fields of a job."""
        self.jobs[job_id] = replace(self.jobs[job_id], **fields)

    def look(self, live: Mapping[str, OnesJob], now_s: float) -> None:
        """Bring the memory up to date with the live jobs."""
        self._bury(live.keys())
        passed_s, self.now_s = now_s - self.now_s, now_s
        for job_id, job in live.items():
            checkpoint()
            allocation = job.state.allocation
            if job_id not in self.jobs:
                least = int(job.sizes[job.sizes > 0].min(initial=1))
                done = _done(job, now_s)
                self.jobs[job_id] = JobMemory(max(least, job.gpus), samples=done, done=done)
            elif allocation is not None:
                self._progress(job, allocation, passed_s)

    def _bury(self, live: Collection[str]) -> None:
        """Turn the logs of jobs that are gone into history."""
        for job_id in [i for i in self.jobs if i not in live]:
            total = self.jobs.pop(job_id).samples
            self.speeds.pop(job_id, None)
            rows = self.rows.pop(job_id, [])
            shares = [samples / total for *_, samples in rows if samples < total]
            if shares:
                self.ended += 1
                kept = [row[:-1] for row in rows[: len(shares)]]
                self.past[job_id] = FinishedLog(kept, shares)
        for job_id in list(self.past)[:-PAST]:
            del self.past[job_id]

    def _progress(self, job: OnesJob, held: Allocation, passed_s: float) -> None:
        """Count the samples of a running job, and log the epoch that it may have completed."""
        known = self.jobs[job.id]
        done = max(known.done, _done(job, self.now_s))
        samples = known.samples + (done - known.done) / job.worth(held.option.batch)
        now = replace(known, samples=samples, done=done, ran_s=known.ran_s + passed_s)
        self.jobs[job.id] = now
        if now.epochs(job.epoch) > known.epochs(job.epoch):
            self.measure(job.id, held.option.gpus, job.speed(held))
            row = [*seen(job, samples), samples]
            self.rows.setdefault(job.id, []).append(row)


def _done(job: OnesJob, now_s: float) -> float:
    state = job.state
    if state.allocation is None:
        return state.done
    rate = job.speed(state.allocation) * job.worth(state.allocation.option.batch)
    return state.done + rate * max(0.0, now_s - state.since_s)


def seen(job: OnesJob, samples: float) -> list[float]:
    """Return a live job's features.

    A job whose losses are not observed has the same constants for them as all such jobs.
    """
    log = job.state.log
    if log is None:
        return features(job.epoch, 1.0, samples / job.epoch, 1.0, 0.0)
    loss = log.initial_loss if log.loss is None else log.loss
    return features(job.epoch, log.initial_loss, samples / job.epoch, loss, log.accuracy)
