"""The nodes of a round as the exact model sees them: groups of equal ones, and what jobs hold."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ronda.formulations.positions.choices import Ways
from ronda.formulations.watts import classes_of_nodes

Held = tuple[tuple[int, int], ...]
"""Pairs (variable of a job that may stay on a node, its GPUs there), the most GPUs first."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one pool, rack and size, of one node class of the case (index ``kind``)."""

    pool: int
    rack: int
    size: int
    kind: int
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The groups, and by node what is held there by jobs that may stay."""

    groups: tuple[Group, ...]
    held: dict[int, Held]


def nodes_of(found: Ways) -> Nodes:
    """Return the nodes of a round and what jobs hold that may stay."""
    case = found.case
    topology = case.round.cluster.topology
    alike: defaultdict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for n, (pool, rack, size, kind) in enumerate(
        zip(
            topology.node_pool.tolist(),
            topology.node_rack.tolist(),
            topology.node_gpus.tolist(),
            classes_of_nodes(case.round),
            strict=True,
        )
    ):
        if size:  # in service
            alike[pool, rack, size, kind].append(n)
    held: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for i in np.flatnonzero(found.stay).tolist():
        allocation = case.table.jobs[int(case.job[i])].allocation
        assert allocation is not None
        for node, gpus in allocation.placement:
            held[node].append((i, gpus))
    return Nodes(
        tuple(Group(*key, tuple(nodes)) for key, nodes in alike.items()),
        {n: tuple(sorted(jobs, key=lambda job: -job[1])) for n, jobs in held.items()},
    )
