"""What must hold for jobs under a power cap: every job can run at some time, all else asleep."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

import numpy as np

from ronda.instances.budget import Budget
from ronda.instances.cluster import Cluster, Pool
from ronda.instances.job import Job
from ronda.instances.profile import Profile, Rigid
from ronda.instances.rules.budget import least_by_node
from ronda.instances.rules.problem import Problem, show


def job_power_problems(
    budget: Budget, cluster: Cluster, jobs: Iterable[Job], profiles: Mapping[str, Profile]
) -> Iterator[Problem]:
    """Yield the kinds of job that fit under no value of the power cap, everything else asleep.

    The objects must be consistent. Powers are at the least that a job can draw: with its fewest
    GPUs, at the lowest clock.
    """
    cap = budget.power_cap_w
    if cap is None:
        return
    idle_w, most_w = float(least_by_node(cluster).sum()), max(cap.values)
    for job, job_w in _least_watts(cluster, jobs, profiles):
        if idle_w + job_w > most_w * (1 + 1e-9):
            expected = (
                f"at least {idle_w + job_w:g} W at some time: job {show(job.id)} needs {job_w:g} W "
                f"beside the {idle_w:g} W of nodes that idle"
            )
            yield Problem("budget.power_cap_w.values", f"at most {most_w:g} W", expected)


def least_cap_w(cluster: Cluster, jobs: Iterable[Job], profiles: Mapping[str, Profile]) -> float:
    """Return the lowest power cap in watts under which each job can run by itself."""
    needed_w = [job_w for _, job_w in _least_watts(cluster, jobs, profiles)]
    return float(least_by_node(cluster).sum()) + max(needed_w, default=0.0)


def _least_watts(
    cluster: Cluster, jobs: Iterable[Job], profiles: Mapping[str, Profile]
) -> Iterator[tuple[Job, float]]:
    """Yield the first job of each kind that can run at all, and the watts that it adds."""
    seen = set()
    for job in jobs:
        kind = (job.profile, job.gpus, job.min_gpus, job.partition, job.gpu_types)
        if kind not in seen:
            seen.add(kind)
            job_w = _least_w(job, profiles[job.profile], cluster)
            if job_w < inf:
                yield job, job_w


def _least_w(job: Job, profile: Profile, cluster: Cluster) -> float:
    """Return by how many watts the cluster draws more when the job runs; infinite if it cannot."""
    topology = cluster.topology
    spared_w = topology.awake_w - least_by_node(cluster)
    found = inf
    for index, pool in enumerate(topology.pools):
        name = pool.gpu_type.name
        allowed = name in profile.throughput and (not job.gpu_types or name in job.gpu_types)
        if pool.partition != job.partition or not allowed:
            continue
        rigid = isinstance(profile.throughput[name], Rigid)
        gpus = job.gpus if rigid or job.min_gpus is None else min(job.min_gpus, job.gpus)
        nodes = -(-gpus // pool.gpus_per_node)
        woken_w = nodes * float(np.min(spared_w[topology.node_pool == index]))
        each_w = _gpu_w(profile, pool, 1.0 if rigid else pool.gpu_type.clocks[0])
        found = min(found, gpus * (each_w - pool.gpu_type.idle_w) + woken_w)
    return found


def _gpu_w(profile: Profile, pool: Pool, clock: float) -> float:
    """Return the least watts of one GPU of the job at a clock, however much it synchronises."""
    curve = profile.power.get(pool.gpu_type.name)
    if curve is None:
        return pool.gpu_type.idle_w
    computing_w = curve.computing_w(clock)
    return computing_w if curve.sync_w is None else min(computing_w, curve.sync_w)
