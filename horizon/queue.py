"""The queue of live jobs, waiting and running, in the order of submission, and their ends."""

import heapq
from itertools import count
from typing import TypeVar

from ronda.horizon.live import LiveJob
from ronda.instances.job import Allocation, JobState

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
        """Add a new waiting job behind all others."""
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
