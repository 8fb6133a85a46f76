"""Whether a request would run, at which size, and when."""

from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenJob, Snapshot
from ronda.questions.why.answer import Why, why
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.changes import in_pieces


@dataclass(frozen=True, slots=True)
class SizeStart:
    """The earliest start of a job at some size, in the shape that starts first."""

    job: SeenJob
    start_s: float


@dataclass(frozen=True)
class Prospect:
    """Whether and why a request would run, and its earliest start at each size, largest first."""

    why: Why
    sizes: tuple[SizeStart, ...]

    @property
    def verdict(self) -> str:
        """``now`` if the site's own rule would start it now, ``later``, ``changed``, or ``never``.

        It is ``changed`` if only another request would start.
        """
        now_s = self.why.waiting.now_s
        if max(self.why.start_s, self.why.replay.start_s) <= now_s:
            return "now"
        if self.why.start_s < inf:
            return "later"
        return "changed" if self.why.easings else "never"


def fit(snapshot: Snapshot, job: str, seconds: float = 1.0) -> Prospect:
    """Return whether a job that a cluster has just got would run, and at which size."""
    found = why(snapshot, job, seconds)
    asked = found.waiting.job
    helps = [one.job for one in found.easings if set(one.kinds) <= {"pieces", GPUS}]
    whole = _size(asked)
    wanted = {*(whole >> k for k in range(whole.bit_length())), *map(_size, helps)}
    sizes = [_first(found.waiting, size) for size in sorted(wanted, reverse=True)]
    return Prospect(found, tuple(one for one in sizes if one is not None))


def _size(job: SeenJob) -> int:
    return job.count * max(1, int(job.per.get(GPUS, 0.0)))


def _first(waiting: WaitingJob, size: int) -> SizeStart | None:
    """Return the shape of a job at a size that starts first, the one most like it of several."""
    gpus = waiting.job.per.get(GPUS, 0.0)
    each = [g for g in range(1, size + 1) if size % g == 0] if gpus >= 1 else [1]
    each.sort(key=lambda g: abs(g - gpus))
    starts = [
        SizeStart(shape, WaitingJob(waiting.outlook, shape).start())
        for g in each
        if (shape := _shape(waiting.job, size // g, float(g))) is not None
    ]
    return min(starts, key=lambda one: one.start_s, default=None)


def _shape(job: SeenJob, count: int, gpus: float) -> SeenJob | None:
    """Return a job in other pieces, with as much for each GPU; None if its slices forbid it."""
    had, slices = job.per.get(GPUS, 0.0), job.slices
    if slices is not None and (slices.listed or (slices.nodes and count % slices.nodes)):
        return job if count == job.count and gpus == had else None
    return in_pieces(replace(job, least=None), count, gpus / had if had >= 1 else 1.0)
