"""Machines as hosts describe them: nodes with slots, in which replicas of jobs fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from ronda.instances.cluster import Cluster, GpuType, NodeGroup

GPU = GpuType(name="gpu", memory_gib=1)
"""Stands for GPUs of which a host says nothing."""


def slots_of(node: Any, need: Mapping[str, int]) -> int:
    """Return how many replicas that need so much a node holds."""
    return min((node.resources.get(r, 0) // n for r, n in need.items() if n > 0), default=0)


def most_needed(jobs: Any) -> dict[str, int]:
    """Return the most of each resource that a replica of any job needs."""
    need: dict[str, int] = {}
    for job in jobs:
        for resource, amount in job.resources.items():
            need[resource] = max(amount, need.get(resource, 0))
    return need


def cluster_of(sizes: Sequence[int]) -> Cluster:
    """Return nodes with so many slots each."""
    groups: list[list[int]] = []
    for n in sizes:
        if groups and groups[-1][0] == n:
            groups[-1][1] += 1
        else:
            groups.append([n, 1])
    return Cluster(
        gpu_types=(GPU,),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=count, gpus_per_node=n, gpu_type=GPU.name)
            for k, (n, count) in enumerate(groups)
        ),
    )
