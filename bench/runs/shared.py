"""How shared a cluster was in a run: how tenants fare, and GPUs that are free while jobs wait.

Free GPUs are told by the rule that keeps the jobs from them. At each moment jobs that wait are
added in order of submission, as requested, wherever there is room: first by the number of free GPUs
alone, then under one more kind of rule each time. What each kind of rule costs is the difference of
the GPUs that can be filled: *quota* stands for limits that do not depend on nodes, *host* for the
resources of hosts, *parts* for GPUs of which only a part is free, and *rack* for all that depends
on which nodes have free GPUs. *order* is the rest: GPUs that jobs could have at once, but for the
policy's order, reservations or limits on power, or of which too few are free for any job that
waits.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from math import nan
from statistics import fmean
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.node_rules.hosts import JobNeeds, host_has, needs_of, resources
from ronda.formulations.options.application import Requested
from ronda.formulations.site.accounts import accounts
from ronda.instances.base import Floats, Mask
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.outcome.usage import steps
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.site import GPUS, NO_SITE
from ronda.instances.violation import SECOND
from ronda.solvers.as_one import AsOne
from ronda.solvers.greedy.room import Room

MOST_LOOKS = 1_000_000
"""How often a job that waits is looked at, at most: a minute's work."""

CAUSES = ("quota", "host", "parts", "rack", "order")


def idle_by_cause(instance: Instance, schedule: Schedule) -> dict[str, float]:
    """Return the GPU time that is free while jobs wait, as shares of all GPU time, by cause.

    No more GPUs count than jobs wait for. There is nothing for instances without a site's rules and
    needs. Where more than `MOST_LOOKS` times a job waits at a moment, every n-th moment stands for
    n of them.
    """
    jobs = instance.jobs
    plain = not any(job.needs or job.licences or job.part or job.share for job in jobs)
    if (instance.site == NO_SITE and plain) or not schedule.end_s > 0:
        return {}
    lost = np.zeros(len(CAUSES))
    lasting = [(len(round.waiting), lasts_s) for round, lasts_s in _moments(instance, schedule)]
    every = -(-sum(looks for looks, _ in lasting) // MOST_LOOKS) or 1
    seen_s = sum(lasts_s for _, lasts_s in lasting[::every])
    for round, lasts_s in islice(_moments(instance, schedule), 0, None, every):
        lost += lasts_s * _lost(AsOne(round).round)
    lost *= sum(lasts_s for _, lasts_s in lasting) / seen_s if every > 1 else 1.0
    whole = instance.cluster.gpus * schedule.end_s
    return {f"idle_{cause}": float(x) / whole for cause, x in zip(CAUSES, lost, strict=True)}


def _moments(instance: Instance, schedule: Schedule) -> Iterator[tuple[Round, float]]:
    """Yield the rounds between changes in which jobs wait and GPUs are free, with their seconds."""
    changes = list[tuple[float, int, str, JobState | None]]()
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        begin_s = outcome.eligible_s or outcome.submit_s
        if begin_s < schedule.end_s:
            end_s = schedule.end_s if outcome.end_s is None else outcome.end_s
            waits = JobState(job=replace(job, truth=None), since_s=begin_s, started=True)
            changes += [(end_s, 1, job.id, None), (begin_s, 2, job.id, waits)]
            for s in outcome.segments:
                runs = replace(waits, allocation=s.held)
                changes += [(s.end_s, 0, job.id, waits), (s.start_s, 3, job.id, runs)]
    outages, gpus = instance.faults.outages, instance.cluster.topology.node_gpus
    changes += [(at, 4, "", None) for o in outages for at in (o.start_s, o.end_s)]
    changes.sort(key=lambda change: change[:3])
    live, cluster = dict[str, JobState](), instance.cluster
    for (now_s, _, id, state), after in pairwise([*changes, (schedule.end_s, 0, "", None)]):
        if state is None:
            live.pop(id, None)
        else:
            live[id] = state
        if outages:
            gone = sorted({o.node for o in outages if o.start_s <= now_s < o.end_s})
            cluster = replace(instance.cluster, out=tuple((n, int(gpus[n])) for n in gone))
        round = Round(
            cluster=cluster,
            profiles=instance.profiles,
            now_s=now_s,
            running=tuple(s for s in live.values() if s.allocation is not None),
            waiting=tuple(s for s in live.values() if s.allocation is None),
            costs=instance.costs,
            site=instance.site,
        )
        if after[0] - now_s > SECOND and round.waiting and _free(round) > 0:
            yield round, after[0] - now_s


def _lost(round: Round) -> Floats:
    """Return the free GPUs of a round by cause, shape (5,)."""
    requested = Requested(round)
    ways = [(state, requested.options(state)) for state in round.waiting]
    concerned = {
        "": True,
        "quota": round.site != NO_SITE,
        "host": any(state.job.needs for state in round.jobs),
        "parts": any(held.parts for held in round.held.values()),
    }
    fills, rules = list[float](), list[str]()
    for cause, there in concerned.items():
        rules.append(cause)
        fills.append(_filled(round, ways, rules) if there else fills[-1])
    room = Room(round, round.running, until_end=False)
    placed = [room.fit(state) for state in round.waiting if room.free_gpus]
    fills.append(sum(_gpus(each.option) for each in placed if each is not None))
    down = np.minimum.accumulate(fills)
    asked = sum(max(map(_gpus, options), default=0.0) for _, options in ways)
    return np.append(down[:-1] - down[1:], down[-1] + max(0.0, min(_free(round), asked) - down[0]))


def _free(round: Round) -> float:
    used = sum(_gpus(held.option) for held in round.held.values())
    return sum(pool.gpus for pool in round.cluster.topology.pools) - used


def _gpus(option: Option) -> float:
    """Return the GPUs that a job has with an option; of a part of a GPU, its fraction."""
    return option.own_gpus * (option.share or 1.0)


def _filled(
    round: Round, ways: Sequence[tuple[JobState, list[Option]]], rules: Sequence[str]
) -> float:
    """Return the free GPUs that waiting jobs fill, as far as they may be in pieces anywhere.

    The kinds of rules that hold are given: under *parts* no GPU is free if a part of it is held.
    """
    topology = round.cluster.topology
    names = resources(round.cluster) if "host" in rules else ()
    free, left = topology.node_gpus.astype(float), host_has(round.cluster)[: len(names)].copy()
    books = accounts(round) if "quota" in rules else ()
    for state in round.running:
        if (held := state.allocation) is not None:
            at, whole = [node for node, _ in held.placement], [gpus for _, gpus in held.placement]
            cut = held.option.share if "parts" not in rules else None
            free[at] -= whole if cut is None else cut
            left[:, at] -= needs_of(state.job, names).on(held.placement)
            for book in books:
                book.take(state, held)
    total, failed = 0.0, set[object]()
    for state, options in ways:
        job = state.job
        who = job.tenant, job.user, job.priority, job.partition, job.job_array, job.preemptible
        alike = who, job.limit_s, tuple(options), str(job.needs), str(job.licences)
        for option in options if alike not in failed else ():
            given, needs = Allocation(option=option, placement=()), needs_of(job, names)
            pool = topology.node_pool == option.pool
            able = all(book.fits(state, given) for book in books)
            if able and _take(free, left, pool, needs, option):
                for book in books:
                    book.take(state, given)
                total += _gpus(option)
                break
        else:
            failed.add(alike)  # nor does anybody alike fit
    return total


def _take(free: Floats, left: Floats, pool: Mask, needs: JobNeeds, option: Option) -> bool:
    """Take GPUs (N,) of a pool's nodes, and what a job needs there (D, N), if there is enough."""
    nodes, asked = np.flatnonzero(pool & (free > 0)), _gpus(option)
    most = free[nodes] if option.share else np.floor(free[nodes] + EXACT)
    spare = left[:, nodes] - needs.per_node[:, None]
    each = np.maximum(needs.per_gpu, EXACT)[:, None]
    flat = np.where(spare < -EXACT, 0.0, np.inf)
    able = np.where(needs.per_gpu[:, None] > 0, spare / each, flat)
    concerned = (needs.per_gpu > 0) | (needs.per_node > 0)
    able = np.floor(able[concerned].min(axis=0, initial=np.inf) + EXACT)
    most = np.clip(most, 0.0, able.clip(0.0))
    if most.sum() < asked - EXACT:
        return False
    order = np.argsort(-most, kind="stable")
    taken = np.diff(np.minimum(most[order].cumsum(), asked), prepend=0.0)
    free[nodes[order]] -= taken
    left[:, nodes[order]] -= needs.per_gpu[:, None] * taken + needs.per_node[:, None] * (taken > 0)
    return True


EXACT = 1e-9
"""The rounding error of GPUs and of what they need."""


def tenant_figures(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    """Return the figures of tenants, or nothing for an instance without tenants.

    * `slowdown_by_tenant`: mean over a tenant's jobs that ended of the time from submission to the
      end, over the time that the job takes alone on the GPUs that it asks for; `mean_slowdown` and
      `worst_slowdown` are the mean and the largest of these;
    * `owed_met`: GPUs that tenants hold, at most those guaranteed to them that they ask for, over
      these, as integrals over time. What a job holds beyond the GPUs that it asks for does not
      count, nor does a job that asks for more than all that is guaranteed.
    """
    if not instance.site.tenants:
        return {}
    found = defaultdict[str, list[float]](list)
    requested = Requested(
        Round(cluster=instance.cluster, profiles=instance.profiles, costs=instance.costs)
    )
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        if job.tenant is None or job.truth is None or outcome.state != "completed":
            continue
        rate = requested.rate(JobState(job=job, since_s=job.submit_s))
        if rate and outcome.end_s is not None:
            alone_s = job.truth.work / (rate * job.truth.throughput)
            found[job.tenant].append((outcome.end_s - outcome.submit_s) / alone_s)
    slowdowns = {tenant: fmean(each) for tenant, each in sorted(found.items())}
    pairs = [
        _owed(instance, schedule, tenant.name, quota.of, quota.guaranteed)
        for tenant in instance.site.tenants
        for quota in tenant.quotas
        if quota.guaranteed
    ]
    owed, met = sum(each for each, _ in pairs), sum(each for _, each in pairs)
    return {
        "slowdown_by_tenant": slowdowns,
        "mean_slowdown": fmean(slowdowns.values()) if slowdowns else nan,
        "worst_slowdown": max(slowdowns.values(), default=nan),
        "owed_met": met / owed if owed else nan,
    }


def _owed(
    instance: Instance, schedule: Schedule, tenant: str, of: str, guaranteed: float
) -> tuple[float, float]:
    """Return the GPU-seconds that a tenant is owed of a resource, and those that it got."""
    names = [pool.gpu_type.name for pool in instance.cluster.topology.pools]
    times, asked, held = [0.0, schedule.end_s], [0.0, 0.0], [0.0, 0.0]
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        able = of == GPUS or (of in names and of in (job.gpu_types or names))  # else one of hosts
        if job.tenant != tenant or job.gpus > guaranteed or not able:
            continue
        end_s = schedule.end_s if outcome.end_s is None else outcome.end_s
        times += [min(end_s, outcome.eligible_s or outcome.submit_s), end_s]
        asked += [job.gpus, -job.gpus]
        held += [0.0, 0.0]
        for segment in outcome.segments:
            if of in (GPUS, names[segment.option.pool]):
                gpus = min(segment.option.own_gpus, job.gpus)
                times += [segment.start_s, segment.end_s]
                asked += [0.0, 0.0]
                held += [gpus, -gpus]
    at_s, wants, has = steps(np.array(times), np.array(asked), np.array(held))
    owed = np.minimum(wants, guaranteed)[:-1]
    lasts_s = np.diff(at_s)
    return float(owed @ lasts_s), float(np.minimum(has[:-1], owed) @ lasts_s)
