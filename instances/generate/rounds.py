"""Generated rounds: elastic jobs, some of which run."""

import math

import numpy as np

from ronda.instances.cluster import Cluster
from ronda.instances.generate.applications import APPLICATIONS, GPU, busy_w, speed, worth
from ronda.instances.generate.common import (
    COSTS,
    SIZE_SHARES,
    SIZES,
    check,
    equal_nodes,
    estimate,
    job_id,
    power_of_two,
    watts_at,
)
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.profile import NoiseScale, Profile
from ronda.instances.round import Round

_NOW_S, _WINDOW_S = 36_000.0, 3600.0


def round(
    jobs: int = 64, gpus: int | None = None, severity: str = "balanced", seed: int = 0
) -> Round:
    """Return a round of elastic jobs, some of which run.

    Without `gpus` the cluster has as many as the severity's demand says.

    Raises
    ------
    InputError
        If an argument is out of its range.
    """
    level = check(jobs, gpus, severity, seed)
    rng = np.random.default_rng([seed, 1])
    asked = rng.choice(SIZES, size=jobs, p=SIZE_SHARES)
    demanded = 8 * max(1, math.ceil(float(asked.sum()) / (8 * level.demand)))
    cluster = equal_nodes(gpus or demanded)
    watts_cap, watts_energy = (watts_at(cluster, share) for share in (level.cap, level.energy))
    states = [_state(rng, k, int(n), cluster.gpus, jobs) for k, n in enumerate(asked)]
    running = _start(rng, states, cluster, min(watts_cap, watts_energy))
    return Round(
        name=f"generated-{severity}-{jobs}-{seed}",
        now_s=_NOW_S,
        length_s=60.0,
        cluster=cluster,
        profiles={a.profile.name: a.profile for a in APPLICATIONS},
        waiting=tuple(s for k, s in enumerate(states) if k not in running),
        running=tuple(running[k] for k in sorted(running)),
        costs=COSTS,
        power_cap_w=watts_cap,
        energy_j=watts_energy * _WINDOW_S,
        window_s=_WINDOW_S,
        sustained_w=watts_energy,
        source=f"ronda.instances.generate.round({jobs}, {gpus}, {severity!r}, {seed})",
    )


def _state(rng: np.random.Generator, k: int, n: int, gpus: int, jobs: int) -> JobState:
    """Return live job k of a round, waiting; submitted in the order of k."""
    application = APPLICATIONS[rng.integers(len(APPLICATIONS))]
    gpu_s = float(np.clip(rng.lognormal(math.log(7200.0), 1.4), 60.0, 604_800.0))
    limit = power_of_two(gpus)
    submit_s = _NOW_S * (k + float(rng.random())) / jobs
    early, late = application.noise
    scale = early * (late / early) ** float(rng.random())
    job = Job(
        id=job_id(k, jobs),
        submit_s=float(np.round(submit_s, 3)),
        profile=application.profile.name,
        gpus=min(n, limit),
        min_gpus=1,
        max_gpus=min(8 * n, limit),
        estimate=estimate(rng, gpu_s * application.samples_per_gpu_s()),
    )
    noise = NoiseScale(
        batches=(application.profile.base_batch,), scale=(float(np.round(scale, 3)),)
    )
    return JobState(job=job, since_s=job.submit_s, noise=noise)


def _start(
    rng: np.random.Generator, states: list[JobState], cluster: Cluster, watts: float
) -> dict[int, JobState]:
    """Return, by index, the jobs that run: about two thirds of what GPUs, requests and watts allow.

    Powers of two in descending order, packed without holes, start at multiples of their size: no
    job is spread over more nodes than it needs (the theorem of buddy allocation).
    """
    profiles = {a.profile.name: a.profile for a in APPLICATIONS}
    asked = sum(s.job.gpus for s in states)
    free, left_w = 2 * min(cluster.gpus, asked) / 3, watts - cluster.topology.idle_w
    chosen: list[int] = []
    for k in rng.permutation(len(states)).tolist():
        job = states[k].job
        extra_w = job.gpus * (busy_w(profiles[job.profile], GPU.name) - GPU.idle_w)
        if job.gpus <= free and extra_w <= left_w:
            chosen.append(k)
            free, left_w = free - job.gpus, left_w - extra_w
    chosen.sort(key=lambda k: (-states[k].job.gpus, k))
    first, running = 0, {}
    for k in chosen:
        state = states[k]
        age = float(rng.uniform(0.1, 0.9))
        running[k] = _run(state, profiles[state.job.profile], first, cluster, age)
        first += state.job.gpus
    return running


def _run(state: JobState, profile: Profile, first: int, cluster: Cluster, age: float) -> JobState:
    """Return the state of a job on the GPUs from `first` on, with the share `age` of it done."""
    job, per_node = state.job, cluster.node_groups[0].gpus_per_node
    nodes = range(first // per_node, (first + job.gpus - 1) // per_node + 1)
    share = min(job.gpus, per_node)
    batch = profile.base_batch
    rate = speed(profile, GPU.name, job.gpus, len(nodes), batch)
    option = Option(
        pool=0,
        gpus=job.gpus,
        span="node" if len(nodes) == 1 else "cluster",
        batch=batch,
        rate=rate * worth(state.noise, batch, profile.base_batch),
        power_w=job.gpus * busy_w(profile, GPU.name),
    )
    assert job.estimate is not None
    done_now = age * job.estimate.work
    began = float(np.round(max(job.submit_s, _NOW_S - done_now / option.rate), 3))
    return JobState(
        job=job,
        since_s=began,
        held_s=began,
        done=float(np.round(max(0.0, done_now - option.rate * (_NOW_S - began)), 3)),
        started=True,
        allocation=Allocation(option=option, placement=tuple((i, share) for i in nodes)),
        noise=state.noise,
    )
