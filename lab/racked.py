"""Rounds of clusters whose racks matter: nodes of four GPUs, 18 in a rack, and jobs in slices."""

import math

import numpy as np
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.generate.applications import APPLICATIONS, GPU, HOST_IDLE_W
from ronda.instances.generate.common import START_S, estimate, started
from ronda.instances.generate.machines import profiles_of
from ronda.instances.generate.structure import Structure
from ronda.instances.job import Costs, Job, JobState, Slices
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate

GPUS_PER_NODE, PER_RACK = 4, 18
"""The GPUs of a node and the nodes of a rack of NVIDIA's NVL72."""

SLICES, SIZES = 16, (1, 2, 4, 8, 12, 16)
"""The most slices of a job, and the nodes of a slice."""

SHARES = np.array([0.3, 0.2, 0.2, 0.15, 0.05, 0.1])
"""The shares of slices of each size."""

SMALL, ELASTIC, LEFT = 0.5, 0.3, 0.4
"""The shares of jobs smaller than a node, of jobs in slices with a choice of their number, and of
jobs that have left since the others were placed."""

_NOW_S = 36_000.0


def racked_round(nodes: int = 1000, demand: float = 1.3, seed: int = 0) -> Round:
    """Return a round of jobs of 1 to 16 slices in racks of 18 nodes, about half of them running.

    Parameters
    ----------
    nodes
        Nodes; those that fill no rack are in a smaller one.
    demand
        GPUs that all live jobs together ask for, relative to those of the cluster.
    seed
        Seed of all random numbers.
    """
    if nodes < 2 * PER_RACK:
        raise InputError("nodes", str(nodes), f"{2 * PER_RACK} or more")
    if not 0.1 <= demand <= 10:
        raise InputError("demand", f"{demand:g}", "0.1 to 10")
    rng = np.random.default_rng([seed, 18])
    counts = [min(PER_RACK, nodes - at) for at in range(0, nodes, PER_RACK)]
    cluster = Cluster(
        gpu_types=(replace(GPU, clocks=(1.0,)),),
        node_groups=tuple(
            NodeGroup(
                name=f"rack{r}",
                count=count,
                gpus_per_node=GPUS_PER_NODE,
                gpu_type=GPU.name,
                rack=f"rack{r}",
                host_idle_w=HOST_IDLE_W / 2,
            )
            for r, count in enumerate(counts)
        ),
        racks=tuple(Rack(name=f"rack{r}") for r in range(len(counts))),
    )
    profiles = profiles_of(Structure(racks=2))
    states, asked, free = list[JobState](), 0, [GPUS_PER_NODE] * nodes
    while asked < demand * cluster.gpus:
        job = _job(rng, len(states), nodes)
        state = JobState(job=job, since_s=job.submit_s)
        on = _placement(job, counts, free) if asked < 0.9 * cluster.gpus else None
        if on is not None:
            state = started(state, on, cluster, profiles[job.profile], job.submit_s)
            if rng.random() < LEFT:
                for node, gpus in on:
                    free[node] += gpus
                continue
        asked += job.gpus
        states.append(state)
    order = [replace(s, job=replace(s.job, id=f"j{k}")) for k, s in enumerate(states)]
    return validate(
        Round(
            name=f"racked-{nodes}-{seed}",
            now_s=_NOW_S,
            length_s=300.0,
            cluster=cluster,
            profiles=profiles,
            running=tuple(s for s in order if s.allocation is not None),
            waiting=tuple(s for s in order if s.allocation is None),
            costs=Costs(start_s=START_S, restart_s=30.0),
            source=f"lab.racked.racked_round({nodes}, {demand:g}, {seed})",
        )
    )


def _job(rng: np.random.Generator, k: int, nodes: int) -> Job:
    """Return job k, with fewer GPUs than a node or in slices."""
    application = APPLICATIONS[rng.integers(len(APPLICATIONS))]
    profile = application.profile.name
    gpu_s = float(np.clip(rng.lognormal(math.log(14_400.0), 1.2), 600.0, 604_800.0))
    if rng.random() < SMALL:
        gpus = int(rng.choice([1, 2]))
        work = estimate(rng, gpus * gpu_s * application.samples_per_gpu_s(), 0.4)
        return Job(id=f"j{k}", submit_s=float(10 * k), profile=profile, gpus=gpus, estimate=work)
    many = 1.0 / np.arange(1, SLICES + 1)
    count, size = int(rng.choice(SLICES, p=many / many.sum())) + 1, int(rng.choice(SIZES, p=SHARES))
    count = max(1, min(count, nodes // (2 * size)))
    one = size * GPUS_PER_NODE
    elastic = bool(rng.random() < ELASTIC)
    return Job(
        id=f"j{k}",
        submit_s=float(10 * k),
        profile=profile,
        gpus=count * one,
        min_gpus=one if elastic else None,
        max_gpus=min(2 * count, SLICES) * one if elastic else None,
        slices=Slices(nodes=size),
        estimate=estimate(rng, count * one * gpu_s * application.samples_per_gpu_s() / 8, 0.4),
    )


def _placement(job: Job, counts: list[int], free: list[int]) -> tuple[tuple[int, int], ...] | None:
    """Return nodes for a job, taken from `free`: each slice in the rack that it fills best."""
    whole = job.gpus // GPUS_PER_NODE
    if not whole:
        fits = [(gpus, n) for n, gpus in enumerate(free) if gpus >= job.gpus]
        on = [(min(fits)[1], job.gpus)] if fits else []
    else:
        assert job.slices is not None
        size, on = job.slices.nodes or 1, []
        starts = [sum(counts[:r]) for r in range(len(counts))]
        for _ in range(whole // size):
            taken = {n for n, _ in on}
            empty = [
                [n for n in range(s, s + c) if free[n] == GPUS_PER_NODE and n not in taken]
                for s, c in zip(starts, counts, strict=True)
            ]
            racks = [(len(own), r) for r, own in enumerate(empty) if len(own) >= size]
            if not racks:
                return None
            on += [(n, GPUS_PER_NODE) for n in empty[min(racks)[1]][:size]]
    for node, gpus in on:
        free[node] -= gpus
    return tuple(sorted(on)) or None
