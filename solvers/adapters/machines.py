"""Machines as hosts describe them: nodes with slots, in which replicas of jobs fit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ronda.instances.cluster import Cluster, GpuType, NodeGroup


def in_order(nodes: Mapping[Any, Any]) -> list[Any]:
    """Return the nodes' keys, preemptible ones last."""
    return sorted(nodes, key=lambda key: (nodes[key].preemptible, key))


def slots_of(node: Any, need: Mapping[str, int]) -> int:
    """Return how many replicas a node holds, each of which needs `need`."""
    return min((node.resources.get(r, 0) // n for r, n in need.items() if n > 0), default=0)


def most_needed(jobs: Any) -> dict[str, int]:
    """Return the most of each resource that a replica of any job needs."""
    need: dict[str, int] = {}
    for job in jobs:
        for resource, amount in job.resources.items():
            need[resource] = max(amount, need.get(resource, 0))
    return need


def cluster_of(nodes: Sequence[tuple[str, int]]) -> Cluster:
    """Return a cluster of nodes, each a GPU type's name and its GPUs; no more is known of these."""
    groups: list[tuple[tuple[str, int], int]] = []
    for node in nodes:
        if groups and groups[-1][0] == node:
            groups[-1] = node, groups[-1][1] + 1
        else:
            groups.append((node, 1))
    return Cluster(
        gpu_types=tuple(
            GpuType(name=kind, memory_gib=1) for kind in dict.fromkeys(kind for kind, _ in nodes)
        ),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=count, gpus_per_node=n, gpu_type=kind)
            for k, ((kind, n), count) in enumerate(groups)
        ),
    )


def nearest_size(utility: Callable[[int], float], low: int, high: int, wanted: float) -> int:
    """Return the size within limits whose utility, which falls with it, is nearest to a value."""
    if utility(high) >= wanted:
        return high
    least = low
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if utility(middle) > wanted else (low, middle)
    return min(range(max(least, low - 1), low + 1), key=lambda n: abs(utility(n) - wanted))
