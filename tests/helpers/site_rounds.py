"""Tiny random rounds under two or three rules of a site, for a comparison with every plan."""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.job import (
    Allocation,
    Costs,
    Estimate,
    Job,
    JobState,
    Need,
    Option,
    Slices,
)
from ronda.instances.profile import Parametric, Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.hosts import need_problems
from ronda.instances.rules.validate import validate
from ronda.instances.site import (
    Disruption,
    LimitGroup,
    Neighbourhood,
    PriorityClass,
    Quota,
    Tenant,
)

NOW_S = 3600.0

Rule = Callable[[np.random.Generator, Round], Round]

OBJECTIVE = {"objective": "weighted-goodput", "power": 1.0}
"""Values are weight times speed-up over the least GPUs, to which stops and gangs add."""


def tiny(seed: int, rules: tuple[str, ...] = ()) -> Round:
    """Return a random round of 3 to 5 jobs on 2 to 4 nodes in two racks, under the named rules.

    Some jobs run; some are elastic; in half of the rounds moves cost something.
    """
    rng = np.random.default_rng([seed, 54])
    cluster = _cluster(rng)
    topology = cluster.topology
    free: list[int] = topology.node_gpus.tolist()
    states = []
    for k in range(int(rng.integers(3, 6))):
        job = _job(rng, k, sum(topology.node_gpus[topology.node_pool == 0]))
        held = _held(rng, cluster, free, job) if rng.random() < 0.5 else None
        begun = {} if held is None else {"started": True, "held_s": NOW_S - 600, "ran_s": 0.0}
        states.append(JobState(job=job, since_s=NOW_S - 600, allocation=held, **begun))
    made = Round(
        name=f"tiny-site-{seed}",
        now_s=NOW_S,
        length_s=60.0,
        cluster=cluster,
        profiles=_profiles(),
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        costs=Costs(start_s=5.0, restart_s=float(rng.choice([0.0, 30.0]))),
    )
    for rule in sorted(rules, key=lambda name: name == "needs"):  # these fit what jobs may have
        made = RULES[rule](rng, made)
    return validate(made)


def drawn_rules(seed: int, among: tuple[str, ...]) -> tuple[str, ...]:
    """Return two or three rules for a seed, each as often as the others."""
    rng = np.random.default_rng([seed, 55])
    count = min(len(among), int(rng.integers(2, 4)))
    return tuple(rng.choice(among, count, replace=False).tolist())


def with_jobs(round: Round, change: Callable[[Job], Job]) -> Round:
    """Return the round with all its jobs changed, but for those that it would then refuse."""
    tried = if_valid(round, change)
    states = {
        name: tuple(replace(s, job=tried(s.job)) for s in getattr(round, name))
        for name in ("running", "waiting")
    }
    return replace(round, **states)


def _cluster(rng: np.random.Generator) -> Cluster:
    """Return 2 to 4 nodes of 2 or 4 GPUs in two racks, in one or two pools."""
    size = int(rng.choice([2, 4], p=[0.4, 0.6]))
    second = rng.random() < 0.3
    counts = [int(rng.integers(1, 3)), int(rng.integers(1, 3))]
    groups = [
        NodeGroup(
            name=f"g{r}",
            count=n,
            gpus_per_node=2 if r and rng.random() < 0.15 else size,
            gpu_type="B" if r and second else "A",
            rack=f"r{r}",
        )
        for r, n in enumerate(counts)
    ]
    return Cluster(
        gpu_types=tuple(GpuType(name=name, memory_gib=16.0) for name in "AB"),
        racks=(
            Rack(name="pod", level="block"),
            *(Rack(name=f"r{r}", parent="pod") for r in (0, 1)),
        ),
        node_groups=tuple(groups),
    )


def _job(rng: np.random.Generator, k: int, most: int) -> Job:
    """Return job k, which is elastic one time out of three."""
    gpus = int(rng.choice([n for n in (1, 2, 3, 4, 6, 8) if n <= most]))
    elastic = bool(rng.random() < 0.35)
    return Job(
        id=f"j{k}",
        submit_s=float(10 * k),
        profile="elastic" if elastic else "rigid",
        gpus=min(gpus, 2) if elastic else gpus,
        min_gpus=1 if elastic else None,
        max_gpus=gpus if elastic and gpus > 2 else None,
        preemptible=bool(rng.random() < 0.85),
        weight=float(rng.integers(1, 10)) * (1.0 if elastic else gpus),
        estimate=Estimate(work=float(rng.integers(2000, 9000))),
    )


def _held(
    rng: np.random.Generator, cluster: Cluster, free: list[int], job: Job
) -> Allocation | None:
    """Return GPUs of pool 0 that a job runs on, taken from `free`, or None without room."""
    pools, pieces, left = cluster.topology.node_pool, list[tuple[int, int]](), job.gpus
    for n in rng.permutation(np.flatnonzero(pools == 0)).tolist():
        if left and free[n]:
            pieces.append((n, min(left, free[n])))
            left -= pieces[-1][1]
    if left:
        return None
    for n, g in pieces:
        free[n] -= g
    span = "node" if len(pieces) == 1 else "cluster"
    option = Option(pool=0, gpus=job.gpus, span=span)
    return Allocation(option=option, placement=tuple(sorted(pieces)))


def _profiles() -> dict[str, Profile]:
    """Return an application that runs only as asked, and one that racks slow down."""
    model = Parametric(alpha_c_s=0.01, beta_c_s=0.02, alpha_r_s=0.01, alpha_n_s=0.02, alpha_x_s=0.1)
    elastic = Profile(name="elastic", throughput={"A": model, "B": model}, base_batch=8.0)
    rigid = Profile(name="rigid", throughput={"A": Rigid(), "B": Rigid()})
    return {"rigid": rigid, "elastic": elastic}


def tenants(rng: np.random.Generator, round: Round) -> Round:
    """Tenants a and b below one more, and c beside it, with limits on what they hold and borrow."""
    sizes = [0.0, 1.0, 2.0, 3.0, 4.0]

    def quota(of: str) -> Quota:
        own = {
            f: float(rng.choice(sizes)) for f in ("limit", "borrow", "lend") if rng.random() < 0.4
        }
        guaranteed = float(rng.choice(sizes)) if own.keys() & {"borrow", "lend"} else None
        if guaranteed is not None and "lend" in own:
            own["lend"] = min(own["lend"], guaranteed)
        return Quota(of=of, guaranteed=guaranteed, **own)

    def quotas() -> tuple[Quota, ...]:
        return tuple(quota(of) for of in ("gpus", "A") if rng.random() < 0.6)

    tree = (
        Tenant(name="org", quotas=(Quota(guaranteed=float(rng.integers(2, 9))),)),
        Tenant(name="dept", parent="org", quotas=quotas()),
        Tenant(name="a", parent="dept", quotas=quotas()),
        Tenant(name="b", parent="dept", quotas=quotas()),
        Tenant(name="c", parent="org", quotas=quotas(), max_jobs=int(rng.integers(0, 3))),
    )
    return _owned(rng, with_site(round, tenants=tree, reclaim="never"))


def guaranteed(rng: np.random.Generator, round: Round) -> Round:
    """Tenants a and b below one more, and c beside it, with guarantees that reclaim."""
    names = {"org": None, "dept": "org", "a": "dept", "b": "dept", "c": "org"}
    tree = tuple(
        Tenant(
            name=name,
            parent=parent,
            quotas=(Quota(guaranteed=float(rng.integers(0, 5))),) if rng.random() < 0.8 else (),
        )
        for name, parent in names.items()
    )
    return _owned(rng, with_site(round, tenants=tree))


def fair(rng: np.random.Generator, round: Round) -> Round:
    """The same with fair shares, after random use; sometimes nobody is stopped for either."""
    round = guaranteed(rng, round)
    used = {name: float(rng.integers(0, 4)) for name in "abc"}
    reclaim = str(rng.choice(["weighted", "never"]))
    return replace(with_site(round, fair_shares=True, reclaim=reclaim), used=used)


def firm(rng: np.random.Generator, round: Round) -> Round:
    """Jobs that may not be stopped fit into the guarantees of a and b."""
    tree = tuple(
        Tenant(name=name, quotas=(Quota(guaranteed=float(rng.integers(0, 5))),)) for name in "abc"
    )
    return _owned(rng, with_site(round, tenants=tree, firm_within_guarantee=True, reclaim="never"))


def groups(rng: np.random.Generator, round: Round) -> Round:
    """Limits for all jobs of two users, and for each user."""
    found = tuple(
        LimitGroup(
            name=f"q{k}",
            users=("u0", "u1")[: int(rng.integers(0, 3))],
            per=str(rng.choice(["group", "user"])),
            most={str(rng.choice(["gpus", "A"])): float(rng.integers(0, 6))},
            max_jobs=int(rng.integers(0, 4)) if rng.random() < 0.4 else None,
        )
        for k in range(int(rng.integers(1, 3)))
    )
    return with_jobs(
        with_site(round, groups=found), lambda job: replace(job, user=f"u{rng.integers(3)}")
    )


def classes(rng: np.random.Generator, round: Round) -> Round:
    """Three classes that differ in what their jobs are worth."""
    found = tuple(
        PriorityClass(name=name, rank=k, worth=float(rng.choice([0.5, 1.0, 3.0, 10.0])))
        for k, name in enumerate(("low", "mid", "top"))
    )
    names = ["low", "mid", "top", None]
    return with_jobs(
        with_site(round, classes=found),
        lambda job: replace(job, priority=names[int(rng.integers(4))]),
    )


def min_run(rng: np.random.Generator, round: Round) -> Round:
    """Jobs that began 600 s ago and are not to be changed before 300 or 900 s."""
    return with_jobs(
        round, lambda job: replace(job, min_run_s=float(rng.choice([0.0, 300.0, 900.0])))
    )


def disruption(rng: np.random.Generator, round: Round) -> Round:
    """At most some GPUs, or some jobs, stop, move or change."""
    gpus = int(rng.integers(0, 6)) if rng.random() < 0.7 else None
    jobs = int(rng.integers(0, 3)) if gpus is None or rng.random() < 0.3 else None
    return with_site(round, disruption=Disruption(gpus=gpus, jobs=jobs))


def job_arrays(rng: np.random.Generator, round: Round) -> Round:
    """Two arrays of which at most one or two tasks run."""
    limits = {"x": int(rng.integers(1, 3)), "y": 1}
    names = ["x", "x", "y", None]
    return with_jobs(
        with_site(round, job_arrays=limits),
        lambda job: replace(job, job_array=names[int(rng.integers(4))]),
    )


def licences(rng: np.random.Generator, round: Round) -> Round:
    """Licences of which others hold some."""
    total, taken = int(rng.integers(1, 4)), int(rng.integers(0, 2))
    cluster = replace(round.cluster, licences={"l": total}, licences_taken={"l": min(total, taken)})
    return with_jobs(
        replace(round, cluster=cluster),
        lambda job: replace(job, licences={"l": 1} if rng.random() < 0.6 else {}),
    )


def blocked(rng: np.random.Generator, round: Round) -> Round:
    """One of the waiting jobs waits for another, and may not start."""
    waiting = list(round.waiting)
    if waiting:
        k = int(rng.integers(len(waiting)))
        waiting[k] = replace(waiting[k], blocked="waits for job z")
    return replace(round, waiting=tuple(waiting))


def sizes(rng: np.random.Generator, round: Round) -> Round:
    """Elastic jobs that name their sizes."""

    def change(job: Job) -> Job:
        if job.profile != "elastic" or rng.random() < 0.3:
            return job
        most = job.max_gpus or job.gpus
        named = {job.gpus, *rng.integers(1, most + 1, 2).tolist()}
        return replace(job, sizes=tuple(sorted(named)), min_gpus=min(named), max_gpus=max(named))

    return with_jobs(round, if_valid(round, change))


def named_nodes(rng: np.random.Generator, round: Round) -> Round:
    """Jobs that are bound to named nodes, or to a feature of one group."""
    groups = tuple(
        replace(g, features=("fast",) if k == 0 else ())
        for k, g in enumerate(round.cluster.node_groups)
    )
    count = len(round.cluster.topology.node_gpus)

    def change(job: Job) -> Job:
        if rng.random() < 0.4:
            nodes = rng.choice(count, int(rng.integers(1, count + 1)), replace=False)
            return replace(job, nodes=tuple(sorted(nodes.tolist())))
        return replace(job, features=("fast",)) if rng.random() < 0.3 else job

    made = replace(round, cluster=replace(round.cluster, node_groups=groups))
    return with_jobs(made, change)


def exclusive(rng: np.random.Generator, round: Round) -> Round:
    """Waiting jobs that have their nodes to themselves."""
    return with_waiting(round, lambda job: replace(job, exclusive=bool(rng.random() < 0.5)))


def one_node(rng: np.random.Generator, round: Round) -> Round:
    """Jobs that must be on one node, if they fit."""
    most = max(round.cluster.topology.node_gpus)
    return with_waiting(
        round,
        lambda job: replace(job, one_node=bool(job.gpus <= most and rng.random() < 0.8)),
    )


def slices(rng: np.random.Generator, round: Round) -> Round:
    """Waiting jobs of several nodes in equal, listed or balanced slices, some of them spread."""
    size = round.cluster.node_groups[0].gpus_per_node
    most = max(group.count for group in round.cluster.node_groups if group.gpus_per_node == size)

    there = sum(
        group.count
        for group in round.cluster.node_groups
        if group.gpus_per_node == size and group.gpu_type == "A"
    )

    def change(job: Job) -> Job:
        nodes = int(rng.integers(1, there + 1))
        if nodes < 2 or rng.random() < 0.3:
            return job
        wide = {"gpus": nodes * size, "min_gpus": None, "max_gpus": None, "profile": "rigid"}
        job = replace(job, **wide, weight=job.weight * nodes)
        each = int(rng.choice([n for n in (1, 2) if nodes % n == 0 and n <= most]))
        rest = {
            "spread": bool(rng.random() < 0.3),
            "together": "block" if rng.random() < 0.2 else None,
        }
        kind = rng.random()
        if kind < 0.25:
            return replace(job, slices=Slices(balanced=True, together=rest["together"]))
        if kind < 0.5:
            listed = (each, *(1,) * (nodes - each)) if rng.random() < 0.7 else (1,) * nodes
            return replace(job, slices=Slices(listed=listed, **rest))
        return replace(job, slices=Slices(nodes=each, **rest))

    return with_waiting(round, change)


def neighbours(rng: np.random.Generator, round: Round) -> Round:
    """Two groups of jobs that run together, or apart, by node or rack."""
    rule = str(rng.choice(["together", "apart"]))
    found = tuple(
        Neighbourhood(
            name=name,
            rule=rule,
            within=str(rng.choice(["node", "rack"])),
        )
        for name in ("m", "n")
    )

    def own() -> tuple[str, ...]:
        drawn = tuple(n for n in "mn" if rng.random() < 0.4)
        return drawn if found[0].rule == found[1].rule else drawn[:1]  # else they may contradict

    return with_jobs(
        with_site(round, neighbourhoods=found),
        lambda job: replace(job, neighbourhoods=own()),
    )


def leaving(rng: np.random.Generator, round: Round) -> Round:
    """One or two nodes leave within hours; some jobs have a time limit."""
    count = len(round.cluster.topology.node_gpus)
    gone = rng.choice(count, int(rng.integers(1, 3)), replace=False)
    nodes = tuple((n, NOW_S + float(rng.choice([900, 3600, 7200]))) for n in sorted(gone.tolist()))
    return with_jobs(
        replace(round, leaving=nodes),
        lambda job: (
            replace(job, limit_s=float(rng.choice([1200, 3000, 9000])))
            if rng.random() < 0.7
            else job
        ),
    )


def needs(rng: np.random.Generator, round: Round) -> Round:
    """CPUs and memory on hosts, of which others hold some."""
    groups = tuple(
        replace(
            g,
            has={
                "cpu": float(rng.integers(2, 5)) * g.gpus_per_node,
                "memory_gib": float(rng.choice([8.0, 16.0, 64.0])) * g.gpus_per_node,
            },
        )
        for g in round.cluster.node_groups
    )
    count = len(round.cluster.topology.node_gpus)
    taken = ((int(rng.integers(count)), "cpu", float(rng.integers(1, 5))),)
    cluster = replace(round.cluster, node_groups=groups, taken=taken if rng.random() < 0.5 else ())

    def change(job: Job) -> Job:
        own = {}
        if rng.random() < 0.7:
            own["cpu"] = Need(
                per_gpu=float(rng.integers(0, 6)),
                per_node=float(rng.choice([0, 0, 1, 3])),
                flat=float(rng.choice([0, 0, 2, 5])),
            )
        if rng.random() < 0.4:
            own["memory_gib"] = Need(per_gpu=float(rng.choice([4.0, 12.0, 20.0])))
        possible = {
            name: need
            for name, need in own.items()
            if not [
                *need_problems((replace(job, needs={name: need}),), str, round.profiles, cluster)
            ]
        }
        return replace(job, needs=possible)

    made = replace(round, cluster=cluster)
    return with_jobs(made, change)


def with_site(round: Round, **fields: Any) -> Round:
    """Return the round with some rules of its site changed."""
    return replace(round, site=replace(round.site, **fields))


def with_waiting(round: Round, change: Callable[[Job], Job]) -> Round:
    """Return the round with the jobs changed that wait, but for those that it would refuse."""
    tried = if_valid(round, change)
    return replace(round, waiting=tuple(replace(s, job=tried(s.job)) for s in round.waiting))


def if_valid(round: Round, change: Callable[[Job], Job]) -> Callable[[Job], Job]:
    """Return the change, but for jobs that the round would then refuse."""

    def tried(job: Job) -> Job:
        changed = change(job)
        state = JobState(job=changed, since_s=NOW_S)
        try:
            validate(replace(round, running=(), waiting=(state,)))
        except InputError:
            return job
        return changed

    return tried


def _owned(rng: np.random.Generator, round: Round) -> Round:
    """Return the round with each job in one of three tenants, or in none."""
    names = ["a", "b", "c", None]
    return with_jobs(
        round, lambda job: replace(job, tenant=names[int(rng.choice(4, p=[0.4, 0.3, 0.2, 0.1]))])
    )


RULES: dict[str, Rule] = {
    "classes": classes,
    "min_run": min_run,
    "disruption": disruption,
    "job_arrays": job_arrays,
    "blocked": blocked,
    "leaving": leaving,
    "tenants": tenants,
    "guaranteed": guaranteed,
    "fair": fair,
    "firm": firm,
    "groups": groups,
    "sizes": sizes,
    "named_nodes": named_nodes,
    "exclusive": exclusive,
    "one_node": one_node,
    "slices": slices,
    "neighbours": neighbours,
    "licences": licences,
    "needs": needs,
}
"""Each puts one rule on a tiny round, by name."""
