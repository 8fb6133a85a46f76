"""The queue of live jobs, waiting and running, in the order of submission, and their ends.

Before it is in the queue, a job waits until it may start: from its `Job.eligible_s` on, and after
the jobs that must come first. The end of a job is its final end: one that fails and tries again has
not ended.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import inf
from typing import TypeVar

from ronda.horizon.live import LiveJob
from ronda.instances.job import After, Allocation, Job, JobState

Item = TypeVar("Item")


class Queue:
    """The states of live jobs by id; `waiting`, `running` and `held` are always in order."""

    def __init__(self) -> None:
        self._waiting: dict[str, JobState] = {}
        self._running: dict[str, JobState] = {}
        self._held: dict[str, Allocation] = {}
        self._place: dict[str, int] = {}  # in the order of submission
        self._mixed = False

    @property
    def waiting(self) -> dict[str, JobState]:
        """The waiting jobs."""
        self._sort()
        return self._waiting

    @property
    def running(self) -> dict[str, JobState]:
        """The running jobs."""
        self._sort()
        return self._running

    @property
    def held(self) -> dict[str, Allocation]:
        """The allocations of the running jobs."""
        self._sort()
        return self._held

    def submit(self, job_id: str, place: int, state: JobState) -> None:
        """Add a new waiting job; `place` is its place among all jobs by submission."""
        if self._waiting:
            self._mixed |= self._place[next(reversed(self._waiting))] > place
        self._place[job_id] = place
        self._waiting[job_id] = state

    def run(self, job_id: str, state: JobState) -> None:
        """Move a job to the running ones, or update the state of a running job."""
        if self._waiting.pop(job_id, None) is not None and self._running:
            last = next(reversed(self._running))
            self._mixed |= self._place[last] > self._place[job_id]
        if state.allocation is None:
            raise ValueError(f"job {job_id!r} runs on nothing")
        self._running[job_id], self._held[job_id] = state, state.allocation

    def wait(self, job_id: str, state: JobState) -> None:
        """Move a running job to the waiting ones."""
        del self._running[job_id], self._held[job_id]
        self._waiting[job_id] = state
        self._mixed = True

    def leave(self, job_id: str) -> None:
        """Remove a job that has ended."""
        for jobs in (self._waiting, self._running, self._held, self._place):
            jobs.pop(job_id, None)

    def _sort(self) -> None:
        if self._mixed:
            self._waiting, self._running = map(self._ordered, (self._waiting, self._running))
            self._held = self._ordered(self._held)
            self._mixed = False

    def _ordered(self, jobs: dict[str, Item]) -> dict[str, Item]:
        return {job_id: jobs[job_id] for job_id in sorted(jobs, key=self._place.__getitem__)}


class Ends:
    """The times at which running jobs end if nothing changes, the earliest first."""

    def __init__(self) -> None:
        # End, index, restarts, entry, job.
        self._heap: list[tuple[float, int, int, int, LiveJob]] = []
        self._entries = count()

    def expect(self, live: LiveJob) -> None:
        """Record a job's expected end, which replaces its earlier one."""
        entry = live.end_s, live.index, live.state.restarts, next(self._entries), live
        heapq.heappush(self._heap, entry)

    def next_s(self) -> float:
        """Return the time at which the next job ends; infinity if none does."""
        while self._heap:
            end_s, _, version, _, live = self._heap[0]
            if live.end_s == end_s and live.state.restarts == version:
                return end_s
            heapq.heappop(self._heap)
        return float("inf")

    def pop(self) -> LiveJob:
        """Remove and return the job that ends next."""
        return heapq.heappop(self._heap)[4]


Times = Mapping[tuple[str, str], float]
"""The time of each event, by job and `After.when`; infinite for an event that will never come."""


class Order:
    """The jobs of a run that are not in its queue yet, and the events that they wait for."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs, self._submitted = jobs, 0
        self._times: dict[tuple[str, str], float] = {}
        self._behind: defaultdict[str, list[int]] = defaultdict(list)
        for k, job in enumerate(jobs):
            for other in {after.job for after in job.after}:
                self._behind[other].append(k)
        self._open: set[int] = set()  # submitted, and not handed out
        self._due: list[tuple[float, int, bool]] = []  # time, job, and whether it can ever start

    def next_s(self) -> float:
        """Return the time at which the next job is submitted or may start; infinity if none is."""
        left = self._submitted < len(self._jobs)
        submit_s = self._jobs[self._submitted].submit_s if left else inf
        return min(submit_s, self._due[0][0]) if self._due else submit_s

    def until(self, now_s: float) -> Iterator[tuple[int, float, bool]]:
        """Yield each job that may start by `now_s`, or never can, with the time and which it is."""
        while self.next_s() <= now_s:
            while self._submitted < len(self._jobs):
                if self._jobs[self._submitted].submit_s > now_s:
                    break
                self._open.add(self._submitted)
                self._weigh(self._submitted, self._jobs[self._submitted].submit_s)
                self._submitted += 1
            if self._due and self._due[0][0] <= now_s:
                time_s, k, can = heapq.heappop(self._due)
                if k in self._open:
                    self._open.remove(k)
                    yield k, time_s, can

    def started(self, job: str, now_s: float) -> None:
        """Record the first start of a job."""
        self._happen(job, {"start": now_s}, now_s)

    def ended(self, job: str, end_s: float, *, well: bool) -> None:
        """Record the final end of a job, which may never have started."""
        ok_s, notok_s = (end_s, inf) if well else (inf, end_s)
        times = {"start": end_s, "any": end_s, "ok": ok_s, "notok": notok_s}
        self._happen(job, times, end_s)

    def _happen(self, job: str, times: Mapping[str, float], now_s: float) -> None:
        if job not in self._behind:
            return
        for when, time_s in times.items():
            self._times.setdefault((job, when), time_s)
        for k in self._behind[job]:
            if k in self._open:
                self._weigh(k, now_s)

    def _weigh(self, k: int, now_s: float) -> None:
        """Enter the time at which a job may start, as far as it is known by `now_s`."""
        job = self._jobs[k]
        first_s = job.submit_s if job.eligible_s is None else job.eligible_s
        time_s = after_s(job.after, self._times, every=job.after_all)
        if time_s == inf:
            heapq.heappush(self._due, (now_s, k, False))
        elif time_s is not None:
            heapq.heappush(self._due, (max(first_s, time_s), k, True))


def after_s(after: Sequence[After], times: Times, *, every: bool) -> float | None:
    """Return the time from which `every` one of some events, or one of them, is past.

    The time is infinite if that can never be, and None if it is not known yet.
    """
    if not after:
        return 0.0
    found = [times.get((each.job, each.when)) for each in after]
    ends = [None if s is None else s + each.delay_s for s, each in zip(found, after, strict=True)]
    known = [s for s in ends if s is not None]
    if every:
        return inf if inf in known else max(known) if len(known) == len(ends) else None
    first_s = min(known, default=inf)
    return None if first_s == inf and len(known) < len(ends) else first_s
