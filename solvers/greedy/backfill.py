"""Backfilling: jobs start out of order if they do not delay earlier jobs.

A job that cannot start now is promised the earliest start at which enough GPUs are free for its
expected duration. Free GPUs follow from the expected ends of running jobs. A later job starts if it
ends before the promised start or leaves the promised GPUs free. The EASY rule of Lifka (JSSPP 1995)
makes one promise per partition. The conservative rule of Feitelson and Weil (IPPS 1998) makes one
for every job. A promise reserves GPUs on given nodes, not just a number of GPUs, so that whole
nodes become free. It also reserves watts if these are limited. Every round makes new promises.

A job that cannot get a promise is passed over, as in Slurm's and Flux's backfilling. Such a job is
too large for the GPUs in service or for a power cap, or it waits for a job with an unknown end.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options.application import Requested
from ronda.formulations.placement.nodes import FreeList, Placement
from ronda.formulations.watts import capped, extra_gpu_w, extra_w, seconds_left
from ronda.instances.clock import checkpoint
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Clocks, Room, spread_over, start_in_order
from ronda.solvers.greedy.supply import PowerSupply

Backfill = Literal["none", "free", "easy", "conservative"]
"""The jobs that may pass a job without room: no job; any job that fits; a job that does not delay
the first job of its partition; a job that does not delay any job before it."""

Started = Iterable[tuple[JobState, Allocation]]
"""Jobs that a decision starts, with their allocations."""

MOST_PROMISED = 50
"""The number of first jobs in a partition to which the conservative rule promises a start."""


def beside(
    round: Round, order: Sequence[JobState], backfill: Backfill, clocks: Clocks
) -> dict[str, Allocation]:
    """Return the allocations of running jobs and of the waiting jobs that start, in order."""
    if not order:
        return round.held
    room = Room(round, round.running, clocks=clocks)
    if backfill in ("none", "free"):
        return round.held | start_in_order(room, order, blocking=backfill == "none")
    most = 1 if backfill == "easy" else MOST_PROMISED
    return round.held | Promises(room, most).start(order)


class Future:
    """The expected free GPUs of a pool's nodes from now on.

    From `times_s[k]` seconds from now until the next time, `free[k]` (N,) GPUs are free on the
    nodes. From now until that next time, `least[k]` (N,) stay free throughout. The node with most
    of these has `_most[k]`, and `_empty[k]` nodes are wholly free.
    """

    def __init__(
        self, nodes: FreeList, ends: Sequence[tuple[float, Placement]], whole: int
    ) -> None:
        self.whole = whole
        moments = sorted({end_s for end_s, _ in ends if np.isfinite(end_s)})
        self.times_s = np.array([0.0, *moments])
        change = np.zeros((len(self.times_s), len(nodes.free)), dtype=np.int32)
        change[0] = nodes.free
        row = {end_s: k for k, end_s in enumerate(moments, 1)}
        for end_s, placement in ends:
            if end_s in row:
                for node, gpus in placement:
                    change[row[end_s], nodes.position[node]] += gpus
        self.free: NDArray[np.int32] = change.cumsum(axis=0)
        self._look()

    def _look(self) -> None:
        self.least = np.minimum.accumulate(self.free, axis=0)
        self._most = self.least.max(axis=1)
        self._empty = (self.least == self.whole).sum(axis=1)

    def kept(self, lasts_s: float) -> NDArray[np.int32]:
        """Return the GPUs of each node that stay free for `lasts_s` from now on, shape (N,)."""
        kept: NDArray[np.int32] = self.least[self._last(0.0, lasts_s)]
        return kept

    def may_fit(self, gpus: int, lasts_s: float) -> bool:
        """Return whether a job that starts now may fit without the promised GPUs."""
        k = self._last(0.0, lasts_s)
        if gpus <= self.whole:
            return bool(self._most[k] >= gpus)
        return bool(self._empty[k] >= gpus // self.whole)

    def _last(self, start_s: float, lasts_s: float) -> int:
        """Return the index of the last interval that a job reaches, at least that of its start."""
        last = int(np.searchsorted(self.times_s, start_s + lasts_s, "left")) - 1
        return max(last, int(np.searchsorted(self.times_s, start_s, "right")) - 1, 0)

    def take(self, start_s: float, lasts_s: float, pieces: Sequence[tuple[int, int]]) -> None:
        """Reserve GPUs of some nodes for some time; the start must be in `times_s`."""
        end_s = start_s + lasts_s
        if np.isfinite(end_s) and end_s not in self.times_s:
            k = int(np.searchsorted(self.times_s, end_s))
            self.times_s = np.insert(self.times_s, k, end_s)
            self.free = np.insert(self.free, k, self.free[k - 1], axis=0)
        first = int(np.searchsorted(self.times_s, start_s))
        last = int(np.searchsorted(self.times_s, end_s))
        for node, gpus in pieces:
            self.free[first:last, node] -= gpus
        self._look()

    def openings(
        self, gpus: int, lasts_s: float, among: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[float, NDArray[np.int32]]]:
        """Yield the starts with enough free GPUs, and the GPUs that stay free on each node (N,).

        `among` is a mask of the times in `times_s` that may be starts.
        """
        if gpus <= self.whole:
            able = self.free.max(axis=1) >= gpus
        else:
            able = (self.free == self.whole).sum(axis=1) >= gpus // self.whole
        for k in np.flatnonzero(able if among is None else able & among).tolist():
            start_s = float(self.times_s[k])
            yield start_s, self.free[k : self._last(start_s, lasts_s) + 1].min(axis=0)

    def earliest(self, gpus: int, lasts_s: float) -> tuple[float, list[tuple[int, int]]] | None:
        """Return a job's earliest start and its consolidated nodes and GPUs, or None if never."""
        for start_s, least in self.openings(gpus, lasts_s):
            pieces = _consolidated(least, gpus, self.whole)
            if pieces is not None:
                return start_s, pieces
        return None


def _consolidated(free: NDArray[np.int32], gpus: int, whole: int) -> list[tuple[int, int]] | None:
    """Return nodes and GPUs of a job by best fit, as in `ronda.formulations.placement.nodes`.

    None without room.
    """
    if gpus <= whole:
        fits = np.where(free >= gpus, free, whole + 1)
        node = int(fits.argmin())
        return [(node, gpus)] if fits[node] <= whole else None
    pieces, left = [], gpus
    for node in np.argsort(-free, kind="stable").tolist():
        piece = min(left, whole)
        if free[node] < piece:
            return None
        pieces.append((node, piece))
        left -= piece
        if not left:
            return pieces
    return None


class Promises:
    """The promised starts of jobs, and the starts of other jobs around them.

    Parameters
    ----------
    most
        Number of jobs of each partition that get a promise.
    """

    def __init__(self, room: Room, most: int) -> None:
        self.room, self.most = room, most
        self.requested = Requested(room.round)
        self._futures: dict[int, Future] = {}
        self._supply: PowerSupply | None = None
        self._promised = Counter[str]()
        self._first_s = np.inf  # the first promised start

    def lasts_s(self, state: JobState) -> float:
        """Return the seconds for which a waiting job holds its GPUs once it starts."""
        return self.requested.remaining_s(state)

    def ends(self, held: Started) -> list[tuple[float, Allocation]]:
        """Return the seconds to the ends of running jobs and of those that start (`held`)."""
        return ends_of(self.room.round, held, self.requested)

    def promised(self, option: Option, placement: Placement) -> Placement:
        """Return the GPUs that a promise keeps free."""
        return placement

    def may_promise(self, state: JobState, start_s: float) -> bool:
        """Return whether a job may be promised a start."""
        return True

    def start(self, order: Sequence[JobState]) -> dict[str, Allocation]:
        """Start jobs in order, if they leave free the promises to earlier jobs."""
        started: dict[str, Allocation] = {}
        held: list[tuple[JobState, Allocation]] = []
        for state in order:
            checkpoint()
            partition = state.job.partition
            if not self.room.free_in(partition):
                continue
            lasts_s = self.lasts_s(state)
            given = self._beside(state, lasts_s)
            if given is not None:
                started[state.job.id] = given
                held.append((state, given))
                self._take(given.option, 0.0, lasts_s, given.placement)
            elif self._promised[partition] < self.most:
                self._promise(state, lasts_s, held)
        return started

    def _beside(self, state: JobState, lasts_s: float) -> Allocation | None:
        """Start a job on GPUs that stay free for its duration, or return None if too few do."""
        if not self._futures:
            return self.room.fit(state)
        supply, first_s = self._supply, self._first_s
        if lasts_s <= first_s:  # before the first promise, watts can only become free
            supply = None
        kept: dict[int, Placement] = {}
        able = False
        for option in self.room.ways(state):
            future = self._futures.get(option.pool)
            able |= future is None or future.may_fit(option.gpus, lasts_s)
            nodes = self.room.nodes(option.pool)
            free = np.array(nodes.free)
            hidden = free - (free if future is None else np.maximum(future.kept(lasts_s), 0))
            if supply is not None:
                each_w = extra_gpu_w(self.room.round, option) * min(option.gpus, nodes.whole)
                names = np.array(nodes.nodes)
                open_ = supply.open_nodes(first_s, lasts_s - first_s, each_w, names)
                hidden = np.where(open_, hidden, free)
            kept[option.pool] = tuple(
                (nodes.nodes[k], int(hidden[k])) for k in np.flatnonzero(hidden > 0).tolist()
            )
        if not able:
            return None
        if supply is None:
            return self.room.fit(state, beside=kept)

        def bears(option: Option, placement: Placement) -> bool:
            """Return whether the promised watts stay free."""
            return supply.bears(first_s, lasts_s - first_s, supply.need(option, placement, 0.0))

        return self.room.fit(state, beside=kept, bears=bears)

    def _promise(self, state: JobState, lasts_s: float, held: Started) -> None:
        """Promise a job the earliest start in any suitable pool, if there is one."""
        if self._supply is None and (self.room.limited or capped(self.room.round.cluster)):
            ends = self.ends(held)
            self._supply = PowerSupply(self.room, [(s, given) for s, given in ends if s > 0])
        best: tuple[float, Option, Placement] | None = None
        for option in self.room.ways(state):
            found = self._earliest(state, option, lasts_s, held)
            if found is not None and (best is None or found[0] < best[0]):
                best = found[0], option, found[1]
        if best is not None and self.may_promise(state, best[0]):
            start_s, option, placement = best
            self._take(option, start_s, lasts_s, placement, self.promised(option, placement))
            self._first_s = min(self._first_s, start_s)
            self._promised[state.job.partition] += 1

    def _earliest(
        self,
        state: JobState,
        option: Option,
        lasts_s: float,
        held: Started,
    ) -> tuple[float, Placement] | None:
        """Return when and where a job can start in a pool, or None if that is unknown."""
        room, supply, pool = self.room, self._supply, option.pool
        if pool not in self._futures:
            self._futures[pool] = future_of(room, pool, self.ends(held))
        future, names = self._futures[pool], np.array(room.nodes(pool).nodes)
        among = np.arange(len(future.times_s)) > 0  # it finds no room now
        if supply is not None:
            among &= supply.enough(future.times_s, extra_w(room.round, option))
        for start_s, least in future.openings(option.gpus, lasts_s, among):
            if supply is not None:
                each_w = extra_gpu_w(room.round, option) * min(option.gpus, future.whole)
                least = np.where(supply.open_nodes(start_s, lasts_s, each_w, names), least, 0)
            pieces = _consolidated(least, option.gpus, future.whole)
            if pieces is None:
                continue
            placement = tuple((int(names[k]), gpus) for k, gpus in pieces)
            if spread_over(room.round, state, option, placement) is None:
                continue
            if supply is None or supply.bears(
                start_s, lasts_s, supply.need(option, placement, start_s)
            ):
                return start_s, placement
        return None

    def _take(
        self,
        option: Option,
        start_s: float,
        lasts_s: float,
        placement: Placement,
        kept: Placement | None = None,
    ) -> None:
        """Reserve GPUs, which may be more than those of the placement, and watts from a start."""
        future, supply = self._futures.get(option.pool), self._supply
        if future is not None:
            position = self.room.nodes(option.pool).position
            future.take(
                start_s, lasts_s, [(position[node], gpus) for node, gpus in kept or placement]
            )
        if supply is not None:
            need = supply.need(option, placement, start_s)
            supply.take(start_s, lasts_s, need, placement)


def ends_of(round: Round, held: Started, requested: Requested) -> list[tuple[float, Allocation]]:
    """Return the expected seconds to the end of running and newly started (`held`) jobs."""
    ends = [
        (
            min(
                seconds_left(round, s, s.allocation.option) + s.rest_at(round.now_s),
                round.may_hold_s(s),
            ),
            s.allocation,
        )
        for s in round.running
        if s.allocation is not None
    ]
    return ends + [(requested.remaining_s(state), given) for state, given in held]


def future_of(
    room: Room,
    pool: int,
    lasting: Iterable[tuple[float, Allocation]],
    woken: Sequence[int] = (),
) -> Future:
    """Return the future of a pool with jobs that last for some seconds, and nodes being woken."""
    topology, limited = room.round.cluster.topology, room.limited or capped(room.round.cluster)
    # If watts are limited, the watts that other pools leave count as well.
    ends = [
        (end_s, given.placement if given.option.pool == pool else ())
        for end_s, given in lasting
        if limited or given.option.pool == pool
    ]
    ends += [
        (float(topology.wake_s[node]), ((node, int(topology.node_gpus[node])),)) for node in woken
    ]
    nodes = room.nodes(pool)
    return Future(nodes, ends, nodes.whole)
