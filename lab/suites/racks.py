"""Instances where racks matter: a rack holds one job of two nodes, and crossing racks is slow."""

import numpy as np

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import Parametric, Profile

RACKS, APPLICATIONS, MEAN_GAP_S = 6, 4, 55.0


def racks(jobs: int, seed: int) -> Instance:
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
        name="racks",
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
