"""The free GPUs of the nodes of one pool, its movable blocks, and the requests of jobs.

Nodes are numbered 0, 1, … within the pool. A set of nodes is one integer, whose bits are node
numbers; such sets are quick to intersect, to join and to search (`bits` and the functions after
it). The cost to clear a node depends only on its free GPUs and the sizes of its soft blocks, so
nodes of 8 GPUs have at most 177 kinds, whatever their number.

Rigid jobs take free GPUs in one of two orders, each from a published simulator. `consolidate` is
the placer of the Helios artifact (SC'21, section 2.2), for FIFO, SJF and SRTF; `most_free` is that
of the Pollux artifact (OSDI 2021), for Tiresias and Optimus.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.watts import capped
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.models.cache import per_record

_STRIDE = 1024
"""The number of bits in a part of a set that is searched at once, to keep large sets fast."""

_PART = (1 << _STRIDE) - 1


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers in a set, ascending."""
    start = -1
    while mask:
        empty = lowest_bit(mask)
        mask >>= empty
        start += empty
        part = mask & _PART
        while part:
            lowest = part & -part
            yield start + lowest.bit_length()
            part ^= lowest
        mask >>= _STRIDE
        start += _STRIDE


def lowest_bit(mask: int) -> int:
    """Return the lowest number of a set that is not empty."""
    return (mask & -mask).bit_length() - 1


def bits_of(numbers: Iterable[int]) -> int:
    """Return the set of the given numbers."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def lowest_bits(mask: int, count: int) -> int:
    """Return the `count` lowest numbers of a set that has at least as many."""
    if mask.bit_count() == count:
        return mask
    if count == 1:
        return mask & -mask
    return bits_of(islice(bits(mask), count))


def positions_by(values: Sequence[int], keys: Iterable[int]) -> dict[int, int]:
    """Return for each key the set of its positions in `values`."""
    masks = dict.fromkeys(keys, 0)
    for position, value in enumerate(values):
        masks[value] |= 1 << position
    return masks


Kind = tuple[int, tuple[int, ...]]
"""The number of free GPUs of a node, and the ascending sizes of its soft blocks."""


class SoftBlocks:
    """The soft blocks of the nodes of a pool, which larger blocks may push out.

    `on` maps each node with soft blocks to the GPUs of each job there. The list of free GPUs
    belongs to the caller, who calls `touch` for changed nodes.
    """

    __slots__ = ("_free", "_kind", "_nodes", "_stale", "on")

    def __init__(self, free: list[int]) -> None:
        self._free = free
        self.on: dict[int, dict[int, int]] = {}
        self._kind: dict[int, Kind] = {}
        self._nodes: dict[Kind, int] = {}
        self._stale: set[int] = set()

    def copy(self, free: list[int]) -> Self:
        """Return an independent copy that reads the list `free`, which has the same numbers."""
        twin = type(self)(free)
        twin.on = {node: dict(blocks) for node, blocks in self.on.items()}
        twin._kind, twin._nodes = dict(self._kind), dict(self._nodes)
        twin._stale = set(self._stale)
        return twin

    def touch(self, node: int) -> None:
        """Record that the free GPUs of a node with soft blocks have changed."""
        self._stale.add(node)

    def add(self, job: int, node: int, gpus: int) -> None:
        """Add a soft block of `job`."""
        self.on.setdefault(node, {})[job] = gpus
        self._stale.add(node)

    def remove(self, job: int, node: int) -> int:
        """Remove the soft block of a job and return its GPUs."""
        blocks = self.on[node]
        gpus = blocks.pop(job)
        if not blocks:
            del self.on[node]
        self._stale.add(node)
        return gpus

    def kinds(self) -> Iterable[tuple[Kind, int]]:
        """Return the kinds of nodes with soft blocks, each with the set of its nodes."""
        for node in self._stale:
            bit = 1 << node
            before = self._kind.pop(node, None)
            if before is not None:
                self._nodes[before] ^= bit
                if not self._nodes[before]:
                    del self._nodes[before]
            blocks = self.on.get(node)
            if blocks:
                kind = (self._free[node], tuple(sorted(blocks.values())))
                self._kind[node] = kind
                self._nodes[kind] = self._nodes.get(kind, 0) | bit
        self._stale.clear()
        return self._nodes.items()

    def cheapest(self, gpus: int, among: int) -> tuple[int, list[int]] | None:
        """Return the node where the fewest blocks must go to make room, and the jobs of the blocks.

        Return None if no node can make room. Ties go to the fewest GPUs pushed out, then to the
        lowest node. No node of `among` has enough free GPUs already.
        """
        least: tuple[int, int] | None = None
        cheapest = 0
        for (free, sizes), nodes in self.kinds():
            cost = _cost(sizes, gpus - free)
            if cost is None or (least is not None and cost > least) or not (able := nodes & among):
                continue
            cheapest = cheapest | able if cost == least else able
            least = cost
        if not cheapest:
            return None
        node = lowest_bit(cheapest)
        blocks = sorted((size, job) for job, size in self.on[node].items())
        picks = fewest(tuple(size for size, _ in blocks), gpus - self._free[node])
        return node, [blocks[pick][1] for pick in picks]


@lru_cache(maxsize=1 << 14)
def _cost(sizes: tuple[int, ...], need: int) -> tuple[int, int] | None:
    """Return how many blocks free `need` GPUs, and their GPUs; None if all are too few."""
    if sum(sizes) < need:
        return None
    picks = fewest(sizes, need)
    return len(picks), sum(sizes[pick] for pick in picks)


def fewest(sizes: tuple[int, ...], need: int) -> list[int]:
    """Return the positions of few blocks (ascending sizes) that hold at least `need` GPUs.

    Take the smallest block that is enough alone, otherwise the largest block, and repeat for the
    rest. For powers of two this gives the fewest blocks.
    """
    left = list(range(len(sizes)))
    chosen = []
    while need > 0:
        pick = next((block for block in left if sizes[block] >= need), left[-1])
        left.remove(pick)
        chosen.append(pick)
        need -= sizes[pick]
    return chosen


Placement = tuple[tuple[int, int], ...]
"""Pairs of a node's index in the cluster and the GPUs there."""

Piece = tuple[int, int]
"""A node, by its position in the pool, and the GPUs there."""


class FreeList:
    """The free GPUs of the nodes of one pool, all free at first.

    `size` are the GPUs of each node, and `nodes` their indices in the cluster (None: 0, 1, 2, …);
    `position` is the inverse of `nodes`. `whole` is the largest size, `total` is the number of free
    GPUs on all nodes, and `levels[f]` is the set of nodes with exactly f free GPUs.
    """

    def __init__(self, size: Sequence[int], nodes: Sequence[int] | None = None) -> None:
        self.size = list(size)
        self.nodes = list(range(len(size)) if nodes is None else nodes)
        self.position = dict(zip(self.nodes, range(len(size)), strict=True))
        self.whole = max(size)
        self.free, self.total = list(size), sum(size)
        sized = positions_by(size, range(self.whole + 1))
        self.levels = [sized[free] for free in range(self.whole + 1)]

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.free, twin.levels = list(self.free), list(self.levels)
        return twin

    def take(self, placement: Iterable[tuple[int, int]]) -> None:
        """Take the GPUs of a placement (negative: free them); ValueError if a node has too few."""
        for node, gpus in placement:
            self._shift(self.position[node], -gpus)

    def best_fit(self, gpus: int, among: int = -1) -> int | None:
        """Return the fullest node of `among` (all: -1) with `gpus` free or None; ties: lowest."""
        levels = self.levels
        for level in range(gpus, self.whole + 1):
            mask = levels[level] & among
            if mask:
                return lowest_bit(mask)
        return None

    def emptiest_first(self) -> Iterator[tuple[int, int]]:
        """Yield nodes and their numbers of free GPUs, the most first (ties: lowest node)."""
        for level in range(self.whole, 0, -1):
            for node in bits(self.levels[level]):
                yield node, level

    def _shift(self, node: int, change: int) -> None:
        """Add `change` to the free GPUs of a node."""
        before = self.free[node]
        after = before + change
        if not 0 <= after <= self.size[node]:
            raise ValueError(
                f"node {self.nodes[node]} has {before} of {self.size[node]} GPUs free: "
                f"cannot add {change}"
            )
        self.free[node] = after
        self.total += change
        bit = 1 << node
        self.levels[before] ^= bit
        self.levels[after] |= bit


def consolidate(nodes: FreeList, gpus: int) -> Placement | None:
    """Return the nodes of a job by best fit, or None if it must wait.

    A job of at most one node gets the fullest node that still has room (ties: lowest index). A
    larger job gets completely free nodes, lowest indices first, and its remainder goes to the next
    node in descending order of free GPUs.
    """
    if gpus > nodes.total:
        return None
    if gpus <= nodes.whole:
        fullest = nodes.best_fit(gpus)
        return None if fullest is None else ((nodes.nodes[fullest], gpus),)
    placement, left = [], gpus
    for node, free in nodes.emptiest_first():
        piece = min(left, nodes.whole)
        if free < piece:
            return None
        placement.append((nodes.nodes[node], piece))
        left -= piece
        if not left:
            return tuple(placement)
    return None


def most_free(nodes: FreeList, gpus: int) -> Placement | None:
    """Return the ascending nodes of a job, chosen emptiest first (ties: lowest index), or None."""
    if gpus > nodes.total:
        return None
    placement, left = [], gpus
    for node, free in nodes.emptiest_first():
        piece = min(left, free)
        placement.append((nodes.nodes[node], piece))
        left -= piece
        if not left:
            break
    return tuple(sorted(placement))


class PoolNodes(FreeList):
    """The nodes of a pool while all its jobs are placed, awake and empty at first.

    Blocks that may still move are *soft*: they use GPUs, but a larger block may push them out.
    `kind` and `rack` are the kind and the rack of each node, and `kinds` and `racks` the sets of
    nodes of each. Nodes of a kind have the same number of GPUs and the same power, and share a rack
    if the cluster caps racks. `sized` maps a number of GPUs to the set of nodes with it. `awake`
    nodes are used before sleeping ones; only `usable` nodes are open to jobs.
    """

    def __init__(self, cluster: Cluster, pool: int) -> None:
        topology = cluster.topology
        members = _members(topology, pool)
        super().__init__(topology.node_gpus[members].tolist(), members.tolist())
        self.kind = _kinds(cluster, members)
        self._contiguous = self.nodes[-1] - self.nodes[0] + 1 == len(self.nodes)
        self._largest_first = sorted(self.size, reverse=True)
        self._together = list(accumulate(self._largest_first))
        self.soft = SoftBlocks(self.free)
        self.usable = self.awake = (1 << len(self.nodes)) - 1
        self.sized = positions_by(self.size, sorted(set(self.size)))
        self.rack: list[int] = topology.node_rack[members].tolist()
        self.racks = positions_by(self.rack, sorted(set(self.rack)))
        self.kinds = positions_by(self.kind, sorted(set(self.kind)))
        self._supplied, self._supply = 0, list[tuple[int, int]]()  # of which set, by rack

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = super().copy()
        twin.soft = self.soft.copy(twin.free)
        twin._supplied, twin._supply = 0, []
        return twin

    @property
    def empty(self) -> int:
        """The set of nodes without any job."""
        found = 0
        for size, those in self.sized.items():
            found |= self.levels[size] & those
        return found

    @property
    def busy(self) -> int:
        """The set of nodes with any job."""
        return self.empty ^ (1 << len(self.nodes)) - 1

    def in_cluster(self, among: int) -> int:
        """Return the set `among` of the pool's nodes as a set of cluster indices."""
        if self._contiguous:
            return among << self.nodes[0]
        return bits_of(self.nodes[node] for node in bits(among))

    def in_pool(self, cluster: int) -> int:
        """Return a set of cluster indices, all in the pool, as a set of the pool's nodes."""
        if self._contiguous:
            return cluster >> self.nodes[0]
        return bits_of(node for node, index in enumerate(self.nodes) if cluster >> index & 1)

    def can_hold(self, count: int, rest: int) -> bool:
        """Return whether the pool has `count` of the largest nodes, and another one for `rest`."""
        sizes = self._largest_first[: count + (rest > 0)]
        if len(sizes) < count + (rest > 0) or sizes[count - 1] < self.whole:
            return False
        return sizes[-1] >= rest

    def fewest_nodes(self, gpus: int) -> int:
        """Return the fewest nodes of the empty pool that hold the given number of GPUs."""
        return min(bisect_left(self._together, gpus) + 1, len(self.size))

    def put(self, node: int, gpus: int) -> None:
        """Take GPUs of a node for good, or free them if `gpus` is negative."""
        self._shift(node, -gpus)
        if node in self.soft.on:
            self.soft.touch(node)

    def put_soft(self, job: int, node: int, gpus: int) -> None:
        """Take GPUs of a node for a block of `job` that larger blocks may push out."""
        self._shift(node, -gpus)
        self.soft.add(job, node, gpus)

    def push_out(self, job: int, node: int) -> int:
        """Push out a soft block and return its GPUs."""
        gpus = self.soft.remove(job, node)
        self._shift(node, gpus)
        return gpus

    def put_all(self, among: int, level: int, gpus: int) -> list[int]:
        """Take GPUs for good on each node of a set, all with `level` free, and return the nodes."""
        nodes = list(bits(among))
        for node in nodes:
            self.free[node] = level - gpus
        self.total -= gpus * len(nodes)
        self.levels[level] ^= among
        self.levels[level - gpus] |= among
        for node in self.soft.on.keys() & nodes if self.soft.on else ():
            self.soft.touch(node)
        return nodes

    def put_best_fit(self, gpus: int, count: int) -> list[int]:
        """Take `gpus` GPUs up to `count` times for good, and return the node of each in turn.

        Each time, take the best fit among nodes in use, else among awake nodes, else among all. A
        chosen node stays the fullest as long as it has room.
        """
        chosen: list[int] = []
        for group in (self.busy, self.awake, self.usable):
            for level in range(gpus, self.whole + 1):
                able = self.levels[level] & group & self.usable
                if not able:
                    continue
                times = level // gpus
                full, rest = divmod(count - len(chosen), times)
                if full:
                    filled = lowest_bits(able, min(full, able.bit_count()))
                    for node in self.put_all(filled, level, times * gpus):
                        chosen += [node] * times
                    able ^= filled
                if able and rest:
                    node = lowest_bit(able)
                    self.put(node, rest * gpus)
                    chosen += [node] * rest
                if len(chosen) == count:
                    return chosen
        return chosen

    def spread(self, among: int, count: int, *, one_rack: bool = False) -> int | None:
        """Return `count` nodes of the set `among` in as few racks as possible, or None.

        If one rack is enough, take the rack with the fewest nodes to spare. Otherwise use up the
        racks with the most nodes first, and again end with the rack that has the fewest to spare.
        """
        if among.bit_count() < count:
            return None
        if len(self.racks) == 1:
            return lowest_bits(among, count)
        if among != self._supplied:
            racks = (rack & among for rack in self.racks.values())
            self._supplied = among
            self._supply = sorted([(mask.bit_count(), mask) for mask in racks if mask])
        supply = self._supply
        enough = bisect_left(supply, (count,))
        if enough == len(supply) and one_rack:
            return None
        chosen = 0
        while enough == len(supply):
            number, mask = supply.pop()
            chosen |= mask
            count -= number
            enough = bisect_left(supply, (count,))
        number, mask = supply.pop(enough)
        taken = lowest_bits(mask, count)
        if taken != mask:
            insort(supply, (number - count, mask ^ taken))
        self._supplied = among ^ chosen ^ taken  # as it is next time, if the caller uses them
        return chosen | taken


class PoolRequest(NamedTuple):
    """A job that wants GPUs of the pool; its rank `order`, 0 for the most important, is its key.

    `extra_w` are the watts per GPU beyond idle power. `held` are the pieces on which the job runs
    now, if it prefers to stay there; if it is `pinned`, it must stay. `rack` is the rack that a job
    of span "rack" prefers (-1: any).
    """

    order: int
    gpus: int
    span: str = "cluster"
    extra_w: float = 0.0
    held: tuple[Piece, ...] = ()
    pinned: bool = False
    rack: int = -1

    def is_regular(self, whole: int) -> bool:
        """Return whether the job holds full nodes of `whole` GPUs and at most one smaller block."""
        if len(self.held) == 1:
            return self.held[0][1] == self.gpus <= whole
        count, rest = divmod(self.gpus, whole)
        pieces = [gpus for _, gpus in self.held]
        if len(pieces) != count + (rest > 0) or pieces.count(whole) != count:
            return False
        return not rest or rest in pieces


def pool_nodes(cluster: Cluster, pool: int, asleep: Sequence[int]) -> PoolNodes:
    """Return the empty nodes of a pool, remembered per cluster; callers may change only a copy."""
    topology = cluster.topology
    indexed = _indexed(cluster, pool)
    if not asleep:
        return indexed
    nodes = indexed.copy()
    sleeping = np.array(asleep, dtype=np.int64)
    own = sleeping[topology.node_pool[sleeping] == pool].tolist()
    # A node out of service is no node of the pool.
    nodes.awake ^= bits_of(nodes.position[node] for node in own if node in nodes.position)
    return nodes


@per_record(maxsize=16)
def _indexed(cluster: Cluster, pool: int) -> PoolNodes:
    return PoolNodes(cluster, pool)


@per_record(maxsize=8)
def free_lists(cluster: Cluster) -> list[FreeList]:
    """Return the free nodes of each pool, remembered per cluster; callers must copy to change."""
    topology = cluster.topology
    pools = [_members(topology, pool) for pool in range(len(topology.pools))]
    return [FreeList(topology.node_gpus[nodes].tolist(), nodes.tolist()) for nodes in pools]


def _members(topology: Topology, pool: int) -> NDArray[np.intp]:
    """Return the ascending nodes of a pool in service, or all its nodes if none is."""
    up = np.flatnonzero(topology.in_service(pool))
    return up if len(up) else np.flatnonzero(topology.node_pool == pool)


def _kinds(cluster: Cluster, nodes: NDArray[np.intp]) -> list[int]:
    """Return each node's kind, which is its GPUs and watts, and its rack where racks have caps."""
    topology = cluster.topology
    columns = [topology.node_gpus, topology.awake_w, topology.sleep_w, topology.waking_w]
    if capped(cluster):
        columns.append(topology.node_rack)
    table = np.stack([column[nodes] for column in columns], axis=1)
    return [int(kind) for kind in np.unique(table, axis=0, return_inverse=True)[1]]
