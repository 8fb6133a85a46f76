"""The machines as hosts describe them: nodes with slots for replicas of jobs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ronda.instances.cluster import Cluster, GpuType, NodeGroup

LEAST_UTILITY, MOST_UTILITY = 0.35, 0.65
"""The range of utility in which Pollux keeps the size of a cluster."""


def in_order(nodes: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of the nodes, preemptible nodes last."""
    return sorted(nodes, key=lambda key: (nodes[key].preemptible, key))


def slots_of(node: Any, need: Mapping[str, int], used: Mapping[str, int] | None = None) -> int:
    """Return how many replicas that each require `need` fit on a node in addition to `used`."""
    free = Counter(node.resources)
    free.subtract(used or {})
    return max(0, min((free[r] // n for r, n in need.items() if n > 0), default=0))


def most_needed(jobs: Any) -> dict[str, int]:
    """Return, for each resource, the largest amount that a replica of any job requires."""
    need = Counter[str]()
    for job in jobs:
        need |= Counter(job.resources)
    return need


def cluster_of(nodes: Sequence[tuple[str, int]]) -> Cluster:
    """Return a cluster of nodes, each given as the name of a GPU type and a number of GPUs."""
    kinds = dict.fromkeys(kind for kind, _ in nodes)
    groups = (
        NodeGroup(name=f"g{k}", count=len(list(equal)), gpus_per_node=gpus, gpu_type=kind)
        for k, ((kind, gpus), equal) in enumerate(groupby(nodes))
    )
    return Cluster(
        gpu_types=tuple(GpuType(name=kind, memory_gib=1) for kind in kinds),
        node_groups=tuple(groups),
    )


def best_nodes(
    jobs: Iterable[Any], given: Iterable[Sequence[Any]], sizes: Sequence[int], now: int
) -> int:
    """Return how many nodes there should be for a utility of about one half.

    The utility is the sum of speed-ups divided by the GPUs in use. For other numbers of nodes it is
    computed by giving GPUs one by one to the job that gains most. A utility from 0.35 to 0.65
    changes nothing. `given` are the nodes of the replicas of all live jobs, and `sizes` the numbers
    of replicas per node, for the `now` existing nodes and for more nodes.
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
    each = [gain for gain, n in sorted(gains, reverse=True) for _ in range(n)][: sum(sizes)]
    total, taken = np.append(0.0, np.cumsum(each)), len(each)
    room = np.cumsum(sizes)
    utilities = total[np.minimum(room, taken)] / np.maximum(room, 1)
    needed = int(np.searchsorted(room, taken)) + 1
    wanted = (LEAST_UTILITY + MOST_UTILITY) / 2
    best_count = 1 + int(np.argmin(np.abs(utilities - wanted)))
    return max(1, min(best_count, needed))
