"""The earliest start that any scheduler could give a job without stopping or delaying others."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from itertools import pairwise
from math import ceil, inf

import numpy as np
from msgspec.structs import replace

from ronda.formulations.site.order import too_long
from ronda.instances.base import Floats, Mask
from ronda.instances.job import Slices
from ronda.instances.site import GPUS, LimitGroup
from ronda.instances.snapshots.snapshot import SeenJob
from ronda.questions.why.limits import Amounts, JointLimit, Lent, LimitCount, Route
from ronda.questions.why.outlook import FreeRoom, pieces_on

NOTHING = frozenset[str]()

FIRST = ("blocked", "after", "eligible")
"""What holds a job back before nodes are looked at."""

SHAPES = ("slices", "own_nodes", "one_node", "exclusive")
"""What a job says of the nodes that its pieces share."""


@dataclass(frozen=True)
class RouteAsked:
    """A job as it is asked about: in one way, of the nodes that it may use."""

    job: SeenJob
    way: Route
    nodes: Mask
    per: Floats
    limits: Sequence[JointLimit | Lent]
    skip: frozenset[str]


class WaitingJob:
    """A job that waits, and when it could start.

    It is asked of the free room of its cluster, `outlook`; `behind` are ids of waiting jobs that
    come after it. Everything that may hold it back has a name, as in
    `ronda.questions.why.proof.WORDS`; room for a resource on nodes is ``on:`` and its name, and a
    limit has the name of its row. A name in `skip` is left out of account.
    """

    def __init__(self, outlook: FreeRoom, job: SeenJob, behind: frozenset[str] = NOTHING) -> None:
        self.outlook = outlook
        self._behind = behind | {job.id}
        self.job = job if job.least is None else replace(job, count=job.least)
        self.now_s = outlook.snapshot.now_s
        self._starts: dict[frozenset[str], float] = {}

    def without(self, gone: Collection[str]) -> "WaitingJob":
        """Return the job in its cluster without the jobs of some ids."""
        snapshot = self.outlook.snapshot
        jobs = tuple(one for one in snapshot.jobs if one.id not in gone)
        return WaitingJob(FreeRoom(with_fields(snapshot, jobs=jobs)), self.job)

    def ways(self) -> list[Route]:
        """Return the ways in which the job may run: by partition and by what limits tell apart."""
        partitions: Sequence[str | None] = self.job.partitions or (None,)
        models: Sequence[str | None] = ()
        if self.job.per.get(GPUS):
            models = self.outlook.limits.models
        return [Route(partition, model) for partition in partitions for model in models or (None,)]

    def names(self) -> list[str]:
        """Return the names of all that may hold the job back."""
        job = self.job
        said = {
            "blocked": job.blocked is not None,
            "after": bool(job.after),
            "eligible": job.eligible_s is not None and job.eligible_s > self.now_s,
            "slices": job.slices is not None,
            "own_nodes": job.own_nodes and job.count > 1,
            "one_node": job.one_node and job.count > 1,
            "exclusive": job.exclusive,
            "out": any(node.out is not None for node in self.outlook.snapshot.nodes),
            "leaves": any(node.leaves_s is not None for node in self.outlook.snapshot.nodes),
            "nodes": bool(job.nodes or job.not_nodes),
            "features": bool(job.features),
            "gpu_types": bool(job.gpu_types),
            "partition": bool(job.partitions),
            "longest": any(g.max_limit_s is not None for g in self.outlook.snapshot.groups),
        }
        found = [name for name, held in said.items() if held]
        found += [f"on:{resource}" for resource, amount in job.per.items() if amount > 0]
        rows = (count.row for way in self.ways() for count in self.counts(way, self.now_s))
        return [*found, *dict.fromkeys(rows)]

    def start(self, skip: Iterable[str] = ()) -> float:
        """Return the earliest start, infinite if there is none by what is known.

        Running jobs end at their time limits, no other job starts, and what is in `skip` is left
        out of account.
        """
        key = frozenset(skip)
        if key not in self._starts:
            self._starts[key] = min(map(self._start_of, self.asked(key)), default=inf)
        return self._starts[key]

    def asked(self, skip: frozenset[str] = NOTHING) -> Iterator[RouteAsked]:
        """Yield what is asked, in each way that the job may run."""
        for way in self.ways():
            if "longest" not in skip and self.too_long(way) is not None:
                continue
            nodes = self._nodes(way, skip)
            if nodes.any():
                per = dict(self.job.per)
                for resource in [r for r in per if f"on:{r}" in skip]:
                    del per[resource]
                limits = [
                    limit
                    for limit in self._limits(way, nodes, skip)
                    if isinstance(limit, Lent) or limit.row not in skip
                ]
                yield RouteAsked(self.job, way, nodes, self.outlook.vector(per), limits, skip)

    def too_long(self, way: Route) -> LimitGroup | None:
        """Return the group whose longest time limit the job exceeds if it runs in a way."""
        limits = self.outlook.limits
        return too_long(limits.site, limits.as_job(self.job, way))

    def longest(self) -> LimitGroup:
        """Return the group that allows most of those whose time limit the job exceeds."""
        groups = [group for way in self.ways() if (group := self.too_long(way)) is not None]
        return max(groups, key=lambda one: one.max_limit_s or 0.0)

    def _nodes(self, way: Route, skip: frozenset[str]) -> Mask:
        """Return the nodes that the job may use in a way, whatever is free, shape (N,)."""
        nodes = self.outlook.may_use(self.job, way.partition, skip)
        if way.model is None:
            return nodes
        seen = self.outlook.snapshot.nodes
        own: Mask = np.array([(node.gpu_type or "") == way.model for node in seen], dtype=bool)
        return nodes & own

    def counts(self, way: Route, at_s: float) -> list[LimitCount]:
        """Return the limits that the job meets in a way at a time."""
        limits = self._limits(way, self._nodes(way, NOTHING), NOTHING)
        return [count for limit in limits for count in limit.at(at_s, self.outlook.ends)]

    def _limits(self, way: Route, nodes: Mask, skip: frozenset[str]) -> list[JointLimit | Lent]:
        charged = self.charged(nodes, skip)
        return list(self.outlook.limits.met_by(self.job, way, charged))

    def usable(self) -> Mask:
        """Return the nodes that the job may use in some way, whatever is free, shape (N,)."""
        ways = (self.outlook.may_use(self.job, way.partition, NOTHING) for way in self.ways())
        return np.asarray(np.logical_or.reduce(list(ways)), dtype=bool)

    def fits_empty(self) -> bool:
        """Return whether the nodes that the job may use could hold it if they were empty."""
        fits = pieces_on(self.outlook.has, self.outlook.vector(self.job.per))
        room = np.minimum(fits, 1.0) if self.job.own_nodes else fits
        return bool(np.where(self.usable(), room, 0.0).sum() >= self.job.count)

    def charged(self, nodes: Mask, skip: frozenset[str] = NOTHING) -> Amounts:
        """Return what the job is charged by resource if it runs on some of the nodes (N,).

        A job with its nodes to itself is charged for the smallest nodes that can hold its pieces.
        """
        job, outlook = self.job, self.outlook
        asked = {resource: amount * job.count for resource, amount in job.per.items()}
        if not job.exclusive or "exclusive" in skip or not nodes.any():
            return asked
        fits = pieces_on(outlook.has, outlook.vector(job.per))
        able = nodes & (fits >= 1) if (nodes & (fits >= 1)).any() else nodes
        apart = job.own_nodes or job.slices is not None
        each = 1.0 if apart else max(1.0, min(job.count, float(fits[able].max(initial=1.0))))
        least = np.sort(outlook.has[able], axis=0)[: ceil(job.count / each)].sum(axis=0)
        return {
            resource: max(asked.get(resource, 0.0), float(amount))
            for resource, amount in zip(outlook.resources, least, strict=True)
        }

    def _start_of(self, asked: RouteAsked) -> float:
        begin_s = self.ready(asked.skip)
        if begin_s == inf:
            return inf
        turns = np.zeros(0) if "leaves" in asked.skip else self.outlook.turns(self.job.may_run_s)
        times = self._times(asked, begin_s)
        for first, end in pairwise([-inf, *turns[turns >= begin_s].tolist(), inf]):
            own = times[(times > first) & (times <= end)]
            found = _first(own, lambda at_s: self.fits(asked, at_s))
            if found is not None:
                return min([found, *self._allowed_before(asked, times[times < found], found)])
        return inf

    def _allowed_before(self, asked: RouteAsked, times: Floats, by_s: float) -> Iterator[float]:
        """Yield when limits let a job have the whole nodes that are free, before a later start.

        `times` are those before it at which anything else changes.
        """
        if not asked.job.exclusive or not len(times):
            return
        there = self.with_room(asked, self.room(asked, float(times[-1])))
        for limit in there.limits:
            for at_s in limit.relief(self.outlook.ends) if isinstance(limit, JointLimit) else ():
                if times[-1] < at_s < by_s and self.fits(asked, at_s):
                    yield at_s

    def _times(self, asked: RouteAsked, from_s: float) -> Floats:
        """Return a time, and all later ones from which something is free or allowed, ascending."""
        limits = (limit for limit in asked.limits if isinstance(limit, JointLimit))
        allowed = [at_s for limit in limits for at_s in limit.relief(self.outlook.ends)]
        times = np.unique([from_s, *allowed, *self.outlook.times])
        return times[times >= from_s]

    def ready(self, skip: frozenset[str] = NOTHING) -> float:
        """Return the time from which the job may start for all that nodes and limits say."""
        job, ready_s = self.job, self.now_s
        if job.blocked is not None and "blocked" not in skip:
            return inf
        if job.eligible_s is not None and "eligible" not in skip:
            ready_s = max(ready_s, job.eligible_s)
        if job.after and "after" not in skip:
            ready_s = max(ready_s, self._others_end())
        return ready_s

    def _others_end(self) -> float:
        """Return when the jobs that must come first will have ended or started by what is known."""
        ends = dict(zip((j.id for j in self.outlook.running), self.outlook.ends, strict=True))
        waiting = {job.id: job for job in self.outlook.snapshot.jobs if job.start_s is None}
        done = []
        for each in self.job.after:
            if each.job in self._behind:  # a circle
                done.append(inf)
            elif each.job in waiting:
                first = WaitingJob(self.outlook, waiting[each.job], self._behind)
                ran_s = 0.0 if each.when == "start" else first.job.may_run_s
                done.append(first.start() + ran_s + each.delay_s)
            elif each.when == "start" or each.job not in ends:
                done.append(self.now_s + each.delay_s)
            else:
                done.append(float(ends[each.job]) + each.delay_s)
        return max(done) if self.job.after_all else min(done)

    def fits(self, asked: RouteAsked, at_s: float) -> bool:
        """Return whether the job could start at a time."""
        if not self.allowed(asked, at_s):
            return False
        room = self.room(asked, at_s)
        if not enough(asked.job, room, self.outlook, asked.skip):
            return False
        return not asked.job.exclusive or self.allowed(self.with_room(asked, room), at_s)

    def with_room(self, asked: RouteAsked, room: Floats) -> RouteAsked:
        """Return a route of a job that is charged for whole nodes: of those with room (N,)."""
        if not asked.job.exclusive:
            return asked
        return with_fields(asked, limits=self._limits(asked.way, room >= 1, asked.skip))

    def allowed(self, asked: RouteAsked, at_s: float) -> bool:
        """Return whether all limits would let the job start at a time."""
        return all(
            count.fits or count.row in asked.skip
            for limit in asked.limits
            for count in limit.at(at_s, self.outlook.ends)
        )

    def allowed_from(self, asked: RouteAsked, from_s: float) -> float:
        """Return the first time at or after another from which all limits let the job start."""
        found = _first(self._times(asked, from_s), lambda at_s: self.allowed(asked, at_s))
        return inf if found is None else found

    def room(
        self, asked: RouteAsked, at_s: float, beside: tuple[Floats, Floats] | None = None
    ) -> Floats:
        """Return how many of the job's pieces each node could take at a time, shape (N,).

        They come `beside` what is held then, as in `FreeRoom.used`; by default by running jobs.
        """
        job, skip, outlook = asked.job, asked.skip, self.outlook
        nodes = asked.nodes & outlook.open(
            at_s, job.may_run_s, out="out" not in skip, leaving="leaves" not in skip
        )
        used, jobs = outlook.used(at_s) if beside is None else beside
        room = pieces_on(outlook.has - used, asked.per)
        if job.exclusive and "exclusive" not in skip:
            room = np.where(jobs == 0, room, 0.0)
        if job.own_nodes and "own_nodes" not in skip:
            room = np.minimum(room, 1.0)
        return np.where(nodes, np.minimum(room, job.count), 0.0)


def enough(job: SeenJob, room: Floats, outlook: FreeRoom, skip: frozenset[str]) -> bool:
    """Return whether nodes that could take so many pieces each (N,) have room for the job."""
    if job.slices is not None and "slices" not in skip:
        return _in_slices(job, job.slices, room >= 1, outlook)
    if job.one_node and "one_node" not in skip:
        return bool(room.max(initial=0.0) >= job.count)
    return bool(room.sum() >= job.count)


def _in_slices(job: SeenJob, slices: Slices, nodes: Mask, outlook: FreeRoom) -> bool:
    """Return whether a job's slices of nodes fit racks that have `nodes` (N,) for it."""
    within = outlook.racks(slices.within)
    above: Sequence[str | None] = [None] * len(within)
    if slices.together is not None:
        above = outlook.racks(slices.together)
    free: dict[str | None, dict[str, int]] = {}
    for n in np.flatnonzero(nodes).tolist():
        rack = within[n]
        if rack is not None and (slices.together is None or above[n] is not None):
            own = free.setdefault(above[n], {})
            own[rack] = own.get(rack, 0) + 1
    return any(_packs(job.count, slices, sorted(own.values())) for own in free.values())


def _packs(count: int, slices: Slices, racks: list[int]) -> bool:
    """Return whether slices fit racks with so many nodes each, ascending."""
    ways = slice_sizes(count, slices, len(racks))
    if slices.spread or slices.balanced:
        largest = racks[::-1]
        return any(
            len(sizes) <= len(racks)
            and all(rack >= one for rack, one in zip(largest, sizes, strict=False))
            for sizes in ways
        )
    (sizes,) = ways
    if len(set(sizes)) == 1:
        return sum(rack // sizes[0] for rack in racks) >= len(sizes)
    return _all_placed(sizes, racks)


def slice_sizes(count: int, slices: Slices, racks: int) -> list[list[int]]:
    """Return the ways to cut `count` nodes into slices, each as sizes in descending order.

    Balanced slices may be cut for any number of racks, up to `racks`; others in one way.
    """
    if slices.balanced:
        shared = (divmod(count, k) for k in range(1, min(count, racks) + 1))
        return [
            [least + 1] * more + [least] * (k - more) for k, (least, more) in enumerate(shared, 1)
        ]
    size = slices.nodes or 1
    sizes = sorted(slices.listed or [size] * -(-count // size), reverse=True)
    if slices.nodes and count % size:
        sizes[-1] = count % size
    return [sizes]


def _all_placed(sizes: list[int], racks: list[int]) -> bool:
    """Return whether unequal slices, descending, fit racks; exact, by trying unlike racks."""
    if not sizes:
        return True
    first, rest = sizes[0], sizes[1:]
    for room in sorted({rack for rack in racks if rack >= first}):
        left = list(racks)
        left.remove(room)
        if _all_placed(rest, [*left, room - first]):
            return True
    return False


def _first(times: Floats, fits: Callable[[float], bool]) -> float | None:
    """Return the first of ascending times from which on `fits` holds, or None."""
    if not len(times) or not fits(float(times[-1])):
        return None
    every: list[float] = times.tolist()
    return every[bisect_left(every[:-1], x=True, key=fits)]
