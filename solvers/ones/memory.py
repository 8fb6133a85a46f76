"""What ONES remembers of each live job from tick to tick, and how it brings it up to date.

Each job's records are entries of their own in a plan's details, so that a journal writes only those
that changed.
"""

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, field, replace
from math import log
from typing import Any

from ronda.formulations.clock import checkpoint
from ronda.formulations.models.learning import epochs_over
from ronda.formulations.ones.limits import MEASUREMENTS
from ronda.formulations.prediction.progress import MAX_INITIAL_LOSS
from ronda.instances.job import Allocation, JobState
from ronda.solvers.ones.board import Ways

EPOCHS = 30
"""Epochs that a job is taken to have whose data set is not known (their mean in the workload)."""

EPOCH_S = 60.0
"""Seconds of an epoch on the requested GPUs if not even the job's work is estimated."""

LEAST_DECREASE = -1e6
"""Least fall of a loss, relative to the first one, that is told: one that explodes stays finite."""

PAST = 256
"""Finished jobs that are remembered, the last ones: a process may run for months."""


@dataclass(frozen=True, slots=True)
class Member:
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


@dataclass(slots=True)
class Memory:
    """What is carried from tick to tick, written at `now_s`.

    `ended` counts the jobs that ended with a log. By job id: live `members`; `speeds`, samples per
    second of the last epochs by number of GPUs (text, for JSON); `rows`, features of the predictor
    after each epoch; `past`, of the jobs that ended, in this order: number, features, and progress.
    """

    now_s: float = 0.0
    ended: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    speeds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    rows: dict[str, list[list[float]]] = field(default_factory=dict)
    past: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, details: Mapping[str, Any]) -> "Memory":
        """Read a plan's details; nothing of them is changed later."""
        made = cls(*details.get("ones.clock", (0.0, 0)))
        made.members = {i: Member(*fields) for i, fields in details.get("ones.jobs", {}).items()}
        for key, value in details.items():
            kind, _, job_id = key.partition(" ")
            if kind == "ones.speeds":
                made.speeds[job_id] = value
            elif kind == "ones.rows":
                made.rows[job_id] = value
            elif kind == "ones.past":
                made.past[job_id] = value
        made.past = dict(sorted(made.past.items(), key=lambda item: item[1]["number"]))
        return made

    def write(self) -> dict[str, Any]:
        """Return details."""
        details: dict[str, Any] = {
            "ones.clock": [self.now_s, self.ended],
            "ones.jobs": {i: list(astuple(m)) for i, m in self.members.items()},
        }
        for kind, records in (("speeds", self.speeds), ("rows", self.rows), ("past", self.past)):
            details |= {f"ones.{kind} {job_id}": value for job_id, value in records.items()}
        return details

    def measure(self, job_id: str, gpus: int, samples_per_s: float) -> None:
        """Note the speed of an epoch, or of the part of one that a change of GPUs ended."""
        known = self.speeds.get(job_id, {})
        last = [*known.get(str(gpus), ()), samples_per_s][-MEASUREMENTS:]
        if last != known.get(str(gpus)):
            self.speeds[job_id] = known | {str(gpus): last}

    def change(self, job_id: str, **fields: Any) -> None:
        """Change fields of a member."""
        self.members[job_id] = replace(self.members[job_id], **fields)


def epoch_of(ways: Ways) -> float:
    """Return D, the samples of an epoch; an assumption (see `EPOCHS`) where the job tells none."""
    job = ways.state.job
    if job.epoch is not None:
        return job.epoch
    if job.estimate is not None:
        return job.estimate.work / EPOCHS
    size = int(ways.sizes()[-1])
    speed = ways.samples_per_s(size, ways.of.shape.nodes(size)) if size else 1.0
    return EPOCH_S * speed


def look(memory: Memory, ways: dict[str, Ways], epochs: dict[str, float], now_s: float) -> None:
    """Bring the memory up to date with live jobs; `epochs` are the samples of an epoch."""
    _bury(memory, ways.keys())
    passed_s = now_s - memory.now_s
    for job_id, way in ways.items():
        checkpoint()
        allocation = way.state.allocation
        if job_id not in memory.members:
            size = way.sizes()
            least = int(size[size > 0].min(initial=1))
            held = allocation.option.gpus if allocation is not None else 0
            done = _done(way, now_s)
            memory.members[job_id] = Member(limit=max(least, held), samples=done, done=done)
        elif allocation is not None:
            _progress(memory, way, allocation, epochs[job_id], now_s, passed_s)
    memory.now_s = now_s


def _bury(memory: Memory, live: Collection[str]) -> None:
    """Turn the logs of jobs that are gone into history."""
    for job_id in [i for i in memory.members if i not in live]:
        member = memory.members.pop(job_id)
        memory.speeds.pop(job_id, None)
        rows = memory.rows.pop(job_id, [])
        total = member.samples
        shares = [samples / total for *_, samples in rows if samples < total]
        if shares:
            memory.ended += 1
            kept = [row[:-1] for row in rows[: len(shares)]]
            memory.past[job_id] = {"number": memory.ended, "rows": kept, "done": shares}
    for job_id in list(memory.past)[:-PAST]:
        del memory.past[job_id]


def _done(ways: Ways, now_s: float) -> float:
    """Return the work done by now, at the speed on the nodes that the job really has."""
    state = ways.state
    if state.allocation is None:
        return state.done
    rate = ways.speed(state.allocation) * ways.worth(state.allocation.option.batch)
    return state.done + rate * max(0.0, now_s - state.since_s)


def _progress(
    memory: Memory, ways: Ways, held: Allocation, epoch: float, now_s: float, passed_s: float
) -> None:
    """Count the samples of a running job, and log the epoch that it may have completed."""
    job_id, option = ways.state.job.id, held.option
    member = memory.members[job_id]
    done = max(member.done, _done(ways, now_s))
    before = member.epochs(epoch)
    samples = member.samples + (done - member.done) / ways.worth(option.batch)
    memory.change(job_id, samples=samples, done=done, ran_s=member.ran_s + passed_s)
    if memory.members[job_id].epochs(epoch) > before:
        memory.measure(job_id, option.gpus, ways.speed(held))
        row = [*features(ways.state, epoch, samples), samples]
        memory.rows[job_id] = [*memory.rows.get(job_id, []), row]


def features(state: JobState, epoch: float, samples: float) -> list[float]:
    """Return a job's features, see `ronda.formulations.prediction.progress.FEATURES`.

    A job whose losses are not observed has the same constants for them as all such jobs.
    """
    seen = state.log
    initial = 1.0 if seen is None else min(seen.initial_loss, MAX_INITIAL_LOSS)
    loss = initial if seen is None or seen.loss is None else seen.loss
    decrease = max(LEAST_DECREASE, 1.0 - loss / initial)
    accuracy = 0.0 if seen is None else min(1.0, seen.accuracy)  # some are logged in percent
    return [log(epoch), initial, samples / epoch, decrease, accuracy]
