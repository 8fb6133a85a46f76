"""What ONES remembers of each live job from tick to tick, in a plan's details.

Each job's records are entries of their own, so that a journal writes only those that changed.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from ronda.formulations.models.learning import epochs_over
from ronda.formulations.ones.limits import MEASUREMENTS
from ronda.instances.job import JobState
from ronda.solvers.ones.ways import Ways

EPOCHS = 30
"""Epochs that a job is taken to have whose data set is not known (their mean in the workload)."""

EPOCH_S = 60.0
"""Seconds of an epoch on the requested GPUs if not even the job's work is estimated."""


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


def epoch_of(state: JobState, ways: Ways) -> float:
    """Return D, the samples of an epoch; an assumption (see `EPOCHS`) where the job tells none."""
    job = state.job
    if job.epoch is not None:
        return job.epoch
    if job.estimate is not None:
        return job.estimate.work / EPOCHS
    size = int(ways.sizes()[-1])
    speed = ways.samples_per_s(size, ways.of.shape.nodes(size)) if size else 1.0
    return EPOCH_S * speed
