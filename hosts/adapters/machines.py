"""Machines as hosts describe them: nodes with slots, in which replicas of jobs fit."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ronda.instances.cluster import Cluster, GpuType, NodeGroup

LEAST_UTILITY, MOST_UTILITY = 0.35, 0.65
"""Of a cluster of the right size, in Pollux."""


def in_order(nodes: Mapping[Any, Any]) -> list[Any]:
    """Return the nodes' keys, preemptible ones last."""
    return sorted(nodes, key=lambda key: (nodes[key].preemptible, key))


def slots_of(node: Any, need: Mapping[str, int], used: Mapping[str, int] | None = None) -> int:
    """Return how many replicas a node holds, each of which needs `need`, besides what is used."""
    free = Counter(node.resources)
    free.subtract(used or {})
    return max(0, min((free[r] // n for r, n in need.items() if n > 0), default=0))


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


def best_nodes(
    jobs: Iterable[Any], given: Iterable[Sequence[Any]], sizes: Sequence[int], now: int
) -> int:
    """Return how many nodes there should be: as many as use them to one half.

    A utility is the sum of speed-ups by the GPUs in use. One of nodes that there are not is that
    of GPUs that go, one after another, to the job that gains most by them: within 0.35 and 0.65
    all stays as it is.

    Parameters
    ----------
    jobs, given
        All live jobs, and the nodes of their replicas.
    sizes
        Replicas that nodes hold, those that there are (`now`) and more.
    """
    jobs, given = list(jobs), list(given)
    used = {node for nodes in given for node in nodes}
    pairs = [(job, len(set(nodes)), len(nodes)) for job, nodes in zip(jobs, given, strict=True)]
    speed = sum(float(job.speedup_fn(m, n)) for job, m, n in pairs if n)
    per_node = max(sizes)
    utility = speed / max(1, len(used) * per_node)
    if LEAST_UTILITY <= utility <= MOST_UTILITY or not per_node:
        return now
    gains = list[tuple[float, int]]()
    for job in jobs:
        most = min(job.max_replicas, sum(sizes))
        counts = np.unique(
            [*range(1, min(most, per_node) + 1), *range(per_node, most + 1, per_node)]
        )
        ups = np.append(0.0, job.speedup_fn(-(-counts // per_node), counts))
        more = np.diff(np.append(0, counts))
        best = 0.0
        for up, n in zip(ups[1:], more, strict=True):
            gains.append((max(0.0, float(up) - best) / n, int(n)))
            best = max(best, float(up))
    total, taken = np.zeros(1 + sum(sizes)), 0
    for gain, n in sorted(gains, reverse=True):
        for _ in range(n):
            if taken + 1 < len(total):
                taken += 1
                total[taken] = total[taken - 1] + gain
    total[taken:] = total[taken]
    room = np.cumsum(sizes)
    utilities = total[room] / np.maximum(room, 1)
    needed = int(np.searchsorted(room, taken)) + 1
    wanted = (LEAST_UTILITY + MOST_UTILITY) / 2
    best_count = 1 + int(np.argmin(np.abs(utilities - wanted)))
    return max(1, min(best_count, needed))
