"""How long the jobs of a queue wait, by when running jobs are believed to end."""

from collections.abc import Iterator, Sequence

from ronda.formulations.options.application import Requested, requested_options
from ronda.instances.job import Allocation, JobState
from ronda.solvers.greedy.backfill import future_of
from ronda.solvers.greedy.room import Room

FORESEEN = 20
"""Jobs of a pool's queue whose waiting is foreseen."""


class Waiting:
    """The waiting of jobs that found no room, beside what runs and what has been `started`."""

    def __init__(self, room: Room, started: Sequence[tuple[JobState, Allocation]]) -> None:
        self._room, self._started = room, started
        self._requested = Requested(room.round)

    def by_pool(self, jobs: Sequence[JobState]) -> dict[int, list[JobState]]:
        """Return the first jobs of each pool, each with the pool that it would rather have."""
        found: dict[int, list[JobState]] = {}
        for state in jobs:
            for option in requested_options(self._room.round, state)[:1]:
                found.setdefault(option.pool, []).append(state)
        return {pool: states[:FORESEEN] for pool, states in found.items()}

    def lost_s(
        self, pool: int, jobs: Sequence[JobState], woken: Sequence[int], most_s: float
    ) -> float:
        """Return the seconds that jobs wait in all, each at most `most_s`, if nodes wake now.

        Each job gets the earliest start that leaves those before it theirs. One that starts on
        nothing that wakes waits at least as long again as it has: ends are believed, not known.
        """
        now_s = self._room.round.now_s
        wake_s = max((float(self._room.round.cluster.topology.wake_s[n]) for n in woken), default=0)
        future = future_of(self._room, pool, self._started, self._requested, woken)
        total_s = 0.0
        for state in jobs:
            lasts_s = self._requested.remaining_s(state)
            found = future.earliest(state.job.gpus, lasts_s)
            waits_s = most_s
            if found is not None:
                waits_s = found[0]
                future.take(waits_s, lasts_s, found[1])
            if waits_s > wake_s:
                waits_s = max(waits_s, now_s - state.job.submit_s)
            total_s += min(waits_s, most_s)
        return total_s


def widening(most: int) -> Iterator[int]:
    """Return 0, 1, 2, 3, 4, 6, 8, 12, ... and `most`: numbers to try of which few are enough."""
    yield 0
    count, step = 1, 1
    while count < most:
        yield count
        if count >= 4 * step:
            step *= 2
        count += step
    if most:
        yield most
