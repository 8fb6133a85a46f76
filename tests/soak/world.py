"""A random day of a small cluster: arrivals, nodes that may sleep, limits that drop, wrong guesses.

On half of the days things break: nodes fail, are drained or slow, jobs fail, profiles are wrong,
reports are late. Limits never fall below what keeps every awake node and one job going: no day is
hopeless.
"""

import numpy as np
from msgspec.structs import replace

from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.cluster import Cluster
from ronda.instances.generate import Breakage, Structure, broken
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Job

JOBS, GPUS = (4, 16), (24, 32)
"""Fewest and most jobs of a day, and sizes of clusters."""

WIDEST = 8
"""Most GPUs of a job: what it draws must fit beside an idle cluster."""

BREAKAGE = Breakage(
    node_failures=3.0,
    repair_s=1800.0,
    drains=3.0,
    drain_s=1800.0,
    notice_s=900.0,
    job_failures=0.5,
    checkpoint_s=600.0,
    stragglers=0.1,
    speed_error=0.3,
    power_error=0.1,
    silences=0.1,
    report_s=60.0,
)
"""What breaks on half of the days, which last some hours."""


def day(seed: int) -> Instance:
    """Return the day of a seed, always the same one."""
    rng = np.random.default_rng([seed, 7])
    structure = Structure(
        types=int(rng.integers(1, 4)),
        racks=int(rng.integers(1, 3)),
        deadlines=float(rng.choice([0.0, 0.3])),
        restart_s=float(rng.choice([0.0, 30.0, 120.0])),
        error=float(rng.choice([0.0, 0.4, 1.5])),
    )
    jobs, gpus = int(rng.integers(JOBS[0], JOBS[1] + 1)), int(rng.choice(GPUS))
    made = generate.horizon(jobs, gpus, "loose", seed, structure)
    end_s = made.jobs[-1].submit_s + 1.0
    whole = replace(
        made,
        name=f"day-{seed}",
        cluster=_sleepy(made.cluster) if rng.random() < 0.5 else made.cluster,
        jobs=tuple(_narrow(job) for job in made.jobs),
        budget=_budget(rng, made.cluster, end_s),
        cadence=Cadence(period_s=float(rng.choice([600.0, 3600.0]))),
    )
    return broken(whole, BREAKAGE, seed) if rng.random() < 0.5 else whole


def _sleepy(cluster: Cluster) -> Cluster:
    """Return the cluster with nodes that sleep for less power, and wake in two minutes."""
    groups = tuple(
        replace(group, sleep_w=0.05 * group.host_idle_w, wake_s=120.0, wake_w=group.host_idle_w)
        for group in cluster.node_groups
    )
    return replace(cluster, node_groups=groups)


def _narrow(job: Job) -> Job:
    return replace(
        job,
        gpus=min(job.gpus, WIDEST),
        max_gpus=None if job.max_gpus is None else min(job.max_gpus, WIDEST),
    )


def _budget(rng: np.random.Generator, cluster: Cluster, end_s: float) -> Budget:
    """Return no limit, a power cap that drops twice, or an energy budget."""
    t = cluster.topology
    idle_w, most_w = t.idle_w, t.idle_w + 400.0 * cluster.gpus
    least_w = idle_w + 400.0 * WIDEST
    kind = rng.integers(3)
    if kind == 0:
        return Budget()
    share = float(rng.uniform(0.4, 0.9))
    low_w = max(least_w, idle_w + share * (most_w - idle_w))
    if kind == 1:
        times_s = np.sort(rng.uniform(0.0, end_s, 4)).round(3)
        values = (most_w, low_w, most_w, least_w, most_w)
        return Budget(power_cap_w=StepSeries(times_s=(0.0, *times_s.tolist()), values=values))
    return Budget(energy=EnergyBudget(joules=low_w * end_s, horizon_s=end_s))
