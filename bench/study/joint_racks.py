"""What it brings to choose racks together with options: two steps against the joint mode.

``python -m ronda.bench.study.joint_racks --seeds 10`` drives both modes of the price engine over
made instances where racks matter, and prints one JSON line a run. Racks of three nodes hold one job
of two nodes each, and jobs that synchronise across racks lose most of their speed: the case that
the joint mode is for, not an average one.
"""

import json
from collections.abc import Iterator
from statistics import median

import click
import numpy as np

from ronda.instances.check.answer import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.metrics import summarise
from ronda.instances.profile import Parametric, Profile
from ronda.solvers.horizon.driver import run
from ronda.solvers.registry import policy

RACKS, NODES, GPUS_PER_NODE, APPLICATIONS = 6, 3, 8, 4
MEAN_GAP_S = 55.0
MODES = ("prices(joint=false)", "prices(joint=true)")


def made(seed: int, jobs: int) -> Instance:
    """Return jobs of 1 to 32 GPUs on 6 racks of 3 nodes of 8, arriving at random.

    A step computes ``0.01 + 8/n`` s on n GPUs, and synchronises for 0.02 s within a node, 0.02 to
    0.1 s within a rack and 0.2 to 1 s across racks, depending on the application.
    """
    rng = np.random.default_rng(seed)
    profiles = {}
    for k in range(APPLICATIONS):
        model = Parametric(
            alpha_c_s=0.01,
            beta_c_s=1.0,
            alpha_r_s=0.02,
            alpha_n_s=float(rng.uniform(0.02, 0.1)),
            alpha_x_s=float(rng.uniform(0.2, 1.0)),
        )
        profiles[f"p{k}"] = Profile(name=f"p{k}", throughput={"G": model}, base_batch=8.0)
    submit_s = np.cumsum(rng.exponential(MEAN_GAP_S, jobs)).tolist()
    work = rng.lognormal(9.0, 1.0, jobs).tolist()
    return Instance(
        name=f"racks-{seed}",
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16.0),),
            racks=tuple(Rack(name=f"r{k}") for k in range(RACKS)),
            node_groups=tuple(
                NodeGroup(
                    name=f"g{k}",
                    count=NODES,
                    gpus_per_node=GPUS_PER_NODE,
                    gpu_type="G",
                    rack=f"r{k}",
                )
                for k in range(RACKS)
            ),
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


def lines(seeds: int, jobs: int) -> Iterator[dict[str, object]]:
    """Yield what each mode does on each seed's instance."""
    for seed in range(seeds):
        instance = made(seed, jobs)
        for spec in MODES:
            schedule = run(instance, policy(spec), seed=seed)
            figures = summarise(instance, schedule)
            yield {
                "instance": instance.name,
                "policy": spec,
                "seed": seed,
                "jobs": jobs,
                "mean_jct_s": figures["mean_jct_s"],
                "preemptions": figures["preemptions"],
                "median_solve_s": median(r.solve_s for r in schedule.rounds),
                "violations": len(check(instance, schedule)),
            }


@click.command(help="Compare two-step and joint choice of racks, one JSON line a run.")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=60, show_default=True)
def main(seeds: int, jobs: int) -> None:
    """Run the command line."""
    for line in lines(seeds, jobs):
        click.echo(json.dumps(line))


if __name__ == "__main__":
    main()
