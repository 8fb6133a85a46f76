"""Choosing racks together with options, against choosing them afterwards.

Both modes of the price engine are driven over made instances where racks matter: racks of three
nodes hold one job of two nodes each, and jobs that synchronise across racks lose most of their
speed. It is the case that the joint mode is for, not an average one.
"""

from collections.abc import Sequence
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from ronda.bench.statistics import bootstrap_interval, paired_ratio
from ronda.bench.study.harness import Folder, jobs, markdown, seeds, study
from ronda.instances.check.answer import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import Parametric, Profile
from ronda.solvers.horizon.driver import run

RACKS, APPLICATIONS, MEAN_GAP_S = 6, 4, 55.0
MODES = ("prices(joint=false)", "prices(joint=true)")


def made(seed: int, jobs: int) -> Instance:
    """Return jobs of 1 to 32 GPUs on 6 racks of 3 nodes of 8, arriving at random.

    A step computes ``0.01 + 8/n`` s on n GPUs, and synchronises for 0.02 s within a node, 0.02 to
    0.1 s within a rack and 0.2 to 1 s across racks, depending on the application.
    """
    rng = np.random.default_rng(seed)
    profiles = {}
    for k in range(APPLICATIONS):
        node_s, rack_s = float(rng.uniform(0.02, 0.1)), float(rng.uniform(0.2, 1.0))
        model = Parametric(
            alpha_c_s=0.01, beta_c_s=1.0, alpha_r_s=0.02, alpha_n_s=node_s, alpha_x_s=rack_s
        )
        profiles[f"p{k}"] = Profile(name=f"p{k}", throughput={"G": model}, base_batch=8.0)
    submit_s = np.cumsum(rng.exponential(MEAN_GAP_S, jobs)).tolist()
    work = rng.lognormal(9.0, 1.0, jobs).tolist()
    groups = (
        NodeGroup(name=f"g{k}", count=3, gpus_per_node=8, gpu_type="G", rack=f"r{k}")
        for k in range(RACKS)
    )
    return Instance(
        name=f"racks-{seed}",
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16.0),),
            racks=tuple(Rack(name=f"r{k}") for k in range(RACKS)),
            node_groups=tuple(groups),
        ),
        profiles=profiles,
        jobs=tuple(
            Job(
                id=f"j{i}",
                submit_s=at_s,
                profile=f"p{rng.integers(APPLICATIONS)}",
                gpus=8,
                min_gpus=int(2 ** rng.integers(0, 4)),
                max_gpus=32,
                estimate=Estimate(work=samples),
                truth=Truth(work=samples),
            )
            for i, (at_s, samples) in enumerate(zip(submit_s, work, strict=True))
        ),
        costs=Costs(start_s=5.0, restart_s=30.0),
    )


def measure(seed: int, jobs: int, policy: str) -> dict[str, Any]:
    """Drive one mode over one instance."""
    instance = made(seed, jobs)
    schedule = run(instance, policy, seed=seed)
    figures = summarise(instance, schedule)
    return {
        "mean_jct_s": figures["mean_jct_s"],
        "preemptions": figures["preemptions"],
        "median_solve_s": median(record.solve_s for record in schedule.rounds),
        "violations": len(check(instance, schedule)),
    }


def table(runs: pd.DataFrame) -> str:
    """Return the means of both modes, and the joint mode's mean JCT over the other's; Markdown."""
    plain_s = runs[runs.policy == MODES[0]].mean_jct_s
    rows = []
    for mode, own in runs.groupby("policy", sort=False):
        ratio, low, high = bootstrap_interval(paired_ratio, own.mean_jct_s, plain_s)
        cells = [f"{own.mean_jct_s.mean():,.0f}", f"{ratio:.3f} [{low:.3f}, {high:.3f}]"]
        cells += [f"{own.preemptions.sum()}", f"{1e3 * own.median_solve_s.median():.1f}"]
        rows.append([str(mode), *cells, f"{own.violations.sum()}"])
    header = ["policy", "mean JCT (s)", "ratio", "preemptions", "decision (ms)", "violations"]
    return markdown(header, rows)


def compare(folder: Folder, seeds: Sequence[int], jobs: int) -> None:
    """Run both modes on the instances of all seeds."""
    cases = [{"seed": seed, "jobs": jobs, "policy": mode} for seed, mode in product(seeds, MODES)]
    folder.write(table(folder.measure(cases, measure)))


command = study("joint-racks", __doc__, compare, [seeds("0-9"), jobs(60)])
