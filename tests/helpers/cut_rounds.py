"""Tiny random rounds of jobs that ask for parts, fractions and whole GPUs, some of them running."""

import numpy as np
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import GpuType, PartProfile, Parts
from ronda.instances.job import Estimate
from ronda.instances.plan import Plan
from tests.helpers.cut_gpus import GPU, PARTS, cut_cluster, cut_round

HALVES = GpuType(
    name="halves",
    memory_gib=40,
    idle_w=50,
    parts=Parts(
        compute=3,
        memory=4,
        profiles=(
            PartProfile(name="one", compute=1, memory=1, starts=(0, 1, 2), most=2),
            PartProfile(name="two", compute=1, memory=2, starts=(0, 2), most=2),
            PartProfile(name="big", compute=2, memory=2, starts=(0,), most=1, speed=0.9),
        ),
    ),
)
"""A GPU with few parts, so that every plan can be tried."""


def drawn(seed):
    """Return a valid round of 4 to 6 jobs on one to three GPUs."""
    rng = np.random.default_rng([seed, 31])
    shared, small = rng.random() < 0.3, rng.random() < 0.6
    gpu = HALVES if small else GPU
    gpus = int(rng.integers(1, 4))
    nodes = int(rng.choice([1, gpus])) if gpus > 1 else 1
    recut = str(rng.choice(["free", "empty", "never"], p=[0.6, 0.2, 0.2]))
    fields = {}
    if shared:
        recut, fields = "never", {"shared": True}
        kinds = [0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1]
    elif recut == "never":
        cut = ("two", "big") if small else (PARTS["3g"], PARTS["2g"], PARTS["1g"])
        fields, kinds = {"cut": cut}, [*cut]
    else:
        names = ["one", "two", "big"] if small else ["1g", "1g+me", "1g2", "2g", "3g", "4g", "7g"]
        kinds = [*names, 1]
    cluster = cut_cluster(nodes, gpus // nodes, recut=recut, gpu=gpu, **fields)
    asked = {}
    for k in range(int(rng.integers(4, 7 if small else 6))):
        kind = kinds[int(rng.integers(len(kinds)))]
        asked[f"j{k}"] = kind if isinstance(kind, str) else float(kind) if kind < 1 else 1
    jobs = {
        name: {
            "weight": float(rng.integers(1, 9)),
            "preemptible": bool(rng.random() < 0.6),
            "estimate": Estimate(work=float(rng.integers(100, 1000))),
        }
        for name in asked
    }
    waiting, running = dict(asked), {}
    for name in list(asked):
        if rng.random() < 0.6:
            continue
        for _ in range(12):  # a place where it fits beside those that run
            start = 0 if shared else int(rng.integers(8))
            place = (int(rng.integers(nodes)), int(rng.integers(gpus // nodes)), start)
            more = running | {name: (asked[name], place)}
            made = cut_round(running=more, cluster=cluster, jobs=jobs)
            given = {s.job.id: s.allocation for s in made.running}
            fresh = replace(
                made, running=(), waiting=tuple(replace(s, allocation=None) for s in made.running)
            )
            if not check(fresh, Plan(allocations=given)):
                running = more
                del waiting[name]
                break
    return cut_round(waiting, running, cluster=cluster, jobs=jobs)


def with_small_parts(seed, round):
    """Return a round whose GPUs may be cut or shared; some waiting jobs ask for it."""
    rng = np.random.default_rng([seed, 32])
    cluster = round.cluster
    recut = str(rng.choice(["free", "empty"]))
    groups = tuple(replace(g, recut=recut, shared=True) for g in cluster.node_groups)
    types = tuple(replace(t, parts=HALVES.parts) for t in cluster.gpu_types)

    def change(job):
        plain = not (job.exclusive or job.slices or job.sizes or job.neighbourhoods or job.fusible)
        if not plain or rng.random() < 0.3:
            return job
        asked = {"gpus": 1, "min_gpus": None, "max_gpus": None}
        if rng.random() < 0.3:
            return replace(job, share=float(rng.choice([0.3, 0.5, 0.6])), **asked)
        return replace(job, part=str(rng.choice(["one", "two", "big"])), **asked)

    return replace(
        round,
        cluster=replace(cluster, gpu_types=types, node_groups=groups),
        waiting=tuple(replace(s, job=change(s.job)) for s in round.waiting),
    )
