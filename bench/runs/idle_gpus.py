"""GPUs that are free while jobs wait, by the rule that keeps the jobs from them.

At each moment jobs that wait are added in order of submission, as requested, wherever there is
room: first by the number of free GPUs alone, then under one more kind of rule each time. What each
kind of rule costs is the difference of the GPUs that can be filled: *quota* stands for limits that
do not depend on nodes, *host* for the resources of hosts, *parts* for GPUs of which only a part is
free, and *rack* for all that depends on which nodes have free GPUs. *order* is the rest: GPUs that
jobs could have at once, but for the policy's order, reservations or limits on power, or of which
too few are free for any job that waits.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from ronda.formulations.node_rules.hosts import host_has, needs_of, resources
from ronda.formulations.options.application import Requested
from ronda.formulations.site.accounts import accounts
from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.site import NO_SITE
from ronda.instances.violation import SECOND
from ronda.solvers.as_one import AsOne
from ronda.solvers.greedy.room import Room

CAUSES = ("quota", "host", "parts", "rack", "order")


def idle_by_cause(instance: Instance, schedule: Schedule) -> dict[str, float]:
    """Return the GPU time that is free while jobs wait, as shares of all GPU time, by cause.

    No more GPUs count than jobs wait for. There is nothing for instances without a site's rules and
    needs.
    """
    jobs = instance.jobs
    plain = not any(job.needs or job.licences or job.part or job.share for job in jobs)
    if (instance.site == NO_SITE and plain) or not schedule.end_s > 0:
        return {}
    lost = np.zeros(len(CAUSES))
    for round, lasts_s in _moments(instance, schedule):
        lost += lasts_s * _lost(AsOne(round).round)
    whole = instance.cluster.gpus * schedule.end_s
    return {f"idle_{cause}": float(x) / whole for cause, x in zip(CAUSES, lost, strict=True)}


def _moments(instance: Instance, schedule: Schedule) -> Iterator[tuple[Round, float]]:
    """Yield the rounds between changes in which jobs wait and GPUs are free, with their seconds."""
    jobs = {job.id: replace(job, truth=None) for job in instance.jobs}
    live, held = dict[str, JobState](), dict[str, Allocation]()
    changes = list[tuple[float, int, str, Allocation | None]]()
    for outcome in schedule.jobs:
        end_s = schedule.end_s if outcome.end_s is None else outcome.end_s
        begin_s = outcome.eligible_s or outcome.submit_s
        changes += [(begin_s, 2, outcome.id, None), (end_s, 0, outcome.id, None)]
        for s in outcome.segments:
            changes += [(s.start_s, 3, outcome.id, s.held), (s.end_s, 1, outcome.id, None)]
    outages = instance.faults.outages
    changes += [(at, 4, "", None) for o in outages for at in (o.start_s, o.end_s)]
    changes.sort(key=lambda change: change[:3])
    topology, cluster = instance.cluster.topology, instance.cluster
    for (now_s, kind, job, given), after in pairwise([*changes, (schedule.end_s, 0, "", None)]):
        match kind:
            case 0:
                live.pop(job, None)
            case 1:
                held.pop(job, None)
            case 2 if now_s < schedule.end_s:
                live[job] = JobState(job=jobs[job], since_s=now_s)
            case 3 if given is not None:
                held[job] = given
        if outages:
            gone = sorted({o.node for o in outages if o.start_s <= now_s < o.end_s})
            gpus = topology.node_gpus
            cluster = replace(instance.cluster, out=tuple((n, int(gpus[n])) for n in gone))
        used = sum(_gpus(each.option) for each in held.values())
        free = sum(pool.gpus for pool in cluster.topology.pools) - used
        if after[0] - now_s > SECOND and len(live) > len(held) and free > 0:
            states = [replace(s, allocation=held.get(job), started=True) for job, s in live.items()]
            yield (
                Round(
                    cluster=cluster,
                    profiles=instance.profiles,
                    now_s=now_s,
                    running=tuple(s for s in states if s.allocation is not None),
                    waiting=tuple(s for s in states if s.allocation is None),
                    costs=instance.costs,
                    site=instance.site,
                ),
                after[0] - now_s,
            )


def _lost(round: Round) -> Floats:
    """Return the free GPUs of a round by cause, shape (5,)."""
    requested = Requested(round)
    ways = [(state, requested.options(state)) for state in round.waiting]
    fills = [_filled(round, ways)]
    fills.append(_filled(round, ways, quota=True) if round.site != NO_SITE else fills[-1])
    needy = any(state.job.needs for state in round.jobs)
    fills.append(_filled(round, ways, quota=True, host=True) if needy else fills[-1])
    cut = any(s.allocation is not None and s.allocation.parts for s in round.running)
    fills.append(_filled(round, ways, quota=True, host=True, whole=True) if cut else fills[-1])
    room = Room(round, round.running, until_end=False)
    placed = [room.fit(state) for state in round.waiting if room.free_gpus]
    fills.append(sum(_gpus(each.option) for each in placed if each is not None))
    down = np.minimum.accumulate(fills)
    used = sum(_gpus(held.option) for held in round.held.values())
    free = sum(pool.gpus for pool in round.cluster.topology.pools) - used
    wanted = min(free, sum(max(map(_gpus, options), default=0.0) for _, options in ways))
    return np.append(down[:-1] - down[1:], down[-1] + max(0.0, wanted - down[0]))


def _gpus(option: Option) -> float:
    """Return the GPUs that a job has with an option; of a part of a GPU, its fraction."""
    return option.own_gpus * (option.share or 1.0)


def _filled(
    round: Round,
    ways: Sequence[tuple[JobState, list[Option]]],
    *,
    quota: bool = False,
    host: bool = False,
    whole: bool = False,
) -> float:
    """Return the free GPUs that waiting jobs fill, as far as they may be in pieces anywhere.

    The flags tell which kinds of rules hold: `whole` that no GPU is free if a part of it is held.
    """
    books, nodes = accounts(round) if quota else (), _Nodes(round, host=host, whole=whole)
    for state in round.running:
        if state.allocation is not None:
            for book in books:
                book.take(state, state.allocation)
    total, failed = 0.0, set[object]()
    for state, options in ways:
        key = _key(state.job)
        for option in options if key not in failed else ():
            given = Allocation(option=option, placement=())
            if all(book.fits(state, given) for book in books) and nodes.fit(state.job, option):
                for book in books:
                    book.take(state, given)
                total += _gpus(option)
                break
        else:
            failed.add(key)
    return total


class _Nodes:
    """What is free on nodes while jobs are added that may be in pieces of one GPU."""

    def __init__(self, round: Round, *, host: bool, whole: bool) -> None:
        self._topology, self._names = round.cluster.topology, resources(round.cluster)
        self._host, self._left = host and bool(self._names), host_has(round.cluster).copy()
        self._free = self._topology.node_gpus.astype(float)
        for state in round.running:
            held = state.allocation
            if held is None:
                continue
            at = [node for node, _ in held.placement]
            if held.option.share is None or whole:
                self._free[at] -= [gpus for _, gpus in held.placement]
            else:
                self._free[at] -= held.option.share
            if self._host and state.job.needs:
                self._left[:, at] -= needs_of(state.job, self._names).on(held.placement)

    def fit(self, job: Job, option: Option) -> bool:
        """Add a job if there are enough GPUs on nodes with what it needs; return whether."""
        pool = self._topology.node_pool == option.pool
        nodes, asked = np.flatnonzero(pool & (self._free > 0)), _gpus(option)
        most = self._free[nodes] if option.share else np.floor(self._free[nodes] + EXACT)
        mind = self._host and bool(job.needs)
        if mind:
            needs = needs_of(job, self._names)
            spare = self._left[:, nodes] - needs.per_node[:, None]
            each = np.maximum(needs.per_gpu, EXACT)[:, None]
            able = np.where(needs.per_gpu[:, None] > 0, spare / each, np.inf * (spare >= -EXACT))
            concerned = (needs.per_gpu > 0) | (needs.per_node > 0)
            able = np.floor(able[concerned].min(axis=0, initial=np.inf) + EXACT)
            most = np.clip(most, 0.0, able.clip(0.0))
        if most.sum() < asked - EXACT:
            return False
        order = np.argsort(-most, kind="stable")
        taken = np.diff(np.minimum(most[order].cumsum(), asked), prepend=0.0)
        self._free[nodes[order]] -= taken
        if mind:
            on = needs.per_gpu[:, None] * taken + needs.per_node[:, None] * (taken > 0)
            self._left[:, nodes[order]] -= on
        return True


EXACT = 1e-9
"""The rounding error of GPUs and of what they need."""


def _key(job: Job) -> object:
    """Return what decides whether a job fits; where one does not, nobody like it does."""
    return (
        (job.tenant, job.user, job.priority, job.job_array, job.preemptible, job.limit_s),
        (job.profile, job.gpus, job.batch, job.partition, job.gpu_types, job.part, job.share),
        tuple(job.needs.items()),
        tuple(job.licences.items()),
        job.nodes,
        job.features,
    )
