"""A live job: its description, its allocation, and the changes by plans and by its host."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ronda.formulations.options.application import application, pool_shapes
from ronda.horizon.journal import change_of
from ronda.hosts.embedding.jobs import UNRATED, UNTOLD, Given, shown
from ronda.hosts.embedding.plain import plain
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Costs, Job, JobState
from ronda.instances.models.sharing import ready_together
from ronda.instances.plan import Plan
from ronda.instances.profile import Profile, Rated
from ronda.instances.rules.problem import show

if TYPE_CHECKING:
    from ronda.hosts.embedding.records import Settings, State

Placement = tuple[tuple[int, int], ...]


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """A live job with its description and its state.

    `given` is the host's description, and `done` is the work that the host has reported. Policies
    see `state` and `profile`; the work of a job of unknown speed counts in GPU-seconds. `began` is
    the time at which the present allocation began to progress, with the work done by then. `leaves`
    is an allocation that is no longer allowed and that the job leaves at the next decision.
    """

    given: Given
    done: float
    state: JobState
    profile: Profile
    began: tuple[float, float] = (0.0, 0.0)
    leaves: Allocation | None = None

    @property
    def known(self) -> bool:
        """Whether the speed of the job is known."""
        return self.profile.name != UNTOLD


def again(of: Tracked, given: Given, settings: "Settings", now_s: float) -> Tracked:
    """Return a job with a new description; its progress so far follows from the old description.

    If no row describes the present allocation, that allocation keeps its rate and the job may go
    on. InputError is raised if that rate is unknown. If the speed becomes known and no work was
    reported, the new rate gives the work done in the seconds that the job has run.
    """
    job, profile = shown(given, settings)
    cluster, old = settings.cluster, of.given
    state, done = of.state, state_done(of, now_s)
    since_s = max(state.since_s, now_s) if state.allocation is not None else state.since_s
    before, rated = state.allocation, of.profile.name not in UNRATED
    if before is not None:
        option = before.option
        same = old.speeds is given.speeds and of.profile.name == profile.name
        same &= (old.job.profile, old.job.batch) == (given.job.profile, given.job.batch)
        if same:
            profile, kept = of.profile, option
        else:
            batch = None if old.speeds is None or given.speeds is None else option.batch
            found = held(cluster, job, profile, before.placement, clock=option.clock, batch=batch)
            if found is None and (given.speeds is None or not rated):
                on = f"the {option.gpus} GPUs on {len(before.placement)} nodes that it has"
                expected = "a row for what it runs on"
                raise InputError(f"rates of job {job.id!r}", f"none for {on}", expected)
            if found is None:
                profile, found = with_way(profile, cluster, before, option.rate), before
            kept = replace(found.option, span=option.span)
            if not rated and not of.done:
                done = kept.rate * state.done_at(now_s) / option.rate
        if profile.name in UNRATED:
            job = replace(job, gpus=kept.gpus)
        else:
            low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
            job = replace(job, min_gpus=min(low, kept.gpus), max_gpus=max(high, kept.gpus))
        state = replace(state, allocation=replace(before, option=kept))
    gpu_s = profile.name == UNTOLD and not of.known  # its work still counts in these
    had = state.done_at(now_s) if gpu_s else done
    state = replace(state, job=job, done=had, since_s=since_s)
    told = of.done if profile.name in UNRATED else done
    return replace(of, given=given, done=told, state=state, profile=profile)


def state_done(of: Tracked, now_s: float) -> float:
    """Return the work that a job has done; for a job of unknown speed it is the reported work."""
    return of.state.done_at(now_s) if of.known else of.done


def progressed(of: Tracked, done: float, now_s: float) -> Tracked:
    """Return a job whose host reports the work `done`."""
    if not of.known:
        return replace(of, done=done)
    since_s = of.state.since_s if of.state.allocation is None else max(of.state.since_s, now_s)
    return replace(of, done=done, state=replace(of.state, done=done, since_s=since_s))


def stopped(of: Tracked, now_s: float) -> Tracked:
    """Return a job that gives up its allocation."""
    return replace(of, state=of.state.stopped(now_s, of.state.done_at(now_s)), leaves=None)


def begun(of: Tracked, state: JobState) -> Tracked:
    """Return a job that begins to run in the given state."""
    return replace(of, state=state, began=(state.since_s, state.done), leaves=None)


def failed(of: Tracked, now_s: float, usual: Costs) -> Tracked:
    """Return a job that has lost its node and waits with the work of its last checkpoint.

    The checkpoint is estimated from the believed rate until the host reports the saved work.
    """
    after = stopped(of, now_s)
    if of.state.allocation is None:
        return after
    since_s, least = of.began
    seconds, costs = max(0.0, now_s - since_s), of.state.job.costs or usual
    done, lost_s = after.state.done, seconds - costs.kept_s(seconds)
    kept = max(min(least, done), done - of.state.allocation.option.rate * lost_s)
    return replace(after, state=replace(after.state, done=kept))


def resized(of: Tracked, job: Job, cluster: Cluster, now_s: float, *, elastic: bool) -> Tracked:
    """Return a job whose user has asked for other GPUs; `job` is its new form for policies.

    If its allocation is no longer allowed (or, if policies are not `elastic`, has another number of
    GPUs than requested), the job leaves it at the next decision and keeps its work and its pauses
    owed.
    """
    held = of.state.allocation
    if held is None:
        return of
    low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    shape, gpus = pool_shapes(cluster)[held.option.pool], held.option.gpus
    may_stay = job.may_use(shape.pool)
    if not job.preemptible and not may_stay:
        place, found = f"changed: job {job.id!r}", f"no {shape.pool.name} any more, where it runs"
        raise InputError(place, found, "what it has: it may not be stopped")
    sized = gpus == job.gpus or (elastic and low <= gpus <= high)
    if not job.preemptible or (may_stay and sized):
        return of
    limits = {"gpus": job.gpus, "min_gpus": job.min_gpus, "max_gpus": job.max_gpus}
    state = stopped(of, now_s).state
    return replace(of, state=replace(state, job=replace(state.job, **limits)), leaves=held)


def runs_on(
    of: Tracked,
    placement: Placement,
    cluster: Cluster,
    now_s: float,
    *,
    clock: float = 1.0,
    batch: float | None = None,
) -> Tracked:
    """Return a job that runs on the given nodes, from now on unless it already ran there."""
    now = of.state.allocation
    if now is not None and now.placement == placement and now.option.clock == clock:
        return of
    job, place = of.state.job, f"running: job {of.state.job.id!r}"
    shape = pool_shapes(cluster)[int(cluster.topology.node_pool[placement[0][0]])]
    if not job.may_use(shape.pool):
        how = f"{shape.pool.gpu_type.name} of partition {shape.pool.partition!r}"
        raise InputError(place, how, "GPUs that it may use")
    found = held(cluster, job, of.profile, placement, clock=clock, batch=batch)
    if found is None:
        gpus = sum(n for _, n in placement)
        how = f"{gpus} GPUs of {len(placement)} nodes at clock {clock:g}, without a rate"
        raise InputError(place, how, "a row of its rates for that")
    gpus = found.option.computing
    job = job if of.known else replace(job, gpus=gpus)
    low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    if not low <= gpus <= high:
        raise InputError(place, f"{gpus} GPUs", f"{low} to {high}, as it may have")
    state = stopped(of, now_s).state.holding(found, now_s, None)
    return begun(of, replace(state, job=job))


def placement_of(
    given: object, cluster: Cluster, number: Mapping[str, int], place: str
) -> Placement:
    """Return a placement from ``{node: GPUs}`` or from a list with one node per GPU.

    Nodes are names (`number` has their index) or indices.
    """
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = given.items()
    else:
        several = isinstance(given, Iterable) and not isinstance(given, str)
        pairs = [(node, 1) for node in (given if several else [given])]  # type: ignore[attr-defined]
    gpus: dict[int, int] = {}
    for node, n in (map(plain, pair) for pair in pairs):
        index = number.get(node, -1) if isinstance(node, str) else node
        if type(index) is not int or not 0 <= index < len(cluster.topology.node_gpus):
            raise InputError(f"{place}, nodes", show(node), "a node of the cluster")
        if type(n) is not int or n < 1:
            raise InputError(f"{place}, nodes", f"{show(n)} GPUs", "at least 1 on each node")
        gpus[index] = gpus.get(index, 0) + n
    pools = {int(cluster.topology.node_pool[node]) for node in gpus}
    if len(pools) != 1:
        raise InputError(f"{place}, nodes", show(sorted(gpus)), "nodes of one pool, at least one")
    return tuple(sorted(gpus.items()))


def held(
    cluster: Cluster,
    job: Job,
    profile: Profile,
    placement: Placement,
    *,
    clock: float = 1.0,
    batch: float | None = None,
) -> Allocation | None:
    """Return a job's allocation at a placement; None if the profile has no speed for it.

    A placement does not say which part of a GPU a job has, so jobs on parts have none either. The
    default batch is the job's own, or the smallest batch with which it can run there.
    """
    topology = cluster.topology
    pool = int(topology.node_pool[placement[0][0]])
    of = application(profile, pool_shapes(cluster)[pool])
    if of is None or job.part is not None or job.share is not None:
        return None
    gpus, alone = sum(n for _, n in placement), False
    if job.exclusive and of.shape.held(job.gpus) == gpus:
        gpus, alone = job.gpus, True
    racks = topology.racks_of(node for node, _ in placement)
    batches = (of.batch(job), *sorted(profile.batches)) if batch is None else (batch,)
    options = (of.option(gpus, each, None, clock=clock, exclusive=alone) for each in batches)
    option = next((each for each in options if each is not None), None)
    spread = None if option is None else of.spread(option, len(placement), racks)
    if spread is None:
        return None
    allocation = Allocation(option=spread, placement=placement)
    rate = of.rate_on(allocation, racks, None)
    return replace(allocation, option=replace(spread, rate=rate)) if rate else None


def with_way(profile: Profile, cluster: Cluster, allocation: Allocation, rate: float) -> Profile:
    """Return a profile of rates that includes an allocation, at `rate` if the profile lacks it.

    A rate on the fewest nodes may stand in for one on more nodes, and vice versa.
    """
    option = allocation.option
    shape = pool_shapes(cluster)[option.pool]
    kind = shape.pool.gpu_type
    table = profile.throughput.get(kind.name)
    known: dict[tuple[int, int, float, float], tuple[float, float]] = {}  # rate and watts
    told = isinstance(table, Rated) and table.power_w
    if isinstance(table, Rated):
        ways = zip(table.gpus, table.nodes, table.batch, table.clock, strict=True)
        watts = table.power_w or (0.0,) * len(table.rate)
        known = dict(zip(ways, zip(table.rate, watts, strict=True), strict=True))
    own = [
        (option.gpus, nodes, option.batch, option.clock)
        for nodes in dict.fromkeys((shape.nodes(option.gpus), len(allocation.placement)))
    ]
    rate = next((known[way][0] for way in own if way in known), rate)
    near = min(known, key=lambda way: abs(way[0] - option.gpus), default=own[0])
    per_gpu_w = max(known[near][1] / near[0] if known else 0.0, kind.idle_w)
    known = known | {way: (rate, per_gpu_w * option.gpus) for way in own if way not in known}
    gpus, nodes, batch, clock = zip(*known, strict=True)
    rates, watts = zip(*known.values(), strict=True)
    more = Rated(gpus=gpus, nodes=nodes, batch=batch, clock=clock, rate=rates)
    batches = tuple(sorted({*profile.batches, profile.base_batch, option.batch}))
    return replace(
        profile,
        throughput=profile.throughput | {kind.name: replace(more, power_w=watts) if told else more},
        batches=batches if len(batches) > 1 else profile.batches,
    )


def carried_out(
    state: "State", settings: "Settings", held: Mapping[str, Allocation], plan: Plan
) -> "State":
    """Return the state after a plan is carried out."""
    now_s, jobs, wake_s = state.now_s, dict(state.jobs), settings.cluster.topology.wake_s
    change = change_of(held, plan, state.asleep)
    ready = {n: state.ready_s[n] for n in state.waking if n not in change.asleep}
    for node in {*state.asleep} - {*change.asleep}:
        ready[node] = now_s + float(wake_s[node])
    for job in change.stopped:
        jobs[job] = stopped(jobs[job], now_s)
    begin = dict[str, Allocation]()
    for job, given in plan.allocations.items():
        of, before = jobs[job], held.get(job)
        if job not in change.held:  # the job goes on: only its expected values may have changed
            jobs[job] = replace(of, state=replace(of.state, allocation=given))
        elif before is not None and before.narrows_to(given):
            narrow = of.state.narrowed(given, now_s, of.state.done_at(now_s))
            jobs[job] = begun(of, narrow)
        else:
            begin[job] = given
    pause_s = {i: _pause_s(jobs[i], a, settings.costs, now_s) for i, a in begin.items()}
    awake_s = {i: max(ready.get(n, now_s) for n, _ in a.placement) for i, a in begin.items()}
    together_s = ready_together(begin, {i: awake_s[i] + pause_s[i] for i in begin})
    for job, given in begin.items():
        then_s = awake_s[job], together_s.get(given.array, 0.0)
        of = stopped(jobs[job], now_s)
        jobs[job] = begun(of, of.state.holding(given, now_s, pause_s[job], *then_s))
    for job, of in jobs.items():
        if of.leaves is not None:
            jobs[job] = replace(of, leaves=None)
    return replace(state, jobs=jobs, plan=plan, asleep=change.asleep, ready_s=ready)


def _pause_s(of: Tracked, given: Allocation, usual: Costs, now_s: float) -> float:
    """Return the pause of a starting job; a job that leaves an allocation counts as changing."""
    state, costs = of.state, of.state.job.costs or usual
    if of.leaves is not None and of.leaves.goes_on(given):
        return state.owed_at(now_s)
    running = state.allocation is not None or of.leaves is not None
    pause_s = costs.pause(given.option.gpus, started=state.started, running=running)
    return pause_s + state.owed_at(now_s)
