"""A round in which each fusion class is one elastic job, and its plan for the members.

The running and waiting members of a class become one job that may have 1, 2, … GPUs. On n GPUs the
job has the rate and the power draw of the arrays into which `regroup` would split its members. Its
work and its weight are the sums over the members. A change pauses the whole job: in truth fewer
members may pause, but a policy that counts only their pauses changes too much (docs/fusion.md). An
array in another pool than most, at another clock, or that may not be stopped is a separate job.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import sqrt
from typing import NamedTuple

from msgspec.structs import replace

from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.models.sharing import narrowed
from ronda.instances.plan import Plan
from ronda.instances.profile import Profile, Rated
from ronda.instances.round import Round
from ronda.solvers.as_one import AsOne
from ronda.solvers.greedy.groups import FusionClass, Home, groups, named
from ronda.solvers.greedy.regroup import OnGpu, regroup

Array = tuple[Allocation, tuple[JobState, ...]]


class Jointly:
    """A round in which each fusion class is a single job.

    Parameters
    ----------
    gather
        Waiting members join running arrays once their total waiting time is at least this many
        times the total pause of the members there.
    """

    def __init__(self, round: Round, gather: float) -> None:
        self.classes: dict[str, _Class] = {}
        for group in groups(round):
            pliant = group.pliant
            if len(pliant.members) > 1:
                self.classes[group.key] = _Class(round, pliant, gather)
        gone = {s.job.id for found in self.classes.values() for s in found.members}
        running = [s for s in round.running if s.job.id not in gone]
        waiting = [s for s in round.waiting if s.job.id not in gone]
        for found in self.classes.values():
            (waiting if found.state.allocation is None else running).append(found.state)
        profiles = {key: found.profile for key, found in self.classes.items()}
        joined = replace(
            round,
            running=tuple(sorted(running, key=lambda s: s.job.submit_s)),
            waiting=tuple(sorted(waiting, key=lambda s: s.job.submit_s)),
            profiles={**round.profiles, **profiles},
        )
        self._seen = AsOne(joined)
        self._named = {a.array for a in round.held.values() if a.array is not None}
        self.round = self._seen.round

    def told(self, plan: Plan) -> Plan:
        """Return a plan for the round of classes as a plan for their members."""
        others = self._seen.told(plan).allocations
        allocations = {i: a for i, a in others.items() if i not in self.classes}
        taken = set(self._named)
        for key, found in self.classes.items():
            given = plan.allocations.get(key)
            if given is not None:
                allocations |= found.told(given, taken)
        return replace(plan, allocations=allocations)


class ClassWay(NamedTuple):
    """A configuration of a class: GPUs, clock, work per second and power draw of all its GPUs.

    Another clock may make other passes the fastest, so no formula gives the sum over the members.
    """

    gpus: int
    clock: float
    rate: float
    power_w: float


class ClassCurve(NamedTuple):
    """The configurations of a class in a pool."""

    gpu_type: str
    node_gpus: int
    nodes: int
    ways: tuple[ClassWay, ...]


@lru_cache(maxsize=512)
def _application(name: str, curves: tuple[ClassCurve, ...]) -> Profile:
    """Return an application with the given curves for any placement of its GPUs."""
    throughput: dict[str, Rated] = {}
    for own in curves:
        rows = [
            (way, nodes)
            for way in own.ways
            for nodes in range(-(-way.gpus // own.node_gpus), min(way.gpus, own.nodes) + 1)
        ]
        if rows:
            throughput[own.gpu_type] = Rated(
                gpus=tuple(way.gpus for way, _ in rows),
                nodes=tuple(nodes for _, nodes in rows),
                batch=(1.0,) * len(rows),
                clock=tuple(way.clock for way, _ in rows),
                rate=tuple(way.rate for way, _ in rows),
                power_w=tuple(way.power_w for way, _ in rows),
            )
    return Profile(name=name, throughput=dict(throughput))


class _Class:
    """A fusion class of a round."""

    def __init__(self, round: Round, group: FusionClass, gather: float) -> None:
        self.round, self.group, self.gather = round, group, gather
        pools = [held.option.pool for held, _ in group.arrays]
        self.home = group.homes[next(iter([*pools, *group.homes]))]
        self.arrays = sorted(group.arrays, key=lambda array: -len(array[1]))
        self.members = group.members
        self.pause_s = (self.members[0].job.costs or round.costs).pause(1, running=True)

    def _cut(self, home: Home, kept: list[list[JobState]], gpus: int) -> list[OnGpu[JobState]]:
        """Return the members on each of `gpus` GPUs; `kept` arrays occupy the first GPUs.

        Waiting jobs join arrays only if they have waited long enough to be worth the pause.
        """
        stays = {state.job.id for members in kept for state in members}
        free = [state for state in self.members if state.job.id not in stays]
        sizes = home.sizes(len(self.members), gpus)
        cuts, _ = regroup(kept, free, sizes, home.best)
        joined = [cut for cut in cuts if cut.stay and cut.join]
        paused_s = self.pause_s * sum(len(cut.stay) for cut in joined)
        since = self.round.now_s
        waiting = [s for cut in joined for s in cut.join if s.allocation is None]
        waited_s = sum(since - state.since_s for state in waiting)
        if not waiting or waited_s >= self.gather * paused_s:
            return cuts
        gone = {state.job.id for state in waiting}
        free = [state for state in free if state.job.id not in gone]
        sizes = home.sizes(sum(map(len, kept)) + len(free), gpus)
        return regroup(kept, free, sizes, home.best)[0]

    @cached_property
    def profile(self) -> Profile:
        """The class as an application, with its speed and power on n GPUs in each of its pools."""
        curves = (self._curve(home) for home in self.group.homes.values())
        return _application(self.group.key, tuple(curves))

    def _curve(self, home: Home) -> ClassCurve:
        """Return the speed and the power draw of the class at each clock of a pool."""
        pool, ways = home.of.shape.pool, list[ClassWay]()
        known = dict[Home, list[tuple[int, float]]]()
        for clock in pool.gpu_type.clocks:
            alone, own = home.alone(self.members[0], clock), home.at(clock)
            if alone is None:
                continue
            if own not in known:
                arrays = self.arrays if own.of.shape.index == self.home.of.shape.index else []
                kept = [list(members) for _, members in arrays if len(members) <= len(own.ways)]
                found = []
                for gpus in self._counts(own):
                    cuts = self._cut(own, kept[:gpus], gpus)
                    found.append((gpus, sum(own.speed(cut.width) for cut in cuts)))
                known[own] = found
            ways += [ClassWay(n, clock, x * alone.rate, n * alone.power_w) for n, x in known[own]]
        return ClassCurve(pool.gpu_type.name, pool.gpus_per_node, pool.nodes, tuple(ways))

    def _counts(self, home: Home) -> list[int]:
        """Return the possible numbers of GPUs: the pool's ladder and the present number."""
        most = min(len(self.members), home.of.shape.pool.gpus)
        full = -(-len(self.members) // home.best)
        extra = {full, most, len(self.arrays)} & {*range(1, most + 1)}
        return sorted({n for n in home.of.shape.ladder if n <= most} | extra)

    @cached_property
    def state(self) -> JobState:
        """The state of the class as one job."""
        states, now_s = self.members, self.round.now_s
        left = [state.remaining_at(now_s) for state in states]
        known = [work for work in left if work is not None]
        work = sum(known) if self.round.energy_j is None else len(known) * max(known, default=0.0)
        sd = sqrt(sum(s.job.estimate.sd**2 for s in states if s.job.estimate is not None))
        due = [s.job.deadline_s for s in states if s.job.deadline_s is not None]
        first, most = states[0].job, self._counts(self.home)[-1]
        job = Job(
            id=self.group.key,
            submit_s=min(state.job.submit_s for state in states),
            profile=self.group.key,
            gpus=min(-(-len(states) // self.home.best), most),
            min_gpus=1,
            max_gpus=most,
            partition=first.partition,
            gpu_types=first.gpu_types,
            weight=sum(state.job.weight for state in states),
            deadline_s=min(due, default=None),
            estimate=Estimate(work=work, sd=sd) if len(known) == len(states) else None,
            costs=replace(  # those of an array on one GPU
                first.costs or self.round.costs,
                restart_s=self.pause_s,
                restart_by_gpus=(),
                scale_s=None,
            ),
        )
        held = self._held()
        running = [state for state in states if state.allocation is not None]
        first_s = min(state.since_s for state in states)
        return JobState(
            job=job,
            since_s=max(now_s, min(s.since_s for s in running)) if held else first_s,
            done=0.0,
            gpu_s=sum(state.gpu_s for state in states),
            held_s=max((state.held_s for state in running), default=0.0),
            restarts=max(state.restarts for state in states),
            started=any(state.started for state in states),
            allocation=held,
        )

    def _held(self) -> Allocation | None:
        """Return the GPUs of all arrays of the class as one allocation."""
        if not self.arrays:
            return None
        nodes = Counter(node for held, _ in self.arrays for node, _ in held.placement)
        first, count = self.arrays[0][0].option, len(self.arrays)
        states = [state for _, members in self.arrays for state in members]
        options = [state.allocation.option for state in states if state.allocation is not None]
        option = Option(
            pool=first.pool,
            gpus=count,
            span="node" if len(nodes) == 1 else "cluster",
            clock=first.clock,
            rate=sum(option.rate for option in options),
            power_w=sum(option.power_w for option in options),
        )
        return Allocation(option=option, placement=tuple(sorted(nodes.items())))

    def told(self, given: Allocation, taken: set[str]) -> dict[str, Allocation]:
        """Return the allocations of the members if the class gets the `given` allocation."""
        clock = given.option.clock
        home = self.group.homes[given.option.pool].at(clock)
        slots = dict(given.placement)
        kept: list[Array] = []
        for held, members in self.arrays:
            (node, _), *_ = held.placement
            same = held.option.pool == given.option.pool and held.option.clock == clock
            if same and slots.get(node):
                slots[node] -= 1
                kept.append((held, members))
        cuts = self._cut(home, [list(members) for _, members in kept], given.option.gpus)
        nodes = [held.placement[0][0] for held, _ in kept]
        nodes += [node for node, gpus in slots.items() for _ in range(gpus)]
        found: dict[str, Allocation] = {}
        on = [cut for cut in cuts if not cut.join]
        still = {s.job.id: s.allocation for cut in on for s in cut.stay if s.allocation is not None}
        jobs = {state.job.id: state.job for state in self.members}
        found |= still | narrowed(still, jobs, self.round.profiles, self.round.cluster)
        taken -= {held.array for held, _ in self.arrays}
        taken |= {a.array for a in found.values() if a.array is not None}
        for cut, node in zip(cuts, nodes, strict=False):
            if cut.join:
                found |= _array(home, [*cut.stay, *cut.join], node, clock, taken)
        return found


def _array(
    home: Home, members: Sequence[JobState], node: int, clock: float, taken: set[str]
) -> dict[str, Allocation]:
    """Return the allocations of the members of a new array on one GPU of a node."""
    alone = {state.job.id: home.alone(state, clock) for state in members}
    if any(option is None for option in alone.values()):
        return {}
    array = named(list(alone), taken) if len(alone) > 1 else None
    return {
        job_id: Allocation(
            option=home.option(option, len(alone)), placement=((node, 1),), array=array
        )
        for job_id, option in alone.items()
        if option is not None
    }
