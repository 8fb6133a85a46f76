"""Nodes without jobs: what they draw awake, asleep and waking, and the classes of equal ones."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.per_record import per_record
from ronda.formulations.topology import racks_above
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.round import Round


def node_w(topology: Topology, asleep: Iterable[int] = (), woken: Iterable[int] = ()) -> Floats:
    """Return (N,) the watts of each node without jobs: awake with all GPUs idle, if in no list.

    `asleep` nodes sleep; `woken` ones draw what waking takes besides.
    """
    watts, asleep, woken = topology.awake_w, list(asleep), list(woken)
    watts[woken] += topology.waking_w[woken]
    watts[asleep] = topology.sleep_w[asleep]
    return watts


def least_node_w(topology: Topology) -> Floats:
    """Return (N,) the watts of each node without jobs, awake or asleep, whichever is less."""
    return np.minimum(topology.awake_w, topology.sleep_w)


def least_held_w(topology: Topology) -> Floats:
    """Return (P,) the least watts that a held GPU of each pool adds to `least_node_w`.

    A node awake with u of its n GPUs held draws ``awake - least >= (awake - least) u / n`` more
    than its least, as u <= n.
    """
    held = np.full(len(topology.pools), np.inf)
    each = (topology.awake_w - least_node_w(topology)) / topology.node_gpus
    np.minimum.at(held, topology.node_pool, each)
    return held


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that no constraint of the allocation model can tell apart.

    The ``name`` is that of the pool, with a number if the pool has several classes; ``rack`` is an
    index into ``topology.racks`` if a power cap limits the rack, else -1. ``awake_w`` and
    ``sleep_w`` are of one node, awake with all GPUs idle, or asleep.
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

    def idle_w(self, awake: float) -> float:
        """Return the watts of all nodes of the class without jobs, some of them awake."""
        return self.count * self.sleep_w + awake * self.saves_w


@dataclass(frozen=True, slots=True)
class RackCap:
    """A power cap on a rack and all ``racks`` below it (indices into ``topology.racks``)."""

    name: str
    cap_w: float
    racks: frozenset[int]


@per_record(maxsize=8)
def rack_caps(cluster: Cluster) -> tuple[RackCap, ...]:
    """Return the power caps of racks, each with the racks of its subtree that hold nodes."""
    if all(rack.power_cap_w is None for rack in cluster.racks):
        return ()
    above = [racks_above(cluster)[name] for name in cluster.topology.racks]
    caps = [
        RackCap(
            rack.name,
            rack.power_cap_w,
            frozenset(r for r, names in enumerate(above) if rack.name in names),
        )
        for rack in cluster.racks
        if rack.power_cap_w is not None
    ]
    return tuple(cap for cap in caps if cap.racks)


def node_classes(cluster: Cluster, asleep: Collection[int] = ()) -> tuple[NodeClass, ...]:
    """Return the classes of equal nodes, in the order in which they appear in the cluster.

    Two nodes are equal if pool, number of GPUs, powers awake and asleep, and (where a rack's
    power is capped) the rack are the same. Nodes `asleep` now draw awake what waking takes as well.
    """
    waking_w = cluster.topology.waking_w
    waking = [node for node in asleep if waking_w[node] > 0]
    return _node_classes(cluster, tuple(waking))


@per_record(maxsize=8)
def _node_classes(cluster: Cluster, waking: tuple[int, ...]) -> tuple[NodeClass, ...]:
    topology = cluster.topology
    capped = frozenset[int]().union(*(cap.racks for cap in rack_caps(cluster)))
    rack = np.where(np.isin(topology.node_rack, sorted(capped)), topology.node_rack, -1)
    columns = (
        topology.node_pool,
        rack,
        topology.node_gpus,
        node_w(topology, woken=waking),
        topology.sleep_w,
    )
    alike = Counter(zip(*(column.tolist() for column in columns), strict=True))
    several = Counter(pool for pool, *_ in alike)
    numbered: Counter[int] = Counter()
    classes = []
    for (pool, in_rack, gpus, awake_w, sleep_w), count in alike.items():
        numbered[pool] += 1
        name = topology.pools[pool].name
        if several[pool] > 1:
            name = f"{name}#{numbered[pool]}"
        classes.append(NodeClass(name, pool, in_rack, count, gpus, awake_w, sleep_w))
    return tuple(classes)


def awake_for(classes: Sequence[NodeClass], gpus: Sequence[int]) -> list[int]:
    """Return how many nodes of each class a number of GPUs in each pool (P,) keeps awake.

    Nodes that save least asleep, per GPU, come first.
    """
    counts, left = [0] * len(classes), list(gpus)
    for c in _by_saving(classes):
        kind = classes[c]
        counts[c] = min(kind.count, -(-left[kind.pool] // kind.gpus_per_node))
        left[kind.pool] = max(0, left[kind.pool] - counts[c] * kind.gpus_per_node)
    return counts


def least_awake(classes: Sequence[NodeClass], gpus: Sequence[int]) -> Floats:
    """Return (C,) nodes awake, in fractions, that hold GPUs of each pool (P,) at least power."""
    counts, left = np.zeros(len(classes)), list(gpus)
    for c in _by_saving(classes):
        kind = classes[c]
        used = min(left[kind.pool], kind.count * kind.gpus_per_node)
        left[kind.pool] -= used
        counts[c] = used / kind.gpus_per_node if kind.saves_w > 0 else kind.count
    return counts


def _by_saving(classes: Sequence[NodeClass]) -> list[int]:
    """Return the classes by what a GPU's share of a node saves asleep, the least first."""
    each = [max(0.0, kind.saves_w) / kind.gpus_per_node for kind in classes]
    return sorted(range(len(classes)), key=each.__getitem__)


def by_pool(classes: Sequence[NodeClass], counts: Sequence[int], pools: int) -> list[int]:
    """Return (P,) the nodes of each pool, from the nodes of each class."""
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
