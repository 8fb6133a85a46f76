"""The features of a submitted job, which predict its size.

User, virtual cluster, name, GPUs, hour and day of the week come from Helios' QSSF service (Hu et
al., SC'21; the successor's artifact lists them). A rare name counts as the most similar frequent
name. The other features are our own: the sizes of complete jobs of the same user on the same number
of GPUs, and how often such jobs arrive. Hours count from the start of the horizon.
"""

from collections import deque
from difflib import get_close_matches
from math import log, nan, sqrt
from statistics import fmean

from ronda.instances.job import Job

COLUMNS = (
    "user",
    "partition",
    "name",
    "gpus",
    "hour",
    "day of the week",
    "last size",
    "mean of 5",
    "mean of 20",
    "spread of 20",
    "last of all",
    "mean of all",
    "came within an hour",
    "came within a minute",
    "seconds since the last",
)
"""The names of the features; sizes are logarithms of work."""

CATEGORIES = (0, 1, 2)
"""The columns whose numbers stand for words."""

LAST = 20
"""The most sizes to remember."""

NEAR = 0.6
"""The least similarity of names (difflib's ratio), as in the artifact."""


class RecentJobs:
    """The last jobs of one user on one number of GPUs."""

    __slots__ = ("came_s", "last_s", "sizes")

    def __init__(self) -> None:
        self.sizes: deque[float] = deque(maxlen=LAST)
        self.came_s: deque[float] = deque()
        self.last_s = nan


class Features:
    """The source of rows of `COLUMNS` for jobs that arrive, made from jobs that have ended."""

    def __init__(
        self, users: tuple[str, ...], partitions: tuple[str, ...], names: tuple[str, ...]
    ) -> None:
        self._users, self._partitions, self._names = map(_places, (users, partitions, names))
        self._kinds: dict[tuple[object, ...], RecentJobs] = {}
        self._all: dict[str, deque[float]] = {}
        self._near: dict[str, float] = {}

    def submit(self, job: Job, now_s: float) -> list[float]:
        """Return the row of a submitted job, and record the submission."""
        kind = self._kind(job)
        while kind.came_s and kind.came_s[0] < now_s - 3600.0:
            kind.came_s.popleft()
        sizes, of_all = list(kind.sizes), self._all.get(job.partition, ())
        row = [
            self._users.get(job.user or "", nan),
            self._partitions.get(job.partition, nan),
            self._name(job.name),
            job.gpus,
            now_s / 3600.0 % 24,
            now_s // 86_400.0 % 7,
            sizes[-1] if sizes else nan,
            fmean(sizes[-5:]) if sizes else nan,
            fmean(sizes) if sizes else nan,
            _spread(sizes),
            of_all[-1] if of_all else nan,
            fmean(of_all) if of_all else nan,
            len(kind.came_s),
            sum(1 for each in kind.came_s if each > now_s - 60.0),
            now_s - kind.last_s,
        ]
        kind.came_s.append(now_s)
        kind.last_s = now_s
        return row

    def end(self, job: Job, work: float) -> None:
        """Record the size of a complete job."""
        self._kind(job).sizes.append(log(work))
        self._all.setdefault(job.partition, deque(maxlen=LAST)).append(log(work))

    def _kind(self, job: Job) -> RecentJobs:
        key = job.partition, job.user, job.gpus
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = RecentJobs()
        return found

    def _name(self, name: str | None) -> float:
        """Return the number of the frequent name that is most similar to a name, else NaN."""
        if name is None or not self._names:
            return nan
        found = self._names.get(name)
        if found is None:
            found = self._near.get(name)
        if found is None:
            near = get_close_matches(name, self._names, n=1, cutoff=NEAR)
            found = self._near[name] = self._names[near[0]] if near else nan
        return found


def _spread(sizes: list[float]) -> float:
    if len(sizes) < 2:
        return nan
    mean = fmean(sizes)
    return sqrt(fmean((size - mean) ** 2 for size in sizes))


def _places(words: tuple[str, ...]) -> dict[str, float]:
    return {word: float(place) for place, word in enumerate(words)}
