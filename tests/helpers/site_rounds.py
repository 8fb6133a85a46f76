"""Tiny random rounds under two or three rules of a site, for a comparison with every plan."""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import Parametric, Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate

NOW_S = 3600.0

Rule = Callable[[np.random.Generator, Round], Round]

RULES: dict[str, Rule] = {}
"""Each puts one rule on a tiny round, by name."""

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
    for rule in rules:
        made = RULES[rule](rng, made)
    return validate(made)


def drawn_rules(seed: int, among: tuple[str, ...]) -> tuple[str, ...]:
    """Return two or three rules for a seed, each as often as the others."""
    rng = np.random.default_rng([seed, 55])
    count = min(len(among), int(rng.integers(2, 4)))
    return tuple(rng.choice(among, count, replace=False).tolist())


def with_jobs(round: Round, change: Callable[[Job], Job]) -> Round:
    """Return the round with all its jobs changed."""
    states = {
        name: tuple(replace(s, job=change(s.job)) for s in getattr(round, name))
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
