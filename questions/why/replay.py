"""The start that the site's own rule gives a waiting job, if jobs run until their time limits.

The rule looks at waiting jobs in the host's order.
"""

import heapq
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from msgspec.structs import replace as structs_replace

from ronda.instances.base import Floats
from ronda.instances.snapshots.snapshot import SeenJob, Snapshot
from ronda.questions.why.earliest import RouteAsked, WaitingJob, enough
from ronda.questions.why.outlook import FreeRoom

CONSERVATIVE = "conservative backfill"
"""The rule of systems that reserve nodes."""


MOST_TIMES = 500
"""The number of times up to which each end of a reservation is one; beyond, it lasts until the next
time that is known (Slurm rounds ends up to bf_resolution)."""


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """A waiting job, when the site's rule starts it, and on how many pieces of which nodes."""

    job: SeenJob
    start_s: float
    on: dict[str, int]


@dataclass(frozen=True, slots=True)
class Replay:
    """The start of a job by the site's own rule.

    Attributes
    ----------
    rule, start_s
        `CONSERVATIVE`, or ``best effort``, and its start; infinite if there is none by what is
        known.
    planned
        The jobs that start before it or reserve nodes before it, in the order of the queue.
    ahead, skipped
        The number of jobs before it in the queue, and how many of them were not looked at, because
        time was up; its true start may be later.
    starts_now
        Whether the job would start now if it asked otherwise, beside what those before it reserve;
        None if it starts now, or if there are no reservations.
    """

    rule: str
    start_s: float
    planned: tuple[PlannedStart, ...]
    ahead: int
    skipped: int = 0
    starts_now: Callable[[SeenJob], bool] | None = field(default=None, compare=False)


def replay(outlook: FreeRoom, job: SeenJob, seconds: float = 1.0) -> Replay:
    """Return the start that the site's own rule gives a job, looking at others for `seconds`.

    Jobs run until their time limits, and none is stopped. Jobs that come later are not known.
    """
    until = time.perf_counter() + seconds
    # Some systems reserve nodes for jobs in order of priority, and backfill (conservative); in the
    # others any job of the queue that fits starts (Kueue's BestEffortFIFO).
    if outlook.snapshot.system in {"slurm", "ronda"}:
        book, planned, now_s = Reservations(outlook), list[PlannedStart](), outlook.snapshot.now_s
        first, skipped = ahead(outlook.snapshot, job), 0
        for one in first:  # as in Slurm, one that a limit holds back now reserves nothing
            if time.perf_counter() > until:
                skipped += 1
                continue
            waiting = WaitingJob(outlook, one)
            found = None if waiting.ready() > now_s else _best(book, waiting, now_s, now=True)
            if found is not None:
                planned.append(book.take(waiting.job, *found))
        waiting = WaitingJob(outlook, job)
        found = _best(book, waiting, waiting.ready(), now=False)
        start_s = inf if found is None else found[1]
        other = book.starts_now if start_s > now_s else None
        return Replay(CONSERVATIVE, start_s, tuple(planned), len(first), skipped, other)
    return _best_effort(outlook, job, until)


class Reservations:
    """What is held on the nodes of an outlook over time, with the reservations of waiting jobs."""

    def __init__(self, outlook: FreeRoom) -> None:
        self._outlook = outlook
        self._times: list[float] = outlook.times.tolist()
        self._used, self._jobs = (held.copy() for held in outlook.over_time)

    def first(
        self, waiting: WaitingJob, asked: RouteAsked, from_s: float
    ) -> tuple[float, Floats] | None:
        """Return the first time from which a job has room until its time limit, with its room.

        The room is how many of its pieces each node can take, shape (N,).
        """
        since = int(np.searchsorted(self._times, from_s, side="right")) - 1
        for k in range(since, len(self._times)):
            at_s = max(from_s, self._times[k])
            room = self._room(waiting, asked, at_s, k)
            if room is not None:
                return at_s, room
        return None

    def starts_now(self, job: SeenJob) -> bool:
        """Return whether a job may start now and has room until its time limit."""
        waiting, now_s = WaitingJob(self._outlook, job), self._times[0]
        return waiting.ready() <= now_s and any(
            waiting.allowed(asked, now_s) and self._room(waiting, asked, now_s, 0) is not None
            for asked in waiting.asked()
        )

    def _room(self, waiting: WaitingJob, asked: RouteAsked, at_s: float, k: int) -> Floats | None:
        """Return the room of a job that starts at a time, after the k-th; None for too little."""
        end = int(np.searchsorted(self._times, at_s + waiting.job.may_run_s, side="left"))
        for until in (k + 1, end):  # what is short at once need not be looked at further
            most = self._used[k:until].max(axis=0), self._jobs[k:until].max(axis=0)
            room = waiting.room(asked, at_s, most)
            if not enough(waiting.job, room, self._outlook, asked.skip):
                return None
        return room

    def take(self, job: SeenJob, asked: RouteAsked, start_s: float, room: Floats) -> PlannedStart:
        """Reserve the fullest nodes that have room for a job until its time limit.

        Slurm's backfill keeps sets of nodes, so that a later start has them to itself.
        """
        whole = job.exclusive or (
            self._outlook.snapshot.system == "slurm" and start_s > self._times[0]
        )
        end_s = start_s + job.may_run_s
        first, last = self._at(start_s), len(self._times) if end_s == inf else self._at(end_s)
        on = _fullest(job, room)
        for n, pieces in on.items():
            held = self._outlook.has[n] if whole else asked.per * pieces
            self._used[first:last, n] += held
            self._jobs[first:last, n] += 1
        return _planned(self._outlook, job, start_s, on)

    def _at(self, at_s: float) -> int:
        """Return the place of a time among those at which something changes; add it if new."""
        k = int(np.searchsorted(self._times, at_s))
        if k == len(self._times) or (self._times[k] != at_s and len(self._times) < MOST_TIMES):
            self._times.insert(k, at_s)
            self._used = np.insert(self._used, k, self._used[k - 1], axis=0)
            self._jobs = np.insert(self._jobs, k, self._jobs[k - 1], axis=0)
        return k


def _fullest(job: SeenJob, room: Floats) -> dict[int, int]:
    """Return on how many nodes with room (N,) the pieces of a job go, most on one first."""
    left, on = job.count, dict[int, int]()
    for n in np.argsort(-room, kind="stable").tolist():
        if left == 0:
            break
        on[n] = int(min(left, room[n]))
        left -= on[n]
    return on


def _planned(
    outlook: FreeRoom, job: SeenJob, start_s: float, on: Mapping[int, int]
) -> PlannedStart:
    nodes = outlook.snapshot.nodes
    return PlannedStart(job, start_s, {nodes[n].name: pieces for n, pieces in on.items()})


def delayed(
    outlook: FreeRoom, job: SeenJob, start_s: float, before: Replay, seconds: float
) -> list[tuple[str, float]] | None:
    """Return the jobs before a job in the queue that wait longer if it starts at a time.

    With each comes how many seconds. None if there are no reservations, or if not all could be
    looked at in so many seconds.
    """
    if before.rule != CONSERVATIVE or before.skipped:
        return None
    until, book, found = time.perf_counter() + seconds, Reservations(outlook), []
    waiting = WaitingJob(outlook, job)
    asked = next(each for each in waiting.asked() if waiting.fits(each, start_s))
    book.take(waiting.job, asked, start_s, waiting.room(asked, start_s))
    for one in before.planned:
        if time.perf_counter() > until:
            return None
        other = WaitingJob(outlook, one.job)
        best = _best(book, other, outlook.snapshot.now_s, now=True)
        if best is None:
            found.append((one.job.id, inf))
            continue
        book.take(other.job, *best)
        if best[1] > one.start_s:
            found.append((one.job.id, best[1] - one.start_s))
    return found


def _best(
    book: Reservations, waiting: WaitingJob, from_s: float, *, now: bool
) -> tuple[RouteAsked, float, Floats] | None:
    """Return the way of a job with the first start, with its start and room; None for no start.

    Its limits must have room at its start, or already `now`.
    """
    best = None
    for asked in waiting.asked():
        begin_s = from_s if waiting.allowed(asked, from_s) else inf
        if begin_s == inf and not now:
            begin_s = waiting.allowed_from(asked, from_s)
        if begin_s == inf:
            continue
        found = book.first(waiting, asked, begin_s)
        if found is not None and (best is None or found[0] < best[1]):
            best = asked, *found
    return best


def _best_effort(outlook: FreeRoom, job: SeenJob, until: float) -> Replay:
    """Start every job of the queue that fits, whenever something ends, until the job starts.

    As one more job that runs can only delay others, a start found earlier is a bound.
    """
    first, planned = ahead(outlook.snapshot, job), list[PlannedStart]()
    known = [(WaitingJob(outlook, job).start(), len(first), job)]
    for k, one in enumerate(first):
        if time.perf_counter() < until:
            known.append((WaitingJob(outlook, one).start(), k, one))
    skipped = len(first) + 1 - len(known)
    heapq.heapify(known)
    while known[0][0] < inf:
        bound_s, k, one = heapq.heappop(known)
        waiting = WaitingJob(outlook, one)
        start_s = max(bound_s, waiting.start())
        if start_s > bound_s:
            heapq.heappush(known, (start_s, k, one))
        elif one is job:
            return Replay("best effort", start_s, tuple(planned), len(first), skipped)
        else:
            asked = next(each for each in waiting.asked() if waiting.fits(each, start_s))
            on = _fullest(waiting.job, waiting.room(asked, start_s))
            begun = _planned(waiting.outlook, waiting.job, start_s, on)
            planned.append(begun)
            runs = structs_replace(begun.job, start_s=begun.start_s, on=begun.on)
            jobs = tuple(runs if one.id == runs.id else one for one in outlook.snapshot.jobs)
            outlook = FreeRoom(replace(outlook.snapshot, jobs=jobs))
        if time.perf_counter() > until:
            start_s = min(start for start, _, one in known if one is job)
            left = skipped + len(known) - 1
            return Replay("best effort", start_s, tuple(planned), len(first), left)
    return Replay("best effort", inf, tuple(planned), len(first), skipped)


def place(job: SeenJob) -> tuple[float, float, str]:
    """Return the place of a job in the queue: by the host's rank, then by submission."""
    return -(job.rank or 0.0), job.submit_s, job.id


def queue(snapshot: Snapshot) -> list[SeenJob]:
    """Return the waiting jobs in the order in which the host looks at them."""
    return sorted((job for job in snapshot.jobs if job.start_s is None), key=place)


def ahead(snapshot: Snapshot, job: SeenJob) -> list[SeenJob]:
    """Return the jobs that the host looks at before a job, in order."""
    return [one for one in queue(snapshot) if one.id != job.id and place(one) < place(job)]
