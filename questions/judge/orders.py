"""Replays of a queue: the recorded order, a policy that sees no run times, and orders by hindsight.

Each starts the judged jobs in some space, with all others at their true times. A job starts only
where it fits to its true end. With the policy, a job that could start but would meet a run to come
holds up all behind it, as no scheduler could have told it from them.
"""

import heapq
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import inf

import numpy as np

from ronda.instances.base import Floats
from ronda.questions.judge.queue import HeldUse, JudgedJobs, Shape, Start, Starts
from ronda.questions.judge.space import Holes, Space


def with_recorded(jobs: JudgedJobs, replay: Callable[[Starts], Starts]) -> Starts:
    """Return a replay in which jobs that it cannot place keep their recorded starts."""
    fixed = Starts()
    for _ in range(5):  # before each further attempt, jobs without a start get their recorded one
        starts = replay(fixed)
        if len(starts) == len(jobs.ids):
            break
        fixed |= {k: start for k, start in jobs.happened.items() if k not in starts}
    return starts


def in_order(jobs: JudgedJobs, space: Space, order: Iterable[int]) -> Starts:
    """Return starts in an order, no job before the one in front of it."""
    room, starts, now = Holes(space), Starts(), -inf
    for k in order:
        found = room.earliest(jobs.shapes[k], max(now, jobs.ready_s[k]), jobs.lasts_s[k])
        if found is not None:
            starts[k], now = found, found[0]
            room.place(jobs.shapes[k], found[1], now, jobs.lasts_s[k])
    return starts


def moved_up(jobs: JudgedJobs, space: Space) -> Starts:
    """Return starts of all jobs: each moves up, in the recorded order, while the others stay."""
    starts, now = jobs.happened, -inf
    room = _begun(jobs, space, starts)
    for k, (start_s, nodes) in jobs.happened.items():
        shape, lasts_s = jobs.shapes[k], jobs.lasts_s[k]
        room.place(shape, nodes, start_s, lasts_s, -1)
        found = room.earliest(shape, max(now, jobs.ready_s[k]), lasts_s)
        starts[k] = found if found is not None and found[0] < start_s else (start_s, nodes)
        now = starts[k][0]
        room.place(shape, starts[k][1], now, lasts_s)
    return starts


def _begun(jobs: JudgedJobs, space: Space, fixed: Starts) -> Holes:
    """Return the holes that some starts leave."""
    room = Holes(space)
    for k, (start_s, nodes) in fixed.items():
        room.place(jobs.shapes[k], nodes, start_s, jobs.lasts_s[k])
    return room


def least_first(jobs: JudgedJobs, space: Space, key: Floats, fixed: Starts) -> Starts:
    """Return starts in which, whenever jobs can start, the one with the least key does.

    The `fixed` starts stay as they are, here and below.
    """
    room, starts = _begun(jobs, space, fixed), dict(fixed)
    waiting = {shape: list[tuple[float, int]]() for shape in jobs.shapes}
    arrivals = [k for k in np.argsort(jobs.ready_s, kind="stable").tolist() if k not in fixed]
    now, arrived = -inf, 0
    while True:
        can = list[tuple[float, float, int, tuple[int, ...]]]()
        for shape, own in waiting.items():
            while own:
                least, k = own[0]
                found = room.earliest(shape, max(now, jobs.ready_s[k]), jobs.lasts_s[k])
                if found is not None:
                    can.append((found[0], least, k, found[1]))
                    break
                heapq.heappop(own)  # it never fits
        start_s, _, k, nodes = min(can, default=(inf, 0.0, -1, ()))
        if arrived < len(arrivals) and jobs.ready_s[arrivals[arrived]] <= start_s:
            now = jobs.ready_s[arrivals[arrived]]
            while arrived < len(arrivals) and jobs.ready_s[arrivals[arrived]] <= now:
                one = arrivals[arrived]
                heapq.heappush(waiting[jobs.shapes[one]], (float(key[one]), one))
                arrived += 1
        elif k < 0:
            return starts
        else:
            heapq.heappop(waiting[jobs.shapes[k]])
            starts[k], now = (start_s, nodes), start_s
            room.place(jobs.shapes[k], nodes, start_s, jobs.lasts_s[k])


class Backfilling:
    """EASY: the first of the queue gets the earliest start that time limits promise.

    A job behind it starts now if it ends by its limit before that, or is on other nodes. Time
    limits are the users' (Lifka 1995).
    """

    def __init__(self, jobs: JudgedJobs, space: Space, fixed: Starts) -> None:
        self.jobs, self.room, self.starts = jobs, _begun(jobs, space, fixed), dict(fixed)
        self._ends = list[float]()
        self._queue = defaultdict[tuple[Shape, float], list[tuple[int, int]]](list)
        self._held = {node: list[HeldUse]() for node in jobs.nodes}
        for use in jobs.others:
            if use.node in self._held:
                self._held[use.node].append(use)
        for k, found in fixed.items():
            self._hold(k, found)

    def run(self) -> Starts:
        """Return the starts of all jobs that get one."""
        jobs, now = self.jobs, -inf
        coming = [k for k in np.argsort(-jobs.ready_s, kind="stable") if k not in self.starts]
        while coming or any(self._queue.values()):
            if not any(self._queue.values()):
                now = max(now, float(jobs.ready_s[coming[-1]]))
            while coming and jobs.ready_s[coming[-1]] <= now:
                k = int(coming.pop())
                insort(self._queue[jobs.shapes[k], float(jobs.limit_s[k])], (jobs.rank[k], k))
            (shape, _), own = min(self._waiting(), key=lambda each: each[1][0])
            found = self.room.earliest(shape, now, jobs.lasts_s[own[0][1]])
            if found is None:
                own.pop(0)  # it never fits
            elif found[0] <= now:
                self._start(own, found)
            else:
                self._behind(shape, now)
                while self._ends and self._ends[0] <= now:
                    heapq.heappop(self._ends)
                events = [found[0], *self._ends[:1]]
                now = min([*events, float(jobs.ready_s[coming[-1]])] if coming else events)
        return self.starts

    def _waiting(self) -> list[tuple[tuple[Shape, float], list[tuple[int, int]]]]:
        return [(kind, own) for kind, own in self._queue.items() if own]

    def _start(self, own: list[tuple[int, int]], found: Start) -> None:
        k = own.pop(0)[1]
        lasts_s, shape = self.jobs.lasts_s[k], self.jobs.shapes[k]
        self.starts[k] = found
        self.room.place(shape, found[1], found[0], lasts_s)
        heapq.heappush(self._ends, found[0] + lasts_s)
        self._hold(k, found)

    def _hold(self, k: int, found: Start) -> None:
        end_s, promised_s = (found[0] + own[k] for own in (self.jobs.lasts_s, self.jobs.limit_s))
        for node in found[1]:
            amounts = self.jobs.shapes[k].amounts
            self._held[node].append(HeldUse(node, found[0], end_s, amounts, promised_s))

    def _behind(self, first: Shape, now: float) -> None:
        """Start jobs behind the first, which cannot start now."""
        promise = None
        for (shape, limit_s), own in sorted(self._waiting(), key=lambda each: each[1][0]):
            while own and shape != first:
                free = self.room.earliest(shape, now, 0.0)
                if free is None or free[0] > now:
                    break
                promise = promise or self._promise(first, now)
                in_time = now + limit_s <= promise[0]
                without = frozenset() if in_time else promise[1] & {*shape.allowed}
                free = self.room.earliest(shape, now, 0.0, without)
                if free is None or free[0] > now:
                    break
                found = self.room.earliest(shape, now, self.jobs.lasts_s[own[0][1]], without)
                if found is None or found[0] > now:
                    return  # it would have started, and met a run to come
                self._start(own, found)

    def _promise(self, shape: Shape, now: float) -> tuple[float, frozenset[int]]:
        """Return when, by limits, a job could start at the latest, and on which nodes."""
        each = [(self._node_promise(shape.amounts, node, now), node) for node in shape.allowed]
        chosen = sorted(each)[: shape.nodes]
        if len(chosen) < shape.nodes or chosen[-1][0] == inf:
            return inf, frozenset()
        return chosen[-1][0], frozenset(node for _, node in chosen)

    def _node_promise(self, amounts: tuple[float, ...], node: int, now: float) -> float:
        """Return when, by limits, a node has room."""
        use = self.room.space[node]
        k = int(np.searchsorted(use.times_s, now, side="right")) - 1
        most = use.most[use.ends_s > now] - use.used[k] - np.array(amounts) + 1e-6
        running = [own for own in self._held[node] if own.since_s <= now < own.until_s]
        ends = sorted((max(now, own.promised_s), own.amounts) for own in running)
        for end_s, given in [(now, (0.0,) * len(amounts)), *ends]:
            most = most + np.array(given)
            if (most >= 0).all(axis=1).any():
                return end_s
        return inf
