"""The nodes of a round as the exact model sees them: groups of equal ones, and what jobs hold."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ronda.formulations.positions.choices import Ways
from ronda.formulations.watts import node_w
from ronda.instances.cluster import Topology
from ronda.instances.round import Round

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
    kinds = {
        (c.pool, c.rack, c.gpus_per_node, c.awake_w, c.sleep_w): k
        for k, c in enumerate(case.classes)
    }
    alike: defaultdict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    watts, capped = _awake_w(case.round, topology), {c.rack for c in case.classes}
    for n, (pool, rack, size, sleep_w) in enumerate(
        zip(
            topology.node_pool.tolist(),
            topology.node_rack.tolist(),
            topology.node_gpus.tolist(),
            topology.sleep_w.tolist(),
            strict=True,
        )
    ):
        if not size:
            continue  # out of service
        kind = kinds[pool, rack if rack in capped else -1, size, watts[n], sleep_w]
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


def _awake_w(round: Round, topology: Topology) -> list[float]:
    """Return the watts of each node as its class has them: those asleep with what waking takes."""
    awake: list[float] = node_w(topology, woken=round.asleep).tolist()
    return awake
