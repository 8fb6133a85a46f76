"""The memory of ONES: the knowledge of each live job that it carries from tick to tick."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec.structs import replace

from ronda.instances.base import Record
from ronda.instances.clock import checkpoint
from ronda.instances.models.learning import epochs_over
from ronda.instances.plan import PlanMemory
from ronda.systems.ones.progress import features
from ronda.systems.ones.subproblem import OnesJob

PAST = 256
"""Number of latest finished jobs that are kept, because a process may run for months."""


class JobMemory(Record, frozen=True, array_like=True):
    """The knowledge of ONES about a live job.

    `limit` is R, the batch-size limit in GPUs. `samples` is Y, the number of samples trained so
    far, which follows from the work `done`. The job has held GPUs for `ran_s` seconds. `placed` is
    the number of epochs completed when its GPUs last changed, and `scaled` when their number last
    changed while it ran.
    """

    limit: int
    samples: float = 0.0
    done: float = 0.0
    ran_s: float = 0.0
    placed: int = 0
    scaled: int = 0

    def epochs(self, epoch: float) -> int:
        """Return the number of completed epochs of `epoch` samples."""
        return epochs_over(self.samples, epoch)


class FinishedLog(Record, frozen=True, array_like=True):
    """The log of a finished job: features and progress after each epoch."""

    rows: list[list[float]]
    done: list[float]


class Trained(Record, frozen=True):
    """A trained predictor, and the number of jobs that had ended with a log by that time."""

    ended: int
    weights: list[float]
    shift: list[float]
    scale: list[float]


class Population(Record, frozen=True):
    """The genomes of a pool, shape (K, GPUs), with numbers that index the jobs `ids`."""

    ids: list[str]
    genomes: list[list[int]]


Speeds = dict[int, list[float]]
"""Samples per second of a job's latest epochs, keyed by number of GPUs."""


class OnesMemory(PlanMemory, frozen=True):
    """The memory that is carried from tick to tick, written at `now_s`.

    `ended` counts the jobs that ended with a log. Live `jobs`, their `speeds`, `rows` (features and
    samples after each epoch) and the logs `past` of ended jobs, oldest first, are keyed by job id.
    The last `population` and its `deployed` genome are keyed by pool.
    """

    key: ClassVar[str] = "ones"

    now_s: float = 0.0
    ended: int = 0
    jobs: dict[str, JobMemory] = {}
    speeds: dict[str, Speeds] = {}
    rows: dict[str, list[list[float]]] = {}
    past: dict[str, FinishedLog] = {}
    predictor: Trained | None = None
    population: dict[int, Population] = {}
    deployed: dict[int, list[list[str]]] = {}

    def at(self, now_s: float, live: Mapping[str, OnesJob]) -> "OnesMemory":
        """Return the memory updated with the live jobs.

        The samples of running jobs are counted and newly completed epochs are logged. Logs of ended
        jobs become history.
        """
        jobs, speeds, rows = dict[str, JobMemory](), dict[str, Speeds](), dict(self.rows)
        past = self.past | {i: log for i in self.jobs if i not in live and (log := self._log(i))}
        for job_id, job in live.items():
            checkpoint()
            known, held, done = self.jobs.get(job_id), job.state.allocation, _done(job, now_s)
            if job_id in self.speeds:
                speeds[job_id] = self.speeds[job_id]
            if known is None:
                least = int(job.sizes[job.sizes > 0].min(initial=1))
                jobs[job_id] = JobMemory(max(least, job.gpus), samples=done, done=done)
                continue
            jobs[job_id] = known
            if held is None:
                continue
            done = max(known.done, done)
            samples = known.samples + (done - known.done) / job.worth(held.option.batch)
            ran_s = known.ran_s + now_s - self.now_s
            jobs[job_id] = replace(known, samples=samples, done=done, ran_s=ran_s)
            if jobs[job_id].epochs(job.epoch) > known.epochs(job.epoch):
                speeds[job_id] = noted(speeds.get(job_id, {}), held.option.gpus, job.speed(held))
                rows[job_id] = [*rows.get(job_id, ()), [*seen(job, samples), samples]]
        return replace(
            self,
            now_s=now_s,
            ended=self.ended + len(past) - len(self.past),
            jobs=jobs,
            speeds=speeds,
            rows={job_id: own for job_id, own in rows.items() if job_id in live},
            past=dict(list(past.items())[-PAST:]),
        )

    def _log(self, job_id: str) -> FinishedLog | None:
        """Return the log of an ended job as training data; None if it has no usable rows."""
        rows, total = self.rows.get(job_id, []), self.jobs[job_id].samples
        shares = [samples / total for *_, samples in rows if samples < total]
        return FinishedLog([row[:-1] for row in rows[: len(shares)]], shares) if shares else None


def noted(known: Speeds, gpus: int, samples_per_s: float) -> Speeds:
    """Return speeds with one more entry, for an epoch or for a part that a change of GPUs ended."""
    # The latest 5 speeds on a number of GPUs count (the artifact's num_monitored_throughputs).
    return known | {gpus: [*known.get(gpus, ()), samples_per_s][-5:]}


def _done(job: OnesJob, now_s: float) -> float:
    state = job.state
    if state.allocation is None:
        return state.done
    rate = job.speed(state.allocation) * job.worth(state.allocation.option.batch)
    return state.done + rate * max(0.0, now_s - state.since_s)


def seen(job: OnesJob, samples: float) -> list[float]:
    """Return the features of a live job.

    Jobs without observed losses all have the same constants in their place.
    """
    log = job.state.log
    if log is None:
        return features(job.epoch, 1.0, samples / job.epoch, 1.0, 0.0)
    loss = log.initial_loss if log.loss is None else log.loss
    return features(job.epoch, log.initial_loss, samples / job.epoch, loss, log.accuracy)
