"""The rolling estimate of Helios' QSSF service: sizes of the last jobs like a job.

Hu et al. (SC'21), as in the authors' artifact: jobs of the same name, or else of the names nearest
to it, of the same user, or else of all; of these the ones on as many GPUs, if there are any. A job
of a new name is like all of its user, one of a new user like all jobs. Where traces have no users,
jobs on as many GPUs stand for the user's (ours).
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from difflib import get_close_matches

from ronda.instances.job import Job

REMEMBERED = 200
"""Complete jobs that are remembered of a user, of a name, and of all: the last ones."""

NAMES = 300
"""Names that are remembered: those that were seen last."""

NEAR, NEAREST = 0.6, 2
"""Least likeness of names (difflib's ratio), and how many of the nearest count: the artifact's."""

Past = tuple[str | None, int, float]
"""User, GPUs and work of a complete job."""


class Rolling:
    """Complete jobs, remembered by name and user."""

    def __init__(self) -> None:
        self._all: deque[float] = deque(maxlen=REMEMBERED)
        self._of: dict[object, deque[float]] = {}
        self._named: OrderedDict[str, deque[Past]] = OrderedDict()

    def end(self, job: Job, work: float) -> None:
        """Remember a job that is complete."""
        self._all.append(work)
        self._of.setdefault(_whose(job), deque(maxlen=REMEMBERED)).append(work)
        if job.name is not None:
            past = job.user, job.gpus, work
            self._named.setdefault(job.name, deque(maxlen=REMEMBERED)).append(past)
            self._named.move_to_end(job.name)
            if len(self._named) > NAMES:
                self._named.popitem(last=False)

    def like(self, job: Job) -> list[float]:
        """Return the sizes of complete jobs like a job; none before the first is complete."""
        named = self._alike(job.name)
        if not named:
            return list(self._of.get(_whose(job), self._all))
        same = [past for past in named if past[0] == job.user] or named
        found = [past for past in same if past[1] == job.gpus] or same
        return [work for _, _, work in found]

    def _alike(self, name: str | None) -> Sequence[Past]:
        """Return the jobs of a name, or of those nearest to it."""
        if name is None:
            return ()
        if name in self._named:
            return self._named[name]
        near = get_close_matches(name, self._named, n=NEAREST, cutoff=NEAR)
        return [past for each in near for past in self._named[each]]


def _whose(job: Job) -> object:
    """Return what a job shares with others of its user, or of its size where users are unknown."""
    return job.user if job.user is not None else job.gpus
