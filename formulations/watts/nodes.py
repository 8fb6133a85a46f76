"""Classes of equal nodes: how many of each are awake decides the power of an idle cluster."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.per_record import per_record
from ronda.instances.cluster import Cluster
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that no constraint of the allocation model can tell apart.

    Attributes
    ----------
    name
        Name in the model: that of the pool, with a number if the pool has several classes.
    pool
        Index of the pool.
    rack
        Index into ``topology.racks`` if a power cap limits the rack, else -1.
    count, gpus_per_node
        Number of nodes, and of GPUs in each.
    awake_w, sleep_w
        Watts of one node that is awake with all GPUs idle, and of one that sleeps.
    """

    name: str
    pool: int
    rack: int
    count: int
    gpus_per_node: int
    awake_w: float
    sleep_w: float

    @property
    def saves_w(self) -> float:
        """Watts that one node saves asleep."""
        return self.awake_w - self.sleep_w


@dataclass(frozen=True, slots=True)
class RackCap:
    """A power cap on a rack and all racks below it.

    Attributes
    ----------
    name, cap_w
        The rack and its limit in watts.
    racks
        Indices into ``topology.racks`` of the racks under the cap.
    """

    name: str
    cap_w: float
    racks: frozenset[int]


@per_record(maxsize=8)
def rack_caps(cluster: Cluster) -> tuple[RackCap, ...]:
    """Return the power caps of racks, each with the racks of its subtree that hold nodes."""
    parents = {rack.name: rack.parent for rack in cluster.racks}
    found = []
    for rack in cluster.racks:
        if rack.power_cap_w is None:
            continue
        below = frozenset(
            index
            for index, name in enumerate(cluster.topology.racks)
            if rack.name in _ancestry(name, parents)
        )
        if below:
            found.append(RackCap(rack.name, rack.power_cap_w, below))
    return tuple(found)


def _ancestry(name: str, parents: dict[str, str | None]) -> set[str]:
    """Return a rack's name and those of all above it."""
    seen: set[str] = set()
    above: str | None = name
    while above is not None and above not in seen:
        seen.add(above)
        above = parents.get(above)
    return seen


def node_classes(cluster: Cluster, asleep: Collection[int] = ()) -> tuple[NodeClass, ...]:
    """Return the classes of equal nodes, in the order in which they appear in the cluster.

    Two nodes are equal if pool, number of GPUs, powers awake and asleep, and (where a rack's
    power is capped) the rack are the same.

    Parameters
    ----------
    cluster
        The cluster.
    asleep
        Nodes that sleep now: if they are to be awake, they draw what waking takes as well.
    """
    waking_w = cluster.topology.waking_w
    waking = [node for node in asleep if waking_w[node] > 0]
    return _node_classes(cluster, tuple(waking))


@per_record(maxsize=8)
def _node_classes(cluster: Cluster, waking: tuple[int, ...]) -> tuple[NodeClass, ...]:
    topology = cluster.topology
    capped = frozenset[int]().union(*(cap.racks for cap in rack_caps(cluster)))
    awake_w = topology.awake_w
    awake_w[list(waking)] += topology.waking_w[list(waking)]
    rack = np.where(np.isin(topology.node_rack, sorted(capped)), topology.node_rack, -1)
    keys = zip(
        topology.node_pool.tolist(),
        rack.tolist(),
        topology.node_gpus.tolist(),
        awake_w.tolist(),
        topology.sleep_w.tolist(),
        strict=True,
    )
    count: dict[tuple[int, int, int, float, float], int] = {}
    for key in keys:
        count[key] = count.get(key, 0) + 1
    several = [key[0] for key in count]
    classes, numbered = [], dict.fromkeys(several, 0)
    for (pool, in_rack, gpus, awake, sleep), nodes in count.items():
        numbered[pool] += 1
        name = topology.pools[pool].name
        if several.count(pool) > 1:
            name = f"{name}#{numbered[pool]}"
        classes.append(NodeClass(name, pool, in_rack, nodes, gpus, awake, sleep))
    return tuple(classes)


def by_pool(classes: Sequence[NodeClass], counts: Sequence[int], pools: int) -> list[int]:
    """Return (P,) how many nodes of each pool there are if there are so many of each class."""
    found = [0] * pools
    for kind, count in zip(classes, counts, strict=True):
        found[kind.pool] += count
    return found


def may_sleep(round: Round) -> bool:
    """Tell whether sleeping nodes can help in this round.

    They can if power is limited (cap, energy or rack) and some node draws less asleep than idle.
    """
    limited = round.watts is not None or bool(rack_caps(round.cluster))
    return limited and any(kind.saves_w > 0 for kind in node_classes(round.cluster))
