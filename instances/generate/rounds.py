"""Generated rounds: elastic jobs, some of which run."""

import math

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ronda.instances.cluster import Cluster
from ronda.instances.generate.applications import APPLICATIONS, GPU
from ronda.instances.generate.common import (
    SIZE_SHARES,
    SIZES,
    START_S,
    check,
    estimate,
    job_id,
    started,
)
from ronda.instances.generate.machines import cluster_of, profiles_of, shaped, watts_at, width
from ronda.instances.generate.structure import PLAIN, Structure, traits
from ronda.instances.job import Costs, Job, JobState
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import NoiseScale, Profile
from ronda.instances.round import Round

_NOW_S, _WINDOW_S = 36_000.0, 3600.0


def round(
    jobs: int = 64,
    gpus: int | None = None,
    severity: str = "balanced",
    seed: int = 0,
    structure: Structure = PLAIN,
) -> Round:
    """Return a round of elastic jobs, some of which run.

    Parameters
    ----------
    jobs
        Number of live jobs.
    gpus
        Number of GPUs; by default it follows from the severity's demand, not counting gangs.
    severity
        Scarcity of GPUs, watts and joules.
    seed
        Seed of all random numbers; the same seed gives the same file.
    structure
        Structure of the cluster and the jobs.

    Raises
    ------
    InputError
        If an argument is out of its range.
    """
    level = check(jobs, gpus, severity, seed)
    rng = np.random.default_rng([seed, 1])
    asked = rng.choice(SIZES, size=jobs, p=SIZE_SHARES).tolist()
    demanded = 8 * max(1, math.ceil(sum(asked) / (8 * level.demand)))
    cluster, profiles = cluster_of(gpus or demanded, structure), profiles_of(structure)
    watts_cap, watts_energy = (
        watts_at(cluster, profiles, share) for share in (level.cap, level.energy)
    )
    states = []
    for k, trait in enumerate(traits(structure, jobs, seed)):
        state = _state(rng, k, width(trait, asked[k], cluster), jobs, structure)
        job = shaped(state.job, trait, cluster, profiles, _NOW_S)
        states.append(structs.replace(state, job=job))
    running = _start(rng, states, cluster, profiles, min(watts_cap, watts_energy))
    words = "".join(f", {k}={v!r}" for k, v in structure.changed.items())
    return Round(
        name=f"generated-{severity}-{jobs}-{seed}",
        now_s=_NOW_S,
        length_s=60.0,
        cluster=cluster,
        profiles=profiles,
        waiting=tuple(s for k, s in enumerate(states) if k not in running),
        running=tuple(running[k] for k in sorted(running)),
        costs=Costs(start_s=START_S, restart_s=structure.restart_s),
        power_cap_w=watts_cap,
        energy_j=watts_energy * _WINDOW_S,
        window_s=_WINDOW_S,
        sustained_w=watts_energy,
        source=f"ronda.instances.generate.round({jobs}, {gpus}, {severity!r}, {seed}{words})",
    )


def _state(rng: np.random.Generator, k: int, n: int, jobs: int, structure: Structure) -> JobState:
    """Return live job k of a round as a waiting job; jobs are submitted in the order of k."""
    application = APPLICATIONS[rng.integers(len(APPLICATIONS))]
    gpu_s = float(np.clip(rng.lognormal(math.log(7200.0), 1.4), 60.0, 604_800.0))
    submit_s = _NOW_S * (k + float(rng.random())) / jobs
    early, late = application.noise
    scale = early * (late / early) ** float(rng.random())
    job = Job(
        id=job_id(k, jobs),
        submit_s=float(np.round(submit_s, 3)),
        profile=application.profile.name,
        gpus=n,
        min_gpus=1,
        max_gpus=8 * n,
        estimate=estimate(rng, gpu_s * application.samples_per_gpu_s(), structure.error),
    )
    noise = NoiseScale(
        batches=(application.profile.base_batch,), scale=(float(np.round(scale, 3)),)
    )
    return JobState(job=job, since_s=job.submit_s, noise=noise)


def _start(
    rng: np.random.Generator,
    states: list[JobState],
    cluster: Cluster,
    profiles: dict[str, Profile],
    watts: float,
) -> dict[int, JobState]:
    """Return the running jobs by index: about two thirds of those that GPUs and watts allow.

    Each job runs on as few nodes as possible. In a single pool, powers of two in descending order
    always fit in this way (the theorem of buddy allocation). Otherwise, a job that does not fit
    waits. A running job has done a random fraction of its work.
    """
    asked = sum(s.job.gpus for s in states)
    free, left_w = 2 * min(cluster.gpus, asked) / 3, watts - cluster.topology.idle_w
    chosen: list[int] = []
    for k in rng.permutation(len(states)).tolist():
        job = states[k].job
        extra_w = job.gpus * (
            float(gpu_power_w(profiles[job.profile].power[GPU.name])) - GPU.idle_w
        )
        if job.gpus <= free and extra_w <= left_w:
            chosen.append(k)
            free, left_w = free - job.gpus, left_w - extra_w
    chosen.sort(key=lambda k: (-states[k].job.gpus, k))
    nodes, running = cluster.topology.node_gpus.copy(), {}
    for k in chosen:
        job, age = states[k].job, float(rng.uniform(0.1, 0.9))
        placement = _placement(job, nodes, cluster)
        if placement is None:
            continue
        for node, share in placement:
            nodes[node] -= share
        now = started(states[k], placement, cluster, profiles[job.profile], _NOW_S)
        assert job.estimate is not None
        assert now.allocation is not None
        rate, done_now = now.allocation.option.rate, age * job.estimate.work
        began_s = float(np.round(max(job.submit_s, _NOW_S - done_now / rate), 3))
        done = float(np.round(max(0.0, done_now - rate * (_NOW_S - began_s)), 3))
        running[k] = structs.replace(now, since_s=began_s, held_s=began_s, done=done)
    return running


def _placement(
    job: Job, free: NDArray[np.int64], cluster: Cluster
) -> tuple[tuple[int, int], ...] | None:
    """Return the first nodes that hold a job in one rack or else in one pool, or None."""
    topology, per_node = cluster.topology, cluster.node_groups[0].gpus_per_node
    rest = job.gpus % per_node
    wanted = [per_node] * (job.gpus // per_node) + [rest] * (rest > 0)
    for index, pool in enumerate(topology.pools):
        if pool.partition != job.partition:
            continue
        own = np.flatnonzero(topology.node_pool == index)
        racks = topology.node_rack[own]
        for nodes in (*(own[racks == rack] for rack in np.unique(racks)), own):
            fit = nodes[free[nodes] >= wanted[0]][: len(wanted)].tolist()
            if len(fit) == len(wanted):
                return tuple(zip(fit, wanted, strict=True))
    return None
