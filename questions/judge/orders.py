"""Replays of a queue: the recorded order, a policy that sees no run times, and orders by hindsight.

Each starts the judged jobs in some space, with all others at their true times. A job starts only
where it fits to its true end. With the policy, a job that could start but would meet a run to come
holds up all behind it, as no scheduler could have told it from them.
"""

import heapq
from bisect import insort
from collections.abc import Iterable, Mapping
from math import inf

import numpy as np

from ronda.instances.base import Floats
from ronda.questions.judge.queue import JudgedJobs, Shape
from ronda.questions.judge.space import Holes, NodeUse

Starts = dict[int, tuple[float, tuple[int, ...]]]
"""The start of each placed job and its nodes, by the job's number."""


def in_order(jobs: JudgedJobs, space: Mapping[int, NodeUse], order: Iterable[int]) -> Starts:
    """Return starts in an order, no job before the one in front of it."""
    room, starts, now = Holes(space), Starts(), -inf
    for k in order:
        found = room.earliest(jobs.shapes[k], max(now, jobs.ready_s[k]), jobs.lasts_s[k])
        if found is not None:
            starts[k] = found
            now = found[0]
            room.place(jobs.shapes[k], found[1], now, jobs.lasts_s[k])
    return starts


def into_holes(jobs: JudgedJobs, space: Mapping[int, NodeUse], order: Iterable[int]) -> Starts:
    """Return starts in which each job, in an order, gets the earliest hole that others left."""
    room, starts = Holes(space), Starts()
    for k in order:
        found = room.earliest(jobs.shapes[k], jobs.ready_s[k], jobs.lasts_s[k])
        if found is not None:
            starts[k] = found
            room.place(jobs.shapes[k], found[1], found[0], jobs.lasts_s[k])
    return starts


def least_first(jobs: JudgedJobs, space: Mapping[int, NodeUse], key: Floats) -> Starts:
    """Return starts in which, whenever jobs can start, the one with the least key does."""
    room, starts = Holes(space), Starts()
    waiting = {shape: list[tuple[float, int]]() for shape in jobs.shapes}
    arrivals = np.argsort(jobs.ready_s, kind="stable").tolist()
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

    def __init__(self, jobs: JudgedJobs, space: Mapping[int, NodeUse]) -> None:
        self.jobs, self.room, self.starts = jobs, Holes(space), Starts()
        self._promised = {node: list[tuple[float, tuple[float, ...]]]() for node in jobs.nodes}
        for use in jobs.others:
            if use.node in self._promised:
                self._promised[use.node].append((use.promised_s, use.amounts))

    def run(self) -> Starts:
        """Return the starts of all jobs that get one."""
        jobs, queue = self.jobs, list[tuple[int, int]]()
        arrivals = np.argsort(jobs.ready_s, kind="stable").tolist()
        ends, now = list[float](), -inf
        while arrivals or queue:
            if not queue:
                now = max(now, float(jobs.ready_s[arrivals[0]]))
            while arrivals and jobs.ready_s[arrivals[0]] <= now:
                k = arrivals.pop(0)
                insort(queue, (jobs.rank[k], k))
            head = queue[0][1]
            found = self.room.earliest(jobs.shapes[head], now, jobs.lasts_s[head])
            if found is None:
                queue.pop(0)  # it never fits
                continue
            if found[0] <= now:
                self._start(queue, 0, found, ends)
                continue
            self._behind(queue, now, ends)
            until = min(found[0], float(jobs.ready_s[arrivals[0]]) if arrivals else inf)
            while ends and ends[0] <= now:
                heapq.heappop(ends)
            now = min(until, ends[0]) if ends else until
        return self.starts

    def _start(
        self,
        queue: list[tuple[int, int]],
        at: int,
        found: tuple[float, tuple[int, ...]],
        ends: list[float],
    ) -> None:
        k = queue.pop(at)[1]
        lasts_s, shape = self.jobs.lasts_s[k], self.jobs.shapes[k]
        self.starts[k] = found
        self.room.place(shape, found[1], found[0], lasts_s)
        heapq.heappush(ends, found[0] + lasts_s)
        for node in found[1]:
            self._promised[node].append((found[0] + self.jobs.limit_s[k], shape.amounts))

    def _behind(self, queue: list[tuple[int, int]], now: float, ends: list[float]) -> None:
        """Start jobs behind the first, which cannot start now."""
        first, at, tried = self.jobs.shapes[queue[0][1]], 1, set[tuple[Shape, float]]()
        tried |= {(first, limit_s) for limit_s in {self.jobs.limit_s[k] for _, k in queue}}
        if all(self.jobs.shapes[k] == first for _, k in queue):
            return
        promise_s, kept = self._promise(first, now)
        while at < len(queue):
            k = queue[at][1]
            shape, limit_s = self.jobs.shapes[k], float(self.jobs.limit_s[k])
            if (shape, limit_s) in tried:
                at += 1
                continue
            tried.add((shape, limit_s))
            without = frozenset() if now + limit_s <= promise_s else kept & {*shape.allowed}
            free = self.room.earliest(shape, now, 0.0, without)
            if free is None or free[0] > now:
                at += 1
                continue
            found = self.room.earliest(shape, now, self.jobs.lasts_s[k], without)
            if found is None or found[0] > now:
                return  # it would have started, and met a run to come
            tried.discard((shape, limit_s))
            self._start(queue, at, found, ends)

    def _promise(self, shape: Shape, now: float) -> tuple[float, frozenset[int]]:
        """Return when, by limits, a job could start at the latest, and on which nodes."""
        each = list[tuple[float, int]]()
        for node in shape.allowed:
            use = self.room.space[node]
            k = int(np.searchsorted(use.times_s, now, side="right")) - 1
            whole = use.used[k] + np.array(shape.amounts) - 1e-6
            running = sorted(own for own in self._promised[node] if own[0] > now)
            self._promised[node] = running
            when = now
            for end_s, amounts in [(now, (0.0,) * len(whole)), *running]:
                whole, when = whole - np.array(amounts), end_s
                if ((whole <= use.most) & (use.ends_s[:, None] > now)).all(axis=1).any():
                    each.append((when, node))
                    break
        chosen = sorted(each)[: shape.nodes]
        if len(chosen) < shape.nodes:
            return inf, frozenset()
        return chosen[-1][0], frozenset(node for _, node in chosen)


def searched(jobs: JudgedJobs, space: Mapping[int, NodeUse], starts: Starts, steps: int) -> Starts:
    """Return starts that are no worse, after a number of steps that does not depend on the clock.

    A step takes a job that waits, and one that runs on its node shortly before, gives the first
    the earliest hole that is then there, and the other the next; it is undone unless both together
    wait less. A job without another in its way moves to an earlier hole if there is one.
    """
    room, best = Holes(space), dict(starts)
    for k, (start_s, nodes) in best.items():
        room.place(jobs.shapes[k], nodes, start_s, jobs.lasts_s[k])
    rng = np.random.default_rng(0)

    def moved(own: list[int]) -> None:
        """Take jobs out and put them back in this order, if they then wait less together."""
        before = {k: best[k] for k in own}
        for k, (start_s, nodes) in before.items():
            room.place(jobs.shapes[k], nodes, start_s, jobs.lasts_s[k], -1)
        after = Starts()
        for k in own:
            found = room.earliest(jobs.shapes[k], jobs.ready_s[k], jobs.lasts_s[k])
            if found is None:
                break
            after[k] = found
            room.place(jobs.shapes[k], found[1], found[0], jobs.lasts_s[k])
        gain = sum(jobs.weight[k] * (before[k][0] - after[k][0]) for k in after)
        if len(after) == len(own) and gain > 0:
            best.update(after)
            return
        for k, (start_s, nodes) in after.items():
            room.place(jobs.shapes[k], nodes, start_s, jobs.lasts_s[k], -1)
        for k, (start_s, nodes) in before.items():
            room.place(jobs.shapes[k], nodes, start_s, jobs.lasts_s[k])

    for _ in range(steps):
        late = [k for k in best if best[k][0] > jobs.ready_s[k]]
        if not late:
            break
        k = late[int(rng.integers(len(late)))]
        start_s = best[k][0]
        near = [
            other
            for other in best
            if other != k
            and jobs.ready_s[k] < best[other][0] + jobs.lasts_s[other] <= start_s + 1.0
            and best[other][0] + jobs.lasts_s[other] > start_s - 3 * jobs.lasts_s[k]
        ]
        moved([k, near[int(rng.integers(len(near)))]] if near else [k])
    return best
