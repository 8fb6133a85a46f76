"""Rules of a site put on instances and rounds, each drawn from a seed with a severity.

At the severity 0 a rule is stated and binds nobody; at 1 it binds many.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np
from msgspec.structs import replace

from ronda.instances.cluster import BUILT_IN
from ronda.instances.instance import Instance, Outage
from ronda.instances.job import After, Job, Need, Slices
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.throughput import samples_per_s
from ronda.instances.profile import Rigid
from ronda.instances.round import Round
from ronda.instances.site import Disruption, Neighbourhood, PriorityClass, Quota, Tenant

Subject = TypeVar("Subject", Instance, Round)

PER_GPU = {"cpu": 12.0, "memory_gib": 64.0}
"""What a host has for each of its GPUs: the largest node class of Alibaba's cluster of 2023 has 12
CPUs."""

ASKED = ((0.1, 0.5, 0.95, 0.99), (3.2 / 12, 1.0, 18.7 / 12, 24.2 / 12))
"""Quantiles of what a job asks per GPU, relative to `PER_GPU`: those of CPUs there."""


def with_jobs(subject: Subject, change: Callable[[Job], Job]) -> Subject:
    """Return an instance or a round with all its jobs changed."""
    if isinstance(subject, Instance):
        return replace(subject, jobs=tuple(map(change, subject.jobs)))
    states = {
        name: tuple(replace(state, job=change(state.job)) for state in getattr(subject, name))
        for name in ("running", "waiting")
    }
    return replace(subject, **states)


def with_waiting(subject: Subject, change: Callable[[Job], Job]) -> Subject:
    """Return an instance with all its jobs changed, or a round with those that wait."""
    if isinstance(subject, Instance):
        return with_jobs(subject, change)
    waiting = tuple(replace(state, job=change(state.job)) for state in subject.waiting)
    return replace(subject, waiting=waiting)


def with_hosts(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject whose nodes have CPUs and memory, which jobs need and others hold.

    A job needs amounts per GPU, one in four also an amount on each node, and one in eight an amount
    once. At the severity 1 half of the jobs ask for more than their share of a node, and others
    hold up to a third of what a node has.
    """
    rng = np.random.default_rng([seed, 1])
    cluster = subject.cluster
    groups = tuple(
        replace(g, has={name: each * g.gpus_per_node for name, each in PER_GPU.items()})
        for g in cluster.node_groups
    )
    sizes = np.repeat([g.gpus_per_node for g in groups], [g.count for g in groups])
    taken = tuple(
        (node, name, round(float(share * each * size), 3))
        for node, size in enumerate(sizes.tolist())
        for name, each in PER_GPU.items()
        if (share := severity * max(0.0, rng.uniform(-0.3, 0.3))) > 0
    )
    least, whole = int(sizes.min()), int(sizes.max())

    def needing(job: Job) -> Job:
        needs = {}
        for name, each in PER_GPU.items():
            asked = severity * float(np.interp(rng.random(), *ASKED)) * each
            most = 0.1 * severity * each * least
            node, once = (float(most * rng.random() * (rng.random() < p)) for p in (0.25, 0.125))
            room = each * least - node - once  # a piece fits on every node
            piece = min(whole, job.max_gpus or job.gpus)
            per_gpu = min(asked, room / piece)
            amounts = {"per_gpu": per_gpu - 5e-4, "per_node": node, "flat": once}
            needs[name] = Need(**{key: max(0.0, round(x, 3)) for key, x in amounts.items()})
        return replace(job, needs=needs)

    seen: dict[str, Job] = {}

    def alike(job: Job) -> Job:
        """Give the jobs of a fusion class the same needs."""
        made = needing(job)
        if job.fusible is None:
            return made
        return replace(made, needs=seen.setdefault(f"{job.fusible} {job.profile}", made).needs)

    return with_jobs(
        replace(subject, cluster=replace(cluster, node_groups=groups, taken=taken)), alike
    )


def with_licences(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject in which some jobs hold licences of two kinds.

    At the severity 1 half of the jobs need one or two of a kind, and there are enough for one job
    in eight.
    """
    rng = np.random.default_rng([seed, 2])
    names = ("solver", "compiler")
    jobs = len(subject.jobs)
    most = max(2, round(jobs * (1 - 0.875 * severity)))

    def holding(job: Job) -> Job:
        asked = {name: int(rng.integers(1, 3)) for name in names if rng.random() < severity / 2}
        return job if job.fusible is not None else replace(job, licences=asked)

    cluster = replace(subject.cluster, licences=dict.fromkeys(names, most))
    return with_jobs(replace(subject, cluster=cluster), holding)


def with_classes(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject whose jobs are in three priority classes.

    One job in ten is in the highest class, three are in the middle one, and the others in the
    lowest. The worth of a job grows with its class, up to 9 times at the severity 1; from 0.75 on
    the highest class is strict. The jobs of a fusion class are in one class.
    """
    rng = np.random.default_rng([seed, 3])
    names = ("batch", "team", "production")
    classes = tuple(
        PriorityClass(
            name=name,
            rank=rank,
            worth=(1 + 2 * severity) ** rank,
            strict=rank == len(names) - 1 and severity >= 0.75,
        )
        for rank, name in enumerate(names)
    )
    seen: dict[str, str] = {}

    def classed(job: Job) -> Job:
        drawn = names[int(rng.choice(len(names), p=[0.6, 0.3, 0.1]))]
        own = drawn if job.fusible is None else seen.setdefault(job.fusible, drawn)
        return replace(job, priority=own)

    return with_jobs(replace(subject, site=replace(subject.site, classes=classes)), classed)


def with_disruption(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject with minimum run times, and a budget for what a decision may disrupt.

    The budget is all GPUs at the severity 0, and none at 1. Minimum run times are drawn from an
    exponential distribution with a mean of half an hour times the severity.
    """
    rng = np.random.default_rng([seed, 4])
    most = int((1 - severity) * sum(subject.cluster.topology.node_gpus.tolist()))

    def lasting(job: Job) -> Job:
        least_s = round(float(rng.exponential(1800.0 * severity)), 3)
        return replace(job, min_run_s=least_s if job.fusible is None else 0.0)

    site = replace(subject.site, disruption=Disruption(gpus=most))
    return with_jobs(replace(subject, site=site), lasting)


LIMITS_S = tuple(3600.0 * hours for hours in (0.5, 1, 2, 4, 8, 12, 24, 48, 72, 168, 720))
"""The time limits from which users pick."""


def with_time_limits(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject whose jobs have time limits, the first of `LIMITS_S` that seems enough.

    What seems enough is the time on the GPUs asked for, times a factor around 16 at the severity 0
    and around 1 at 1, so that then a third of the jobs cannot complete.
    """
    rng = np.random.default_rng([seed, 13])

    def limited(job: Job) -> Job:
        thought_s = _asked_s(subject, job) * 16.0 ** (1 - severity) * rng.lognormal(0.0, 0.7)
        enough = [limit_s for limit_s in LIMITS_S if limit_s >= thought_s]
        return replace(job, limit_s=enough[0] if enough else thought_s)

    return with_jobs(subject, limited)


def _asked_s(subject: Instance | Round, job: Job) -> float:
    """Return the seconds that a job takes on the GPUs asked for, of the first type that suits."""
    profile, pools = subject.profiles[job.profile], subject.cluster.topology.pools
    known = [p for p in pools if p.gpu_type.name in (job.gpu_types or profile.throughput)]
    work = job.truth.work if job.truth else job.estimate.work if job.estimate else 0.0
    pool = next((p for p in known if p.gpu_type.name in profile.throughput), None)
    if pool is None or isinstance(profile.throughput[pool.gpu_type.name], Rigid):
        return work
    way = Configuration(
        job.gpus, -(-job.gpus // pool.gpus_per_node), job.batch or profile.base_batch
    )
    return work / float(samples_per_s(profile, pool.gpu_type, way))


def with_order(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject in which jobs come after an earlier job of their user.

    At the severity 1 half of the jobs do: three of five of these if that job has ended well, and
    the others if it has ended, failed or started, sometimes after a delay.
    """
    rng, last = np.random.default_rng([seed, 14]), dict[str | None, str]()
    whens: Sequence[Literal["ok", "any", "notok", "start"]]
    whens = ("ok", "ok", "ok", "any", "notok", "start")

    def ordered(job: Job) -> Job:
        before, last[job.user] = last.get(job.user), job.id
        if before is None or rng.random() >= severity / 2:
            return job
        delay_s = float(rng.choice([0.0, 0.0, 600.0]))
        after = After(job=before, when=whens[int(rng.integers(len(whens)))], delay_s=delay_s)
        return replace(job, after=(after,))

    return with_jobs(subject, ordered)


def with_job_arrays(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject in which jobs that ask for the same are tasks of arrays with throttles.

    A throttle is the number of tasks, and at the severity 1 a tenth of it.
    """
    rng, tasks = np.random.default_rng([seed, 15]), Counter[str]()

    def tasked(job: Job) -> Job:
        name = f"{job.profile}-{job.gpus}-{int(rng.integers(4))}"
        tasks[name] += 1
        return replace(job, job_array=name)

    made = with_jobs(subject, tasked)
    throttles = {name: max(1, round(n * (1 - 0.9 * severity))) for name, n in tasks.items()}
    return replace(made, site=replace(made.site, job_arrays=throttles))


def with_announced_outages(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject in which nodes go out of service, as is known before.

    At the severity 1 half of the nodes do: in a round within 12 hours; in an instance for two hours
    at some time until the last submission, a day after they are announced. Nodes that have other
    outages have no more.
    """
    rng, nodes = np.random.default_rng([seed, 16]), len(subject.cluster.topology.node_gpus)
    gone = [node for node in range(nodes) if rng.random() < severity / 2]
    if isinstance(subject, Round):
        times_s = subject.now_s + rng.uniform(0.0, 12 * 3600.0, len(gone))
        return replace(subject, leaving=tuple(zip(gone, times_s.tolist(), strict=True)))
    last_s, busy = subject.jobs[-1].submit_s, {o.node for o in subject.faults.outages}
    outages = tuple(
        Outage(node=n, start_s=s, end_s=s + 7200.0, notice_s=86_400.0, open=True)
        for n, s in zip(gone, rng.uniform(0.0, last_s + 3600.0, len(gone)).tolist(), strict=True)
        if n not in busy
    )
    faults = replace(subject.faults, outages=subject.faults.outages + outages)
    return replace(subject, faults=faults)


def with_shapes(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject in which waiting jobs have shapes.

    At the severity 1 half of the jobs below a node must be on one node, one in four has its nodes
    to itself, one in four asks for a feature of half of the node groups, and one in four is in a
    neighbourhood that is apart by node.
    """
    rng = np.random.default_rng([seed, 5])
    groups = subject.cluster.node_groups
    fast = {group.name for k, group in enumerate(groups) if k % 2 == 0}
    labelled = tuple(replace(g, features=("fast",)) if g.name in fast else g for g in groups)
    room: dict[str, int] = {}
    for g in groups:
        if g.name in fast:
            room[g.partition] = room.get(g.partition, 0) + g.count * g.gpus_per_node
    largest = min(group.gpus_per_node for group in groups)
    one_type = len({group.gpu_type for group in groups}) == 1

    def shaped(job: Job) -> Job:
        drawn = rng.random(4) < severity * np.array([0.5, 0.25, 0.25, 0.25])
        one, alone, label, apart = drawn.tolist()
        if job.fusible is not None or job.sweep is not None:
            return job
        fits = one_type and job.gpus <= room.get(job.partition, 0)
        return replace(
            job,
            one_node=one and job.gpus <= largest,
            exclusive=alone,
            features=("fast",) if label and fits else (),
            neighbourhoods=("spread",) if apart else (),
        )

    cluster = replace(subject.cluster, node_groups=labelled)
    rule = Neighbourhood(name="spread", rule="apart")
    site = replace(subject.site, neighbourhoods=(*subject.site.neighbourhoods, rule))
    return with_waiting(replace(subject, cluster=cluster, site=site), shaped)


def with_slices(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject in which waiting jobs of several whole nodes are in slices within racks.

    At the severity 1 they all are, in the largest slices that divide them and fit into a rack;
    at 0 each node is a slice.
    """
    rng = np.random.default_rng([seed, 6])
    groups = subject.cluster.node_groups
    nodes: dict[str, int] = {}
    for group in groups:
        if group.rack is not None:
            nodes[group.rack] = max(nodes.get(group.rack, 0), group.count)
    size, even = groups[0].gpus_per_node, len({(g.gpus_per_node, g.gpu_type) for g in groups}) == 1
    levels = {rack.name: rack.level for rack in subject.cluster.racks}
    most = min(nodes.values(), default=0)

    def sliced(job: Job) -> Job:
        count, rest = divmod(job.gpus, size)
        draw = rng.random()
        if rest or count < 2 or not even or not most or set(levels.values()) != {"rack"}:
            return job
        divisors = [n for n in range(1, most + 1) if count % n == 0]
        return replace(job, slices=Slices(nodes=divisors[-1] if draw < severity else 1))

    return with_waiting(subject, sliced)


def with_tenants(
    subject: Subject, *, leaves: int = 12, seed: int = 0, severity: float = 0.5
) -> Subject:
    """Return a subject whose jobs belong to tenants in departments, which lend and borrow GPUs.

    All GPUs are guaranteed to the leaves, in shares of random weights, and jobs belong to leaves at
    random with other weights, so that some want more than they have. At the severity 0 everything
    may be lent and borrowed; at 1 nothing.
    """
    rng = np.random.default_rng([seed, 7])
    gpus, departments = subject.cluster.gpus, max(1, round(leaves**0.5))
    weights = rng.dirichlet(np.full(leaves, 2.0))
    owned = np.floor(gpus * weights).astype(int)
    owned[0] += gpus - int(owned.sum())
    most, names = float(round(gpus * (1.0 - severity))), [f"t{k}" for k in range(leaves)]
    limit = (Quota(borrow=most),) if severity else ()
    tree = [Tenant(name="site")]
    tree += [Tenant(name=f"d{d}", parent="site", quotas=limit) for d in range(departments)]
    for k, (name, has) in enumerate(zip(names, owned.tolist(), strict=True)):
        quota = Quota(guaranteed=has)
        if severity:
            quota = Quota(guaranteed=has, lend=float(round(has * (1.0 - severity))), borrow=most)
        weight = float(np.round(weights[k] * leaves, 3))
        parent = f"d{k % departments}"
        tree.append(Tenant(name=name, parent=parent, quotas=(quota,), weight=weight))
    belong = rng.dirichlet(np.full(leaves, 2.0))
    site = replace(subject.site, tenants=tuple(tree), fair_shares=True, usage_half_life_s=86_400.0)
    seen: dict[str, str] = {}

    def owning(job: Job) -> Job:
        """Give the jobs of a fusion class the same tenant."""
        tenant = names[int(rng.choice(leaves, p=belong))]
        return replace(job, tenant=seen.setdefault(job.fusible or job.id, tenant))

    return with_jobs(replace(subject, site=site), owning)


def with_parts(subject: Subject, *, seed: int = 0, severity: float = 0.5) -> Subject:
    """Return a subject whose GPUs may be cut or shared, and jobs that ask for parts of them.

    At the severity 1 half of the jobs that ask for one GPU have a MIG profile instead, larger ones
    less often, and a quarter a fraction. GPUs of types without parts have those of an A100. In a
    round only jobs that wait ask.
    """
    rng = np.random.default_rng([seed, 5])
    cluster, usual = subject.cluster, BUILT_IN["A100-80"]
    ways = next((t.ways for t in cluster.gpu_types if t.ways is not None), usual)
    types = tuple(replace(t, parts=ways) for t in cluster.gpu_types)
    groups = tuple(replace(g, recut="free", cut=(), shared=True) for g in cluster.node_groups)
    names = [p.name for p in ways.profiles]
    odds = np.array([1.0 / p.memory for p in ways.profiles])
    runs = {state.job.id for state in getattr(subject, "running", ())}

    def asking(job: Job) -> Job:
        drawn, name = rng.random(), str(rng.choice(names, p=odds / odds.sum()))
        share = round(float(rng.choice([0.25, 0.5, 0.75])) * float(rng.uniform(0.8, 1.0)), 2)
        plain = job.fusible is None and not job.exclusive and job.slices is None and not job.sizes
        if job.gpus > 1 or not plain or job.id in runs or drawn >= 0.75 * severity:
            return job
        asked = {"part": name} if drawn < severity / 2 else {"share": share}
        return replace(job, min_gpus=None, max_gpus=None, **asked)

    cluster = replace(cluster, gpu_types=types, node_groups=groups)
    return with_jobs(replace(subject, cluster=cluster), asking)
