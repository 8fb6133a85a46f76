"""Generated rounds that are small enough for trying every combination of options."""

import math

import msgspec
import numpy as np

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition
from ronda.instances.generate.common import started
from ronda.instances.job import Costs, Estimate, Job, JobState
from ronda.instances.profile import NoiseScale, Parametric, PowerCurve, Profile, Rigid
from ronda.instances.round import Round

COMBINATIONS = 20_000
"""The most combinations of options in a tiny round, where not running counts as an option."""

_LAYOUTS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("default", "X"),),
    (("default", "X"), ("default", "Y")),
    (("default", "X"), ("b", "X")),
    (("default", "X"), ("default", "Y"), ("b", "X")),
)
_NOW_S = 1000.0


def tiny_round(seed: int = 0) -> Round:
    """Return a random round of 2 to 5 jobs with few options on 1 to 3 pools.

    The round has elastic and rigid jobs, one or two clocks and batch sizes, one or two nodes per
    pool, and some running jobs. It often has a power cap, an energy limit, or a job that must keep
    running. Running jobs are always within the limits, so every round is feasible.
    """
    rng = np.random.default_rng([seed, 3])
    cluster = _cluster(rng)
    profiles = {p.name: p for p in (_elastic(rng, "e", 2), _elastic(rng, "f", 1), _rigid(rng))}
    states: list[JobState] = []
    combinations, wanted = 1, int(rng.integers(2, 6))
    while len(states) < wanted:
        state = _state(rng, len(states), cluster, profiles)
        combinations *= 1 + options_at_most(state.job, cluster, profiles)
        if combinations > COMBINATIONS:
            break
        states.append(state)
    states = _start(rng, states, cluster, profiles)
    running = tuple(s for s in states if s.allocation is not None)
    drawn_w = _drawn(cluster, running)
    most_w = cluster.topology.idle_w + 300.0 * cluster.gpus
    # The limit is between the present power and the most that all jobs could draw.
    watts, sustained = (
        float(np.ceil(drawn_w + share * (most_w - drawn_w))) for share in rng.uniform(0.0, 0.6, 2)
    )
    capped, metered = rng.random() < 0.5, rng.random() < 0.4
    return Round(
        name=f"tiny-{seed}",
        now_s=_NOW_S,
        length_s=60.0,
        cluster=cluster,
        profiles=profiles,
        waiting=tuple(s for s in states if s.allocation is None),
        running=running,
        costs=Costs(start_s=5.0, restart_s=20.0),
        power_cap_w=watts if capped else None,
        energy_j=sustained * 3600.0 if metered else None,
        sustained_w=sustained if metered else None,
        source=f"ronda.instances.generate.tiny_round({seed})",
    )


def _cluster(rng: np.random.Generator) -> Cluster:
    """Return a cluster of one to three pools with one or two nodes each."""
    layout = _LAYOUTS[rng.integers(len(_LAYOUTS))]
    clocks = (1.0,) if len(layout) > 1 or rng.random() < 0.4 else (0.6, 1.0)
    idle = {name: float(rng.integers(20, 60)) for name in ("X", "Y")}
    groups = [
        NodeGroup(
            name=f"g{k}",
            count=int(rng.integers(1, 3)),
            gpus_per_node=int(rng.choice([2, 4])),
            gpu_type=gpu_type,
            partition=partition,
            host_idle_w=float(rng.integers(0, 200)),
        )
        for k, (partition, gpu_type) in enumerate(layout)
    ]
    return Cluster(
        gpu_types=tuple(
            GpuType(name=n, memory_gib=40.0, idle_w=idle[n], clocks=clocks) for n in idle
        ),
        node_groups=tuple(groups),
        partitions=tuple(Partition(name=p) for p in sorted({p for p, _ in layout} - {"default"})),
    )


def _elastic(rng: np.random.Generator, name: str, batches: int) -> Profile:
    """Return an application with random constants for type X and, faster or slower, for type Y."""
    base = float(rng.choice([16, 32]))
    models, power = {}, {}
    for gpu_type in ("X", "Y"):
        models[gpu_type] = Parametric(
            alpha_c_s=_between(rng, 0.005, 0.05),
            beta_c_s=_between(rng, 0.001, 0.01),
            alpha_r_s=_between(rng, 0.005, 0.05),
            beta_r_s=_between(rng, 0.0, 0.005),
            alpha_n_s=_between(rng, 0.05, 0.1),
            beta_n_s=_between(rng, 0.0, 0.005),
            gamma=_between(rng, 1.0, 3.0),
            phi=_between(rng, 0.3, 1.0),
        )
        power[gpu_type] = _power(rng)
    return Profile(
        name=name,
        throughput=dict(models),
        power=power,
        base_batch=base,
        batches=tuple(base * 2**k for k in range(batches)),
    )


def _rigid(rng: np.random.Generator) -> Profile:
    power = {"X": _power(rng), "Y": _power(rng)}
    return Profile(name="rigid", throughput={"X": Rigid(), "Y": Rigid()}, power=power)


def _power(rng: np.random.Generator) -> PowerCurve:
    """Return a power curve above every idle power; a busy GPU draws 80 to 300 W."""
    return PowerCurve(
        a_w=_between(rng, 60.0, 80.0),
        b_w=_between(rng, 30.0, 120.0),
        c_w=_between(rng, 0.0, 120.0),
        s0=_between(rng, 0.7, 0.9),
    )


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.round(rng.uniform(low, high), 4))


def options_at_most(job: Job, cluster: Cluster, profiles: dict[str, Profile]) -> int:
    """Return an upper bound on the number of options that a job has."""
    profile = profiles[job.profile]
    pools = [p for p in cluster.topology.pools if job.may_use(p)]
    if isinstance(profile.throughput["X"], Rigid):
        return len(pools)
    counts = {2**k for k in range(8) if (job.min_gpus or 1) <= 2**k <= (job.max_gpus or 1)}
    sizes = len(counts | {job.gpus})
    return sum(sizes * len(p.gpu_type.clocks) for p in pools) * max(1, len(profile.batches))


def _state(
    rng: np.random.Generator, k: int, cluster: Cluster, profiles: dict[str, Profile]
) -> JobState:
    """Return the state of waiting job k."""
    pool = cluster.topology.pools[rng.integers(len(cluster.topology.pools))]
    profile = profiles[str(rng.choice(list(profiles)))]
    rigid = profile.name == "rigid"
    gpus = int(rng.choice([1, 2]))
    work = float(np.round(rng.lognormal(math.log(1e4 if rigid else 1e6), 1.0), 1))
    job = Job(
        id=f"j{k}",
        submit_s=100.0 * k + float(rng.integers(100)),
        profile=profile.name,
        gpus=gpus,
        min_gpus=None if rigid else 1,
        max_gpus=None if rigid else int(rng.choice([gpus, 2 * gpus])),
        partition=pool.partition,
        gpu_types=(pool.gpu_type.name,) if rng.random() < 0.4 else (),
        weight=float(rng.integers(1, 4)),
        estimate=Estimate(work=work, sd=float(np.round(0.3 * work, 1))),
    )
    noise = None
    if not rigid:
        scale = _between(rng, 50.0, 2000.0)
        noise = NoiseScale(batches=(profile.base_batch,), scale=(scale,))
    return JobState(job=job, since_s=job.submit_s, noise=noise)


def _start(
    rng: np.random.Generator,
    states: list[JobState],
    cluster: Cluster,
    profiles: dict[str, Profile],
) -> list[JobState]:
    """Start some jobs as requested, each within one node; one of them may have to keep running."""
    topology = cluster.topology
    free = topology.node_gpus.copy()
    must_run = rng.random() < 0.4
    out = []
    for state in states:
        job = state.job
        nodes = [
            n
            for n in range(len(free))
            if free[n] >= job.gpus and job.may_use(topology.pools[topology.node_pool[n]])
        ]
        if not nodes or rng.random() < 0.5:
            out.append(state)
            continue
        node = int(rng.choice(nodes))
        free[node] -= job.gpus
        if must_run:
            state = msgspec.structs.replace(
                state, job=msgspec.structs.replace(job, preemptible=False)
            )
        profile, placement = profiles[job.profile], ((node, job.gpus),)
        out.append(started(state, placement, cluster, profile, _NOW_S - 100.0))
        must_run = False
    return out


def _drawn(cluster: Cluster, running: tuple[JobState, ...]) -> float:
    """Return the watts that the cluster draws with the running jobs."""
    watts = cluster.topology.idle_w
    for state in running:
        if state.allocation is not None:
            option = state.allocation.option
            idle_w = cluster.topology.pools[option.pool].gpu_type.idle_w
            watts += option.power_w - option.gpus * idle_w
    return float(watts)
