"""The search of HyperSched's paper: ResNet-50 on CIFAR-10 by a deadline, on made learning curves.

The scaling over 1, 2, 4 and 8 GPUs is the published one. MADE: 75 s for an epoch on one GPU, a
restart of 10 s, and accuracy as a_inf - A (1 + k)^-c after k epochs, with constants that fall off
with the distance of a configuration from a best one. They were chosen so that ASHA comes near to
its published accuracies and trials; HyperSched's are not fitted.
"""

from itertools import product

import numpy as np

from ronda.instances.cluster import Cluster, NodeGroup
from ronda.instances.generate.sweeps import BUSY, GPU
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.learning import Sweep
from ronda.instances.profile import Profile, Tabular

SCALING = {1: 1.0, 2: 1.87, 4: 3.42, 8: 5.60}
EPOCH_S, SAMPLES, BATCH, REPORTS = 75.0, 50_000.0, 128.0, 100
RESTART_S = 10.0


def search(deadline_s: float, seed: int) -> Instance:
    """Return 144 configurations (rates, decays, momenta) in random order, by a deadline."""
    rng = np.random.default_rng(seed)
    grid = list(product(range(9), range(4), range(4)))
    jobs = []
    for k, place in enumerate(rng.permutation(len(grid)).tolist()):
        rate, decay, momentum = grid[place]
        off = abs(rate - 5) / 4 + 0.15 * abs(decay - 1) / 2 + 0.1 * abs(momentum - 2) / 2
        last = 0.955 - 0.22 * off**1.5 + rng.normal(0, 0.004)
        speed = max(0.25, 0.9 - 0.35 * off + rng.normal(0, 0.03))
        epochs = np.arange(REPORTS + 1)
        accuracy = last - (last - 0.1) * (1.0 + epochs) ** -speed
        accuracy[1:] += rng.normal(0, 0.004, REPORTS)
        losses = tuple(float(x) for x in (1 - accuracy).round(5))
        jobs.append(
            Job(
                id=f"t{k:03d}",
                submit_s=0.0,
                profile="resnet50",
                min_gpus=1,
                max_gpus=8,
                epoch=SAMPLES,
                sweep="cifar10",
                estimate=Estimate(work=REPORTS * SAMPLES),
                truth=Truth(work=REPORTS * SAMPLES, learning=losses),
            )
        )
    node = NodeGroup(name="node", count=1, gpus_per_node=8, gpu_type=GPU.name)
    return Instance(
        name="hypersched",
        cluster=Cluster(gpu_types=(GPU,), node_groups=(node,)),
        profiles={"resnet50": resnet50()},
        jobs=tuple(jobs),
        sweeps={"cifar10": Sweep(reports=REPORTS, deadline_s=deadline_s)},
        costs=Costs(restart_s=RESTART_S),
        cadence=Cadence(on_report=True),
    )


def resnet50() -> Profile:
    """Return the profile: the published scaling, one epoch on a GPU as made."""
    step_s = EPOCH_S * BATCH / SAMPLES
    table = Tabular(
        gpus=tuple(SCALING),
        nodes=(1,) * len(SCALING),
        local_batch=tuple(BATCH / n for n in SCALING),
        step_s=tuple(step_s / speed for speed in SCALING.values()),
        sync_s=(0.0,) * len(SCALING),
    )
    power = {GPU.name: BUSY}
    return Profile(name="resnet50", throughput={GPU.name: table}, power=power, base_batch=BATCH)
