"""What nodes draw without jobs, awake, asleep and waking, and what rack caps leave for jobs.

Equal nodes make a `NodeClass`. `RackPower` says, while jobs are placed, which nodes may still take
how many watts; sets of nodes are there the bits of one integer, by their index in the cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ronda.formulations.bit_sets import bits, bits_of, lowest_bits
from ronda.formulations.models.power import extra_gpu_w
from ronda.formulations.per_record import per_record
from ronda.formulations.topology import racks_above
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.job import Allocation
from ronda.instances.round import Round


def node_w(topology: Topology, asleep: Iterable[int] = (), woken: Iterable[int] = ()) -> Floats:
    """Return (N,) the watts of each node without jobs: awake with all GPUs idle, if in no list.

    `asleep` nodes sleep; `woken` ones draw what waking takes besides.
    """
    watts, asleep, woken = topology.awake_w, list(asleep), list(woken)
    watts[woken] += topology.waking_w[woken]
    watts[asleep] = topology.sleep_w[asleep]
    return watts


def idle_w(round: Round, asleep: tuple[int, ...] | None) -> float:
    """Return the watts of the cluster without any progressing job, waking nodes included.

    `asleep` are the nodes that sleep under the plan; None: those that sleep now.
    """
    sleeping = round.asleep if asleep is None else asleep
    woken = sorted(set(round.asleep).difference(sleeping))
    return float(node_w(round.cluster.topology, sleeping, woken).sum())


def least_node_w(topology: Topology) -> Floats:
    """Return (N,) the watts of each node without jobs, awake or asleep, whichever is less."""
    return np.minimum(topology.awake_w, topology.sleep_w)


def least_held_w(topology: Topology) -> Floats:
    """Return (P,) the least watts that a held GPU of each pool adds to `least_node_w`.

    A node awake with u of its n GPUs held draws ``awake - least >= (awake - least) u / n`` more
    than its least, as u <= n.
    """
    held = np.full(len(topology.pools), np.inf)
    up = topology.node_gpus > 0
    each = (topology.awake_w - least_node_w(topology))[up] / topology.node_gpus[up]
    np.minimum.at(held, topology.node_pool[up], each)
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
    Nodes out of service are of no class.
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
    up = topology.node_gpus > 0
    alike = Counter(zip(*(column[up].tolist() for column in columns), strict=True))
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


def most_awake(classes: Sequence[NodeClass], nodes: Sequence[int]) -> list[int]:
    """Return how many nodes of each class may be awake if a number of each pool (P,) may.

    Nodes that save least asleep, per GPU, come first.
    """
    counts, left = [0] * len(classes), list(nodes)
    for c in _by_saving(classes):
        counts[c] = min(classes[c].count, left[classes[c].pool])
        left[classes[c].pool] -= counts[c]
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


def nodes_for(classes: Sequence[NodeClass], gpus: Sequence[int]) -> list[int]:
    """Return (P,) how many nodes of each pool a number of GPUs in each pool (P,) keeps awake."""
    return by_pool(classes, awake_for(classes, gpus), len(gpus))


def may_sleep(round: Round) -> bool:
    """Tell whether sleeping nodes can help in this round.

    They can if power is limited (cap, energy or rack) and some node draws less asleep than idle.
    """
    limited = round.watts is not None or bool(rack_caps(round.cluster))
    return limited and any(kind.saves_w > 0 for kind in node_classes(round.cluster))


def base_w(round: Round) -> float:
    """Return the watts of the cluster without jobs, with nodes asleep where that can help."""
    topology = round.cluster.topology
    return float((least_node_w(topology) if may_sleep(round) else topology.awake_w).sum())


TOLERANCE = 1e-9
"""Relative rounding allowed against a cap."""


class RackPower:
    """Watts left below the cap of every capped rack.

    A node that no job uses counts as awake and idle, or, if `drowsy` (asleep until a job uses it),
    as sleeping. A job that arrives adds its power beyond its GPUs' idle power, and wakes the node.
    """

    __slots__ = ("_by_wake", "_caps_of", "_drowsy", "_left", "_members", "_wake_w")

    def __init__(self, cluster: Cluster, drowsy: Iterable[int]) -> None:
        topology = cluster.topology
        caps = {r.name: r.power_cap_w for r in cluster.racks if r.power_cap_w is not None}
        lineages = [
            tuple(above for above in racks_above(cluster)[name] if above in caps)
            for name in topology.racks
        ]
        self._caps_of = [lineages[rack] for rack in topology.node_rack.tolist()]
        self._wake_w: list[float] = (topology.awake_w - topology.sleep_w).tolist()
        still = sorted(set(drowsy))
        self._drowsy = bits_of(still)
        left = {name: watts * (1 + TOLERANCE) for name, watts in caps.items()}
        members: defaultdict[str, int] = defaultdict(int)
        by_wake: dict[str, defaultdict[float, int]] = {n: defaultdict(int) for n in caps}
        for node, watts in enumerate(node_w(topology, still).tolist()):
            for name in self._caps_of[node]:
                left[name] -= watts
                members[name] |= 1 << node
                by_wake[name][self._wake_w[node]] |= 1 << node
        self._left = left
        # Small subtrees first: a rack before the row that holds it.
        self._members = dict(sorted(members.items(), key=lambda item: item[1].bit_count()))
        self._by_wake = {name: sorted(masks.items()) for name, masks in by_wake.items()}

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        for name in ("_by_wake", "_caps_of", "_drowsy", "_members", "_wake_w"):
            setattr(twin, name, getattr(self, name))
        twin._left = dict(self._left)
        return twin

    def add(self, node: int, watts: float) -> None:
        """Account for `watts` more (or, negative, less) on `node`, which is awake from now on."""
        if self._drowsy >> node & 1:
            self._drowsy ^= 1 << node
            watts += self._wake_w[node]
        for name in self._caps_of[node]:
            self._left[name] -= watts

    def allowed(self, among: int, watts: float, count: int = 1) -> int:
        """Return the nodes of the set `among` that may take `watts` more.

        With `count` above 1 every node that is returned may take as much at the same time; where
        a cap does not allow all of them, awake nodes and low indices come first.
        """
        for name, members in self._members.items():
            left, inside = self._left[name], members & among
            if not inside:
                continue
            refused = inside if left < watts else 0
            for wake_w, mask in self._by_wake[name]:
                if left < watts + wake_w:
                    refused |= mask & inside & self._drowsy
            among &= ~refused
            if count > 1 and inside != refused:
                among &= ~(inside & ~refused) | self._together(name, inside & ~refused, watts)
        return among

    def fits(self, pieces: Iterable[tuple[int, float]]) -> bool:
        """Tell whether all pairs (node, watts) may be added together."""
        trial = self.copy()
        for node, watts in pieces:
            if not trial.allowed(1 << node, watts):
                return False
            trial.add(node, watts)
        return True

    def _together(self, name: str, inside: int, watts: float) -> int:
        """Return those of the nodes `inside` a capped rack that may take `watts` each together."""
        left, drowsy = self._left[name], inside & self._drowsy
        chosen = inside & ~drowsy
        if watts > 0:
            chosen = lowest_bits(chosen, min(chosen.bit_count(), int(left // watts)))
        # Less than idle power on one node is no reserve for others: the job may not go there.
        left -= max(watts, 0.0) * chosen.bit_count()
        for node in bits(drowsy):
            need = watts + self._wake_w[node]
            if need <= left:
                chosen |= 1 << node
                left -= need
        return chosen


def capped(cluster: Cluster) -> bool:
    """Tell whether any rack has a power cap."""
    return any(rack.power_cap_w is not None for rack in cluster.racks)


def keeps_limits(round: Round, allocations: Mapping[str, Allocation]) -> bool:
    """Tell whether allocations keep to the limits on power of the cluster and of its racks."""
    limit = round.watts
    if limit is None and not capped(round.cluster):
        return True
    pieces = []
    for each in allocations.values():
        each_w = extra_gpu_w(round, each.option)
        pieces += [(node, gpus * each_w) for node, gpus in each.placement]
    if limit is not None:
        drawn_w = idle_w(round, None) + float(np.sum([watts for _, watts in pieces]))
        if drawn_w > limit * (1 + TOLERANCE):
            return False
    return RackPower(round.cluster, round.asleep).fits(pieces)
