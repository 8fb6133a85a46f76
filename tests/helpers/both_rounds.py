"""One cluster and its jobs of one node each, told as a round of jobs and as one of tasks."""

import numpy as np

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Job, JobState, Need
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.tasks.arrays import TaskRound

SPEED = {"fast": 1.25, "slow": 1.0}
NODES = {"large": ("fast", 8, 64, 256), "small": ("fast", 8, 32, 512), "old": ("slow", 4, 48, 128)}
"""GPU type, GPUs, CPUs and GiB of the nodes of each kind."""

JOBS = ((1, 4, 16), (1, 12, 8), (2, 8, 96), (3, 16, 32), (4, 10, 64))
"""GPUs, CPUs and GiB of the jobs of each shape: sizes that do not divide those of nodes."""


def both_rounds(nodes, seed):
    """Return a round of jobs and a round of tasks that say the same; three jobs a node."""
    rng = np.random.default_rng([seed, nodes])
    names, shape = tuple(NODES), rng.integers(0, len(JOBS), 3 * nodes)
    count = 1 + rng.multinomial(nodes - len(names), [1 / 3] * 3)
    size = np.array(JOBS)[shape]
    value = np.round(size @ [1.0, 0.05, 0.01] * rng.lognormal(0.0, 0.4, len(shape)), 3)
    tasks = TaskRound(
        resources=("gpu", "cpu", "memory_gib"),
        kinds=names,
        capacity=np.array([NODES[name][1:] for name in names]),
        count=count,
        pool=np.array([list(SPEED).index(NODES[name][0]) for name in names]),
        pools=tuple(SPEED),
        use=np.array(JOBS),
        slices=np.ones(len(JOBS), dtype=np.int64),
        speed=np.tile(list(SPEED.values()), (len(JOBS), 1)),
        shape=shape,
        value=value,
        group=np.full(len(shape), -1),
        held_task=np.zeros(0, dtype=np.int64),
        held_node=np.zeros(0, dtype=np.int64),
        move_cost=np.zeros(len(shape)),
    )
    cluster = Cluster(
        gpu_types=tuple(GpuType(name=name, memory_gib=80.0) for name in SPEED),
        node_groups=tuple(
            NodeGroup(
                name=name,
                count=int(n),
                gpus_per_node=NODES[name][1],
                gpu_type=NODES[name][0],
                has={"cpu": float(NODES[name][2]), "memory_gib": float(NODES[name][3])},
            )
            for name, n in zip(names, count, strict=True)
        ),
    )
    jobs = Round(
        name=tasks.name,
        cluster=cluster,
        profiles={"rigid": Profile(name="rigid", throughput={t: Rigid() for t in SPEED})},
        waiting=tuple(
            JobState(
                since_s=0.0,
                job=Job(
                    id=f"{k}",
                    submit_s=0.0,
                    profile="rigid",
                    gpus=gpus,
                    needs={"cpu": Need(per_node=cpu), "memory_gib": Need(per_node=gib)},
                ),
            )
            for k, (gpus, cpu, gib) in enumerate(size.tolist())
        ),
    )
    return jobs, tasks
