"""The nodes of one pool while jobs are placed: free GPUs, and what may still be moved away.

Nodes are numbered 0, 1, … within the pool; a set of nodes is the bits of one integer, so that
choosing among thousands of nodes is a few machine operations.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Self

import numpy as np

from ronda.formulations.bit_sets import bits, bits_of, lowest_bit, lowest_bits, positions_by
from ronda.formulations.per_record import per_record
from ronda.formulations.placement.soft_blocks import SoftBlocks
from ronda.instances.cluster import Cluster, Topology


class PoolNodes:
    """Free GPUs of the nodes of one pool, all empty and awake at first.

    Blocks that may still be moved are *soft*: they use GPUs, but a larger block may push them out.

    Parameters
    ----------
    topology, pool
        The cluster's nodes and the index of the pool.

    Attributes
    ----------
    nodes, size, group, rack
        Cluster index, GPUs, node group and rack (index in the topology) of each node.
    sized
        By number of GPUs: the set of nodes that have exactly so many.
    whole
        GPUs of the largest node: larger jobs take nodes of this size completely.
    free, firm
        Free GPUs of each node as things stand, and if all its soft blocks were gone.
    soft
        The soft blocks of all nodes.
    levels
        By number of free GPUs: the set of nodes that have exactly so many.
    busy, awake, usable
        Sets of nodes: with any job, not asleep (those that sleep are used last), open to jobs at
        all.
    racks
        The set of nodes of each rack of the pool, by the rack's index.
    """

    def __init__(self, topology: Topology, pool: int) -> None:
        members = np.flatnonzero(topology.node_pool == pool)
        self.nodes: list[int] = members.tolist()
        self.size: list[int] = topology.node_gpus[members].tolist()
        self.group: list[int] = topology.node_group[members].tolist()
        self._contiguous = self.nodes[-1] - self.nodes[0] + 1 == len(self.nodes)
        self.whole = topology.pools[pool].gpus_per_node
        smaller = [size for size in self.size if size < self.whole]
        self._together = list(accumulate(sorted(self.size, reverse=True)))
        self._largest = (len(self.size) - len(smaller), max(smaller, default=0))
        self.free, self.firm = list(self.size), list(self.size)
        self.soft = SoftBlocks(self.free)
        self.usable = self.awake = (1 << len(self.nodes)) - 1
        self.busy = 0
        self.sized = positions_by(self.size, sorted(set(self.size)))
        self.levels = [self.sized.get(free, 0) for free in range(self.whole + 1)]
        self.rack: list[int] = topology.node_rack[members].tolist()
        self.racks = positions_by(self.rack, sorted(set(self.rack)))
        self._supplied, self._supply = 0, list[tuple[int, int]]()  # of which set, by rack

    def in_cluster(self, among: int) -> int:
        """Return a set of the pool's nodes as a set of cluster indices."""
        if self._contiguous:
            return among << self.nodes[0]
        return bits_of(self.nodes[node] for node in bits(among))

    def in_pool(self, cluster: int) -> int:
        """Return a set of cluster indices, all in this pool, as a set of the pool's nodes."""
        if self._contiguous:
            return cluster >> self.nodes[0]
        return bits_of(node for node, index in enumerate(self.nodes) if cluster >> index & 1)

    def can_hold(self, count: int, rest: int) -> bool:
        """Tell whether the pool has `count` of the largest nodes, and another one for `rest`."""
        wholes, next_size = self._largest
        return wholes > count or (wholes == count and rest <= next_size)

    def fewest_nodes(self, gpus: int) -> int:
        """Return how few nodes of the empty pool hold so many GPUs."""
        return min(bisect_left(self._together, gpus) + 1, len(self.size))

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.free, twin.firm, twin.levels = list(self.free), list(self.firm), list(self.levels)
        twin.soft = self.soft.copy(twin.free)
        twin._supplied, twin._supply = 0, []
        return twin

    def _shift(self, node: int, change: int) -> None:
        before = self.free[node]
        after = before + change
        self.free[node] = after
        if node in self.soft.on:
            self.soft.touch(node)
        bit = 1 << node
        self.levels[before] ^= bit
        self.levels[after] |= bit
        if after == self.size[node]:
            self.busy &= ~bit
        else:
            self.busy |= bit

    def put(self, node: int, gpus: int) -> None:
        """Use GPUs of a node for good."""
        self._shift(node, -gpus)
        self.firm[node] -= gpus

    def fill_up(self, nodes: Iterable[int]) -> None:
        """Use all GPUs of some of the largest nodes, all of them empty, for good."""
        filled = 0
        for node in nodes:
            self.free[node] = self.firm[node] = 0
            filled |= 1 << node
        self.levels[self.whole] ^= filled
        self.levels[0] |= filled
        self.busy |= filled

    def put_soft(self, job: int, node: int, gpus: int) -> None:
        """Use GPUs of a node for a block of `job` that larger blocks may push out."""
        self._shift(node, -gpus)
        self.soft.add(job, node, gpus)

    def harden(self, job: int, node: int) -> None:
        """Let a soft block stay for good."""
        self.firm[node] -= self.soft.remove(job, node)

    def push_out(self, job: int, node: int) -> int:
        """Remove a soft block and return its GPUs."""
        gpus = self.soft.remove(job, node)
        self._shift(node, gpus)
        return gpus

    def best_fit(self, gpus: int, among: int) -> int | None:
        """Return the fullest node of the set `among` that has `gpus` GPUs free, or None."""
        levels = self.levels
        for level in range(gpus, self.whole + 1):
            mask = levels[level] & among
            if mask:
                return lowest_bit(mask)
        return None

    def fill(self, gpus: int, count: int) -> list[int]:
        """Use up to `count` times `gpus` GPUs of nodes and return where, in turn.

        Every time the best fit is used, of nodes in use, else of awake ones, else of all. A node
        that has been chosen stays the fullest one as long as it has room.
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
                    for node in self._put_all(filled, level, times * gpus):
                        chosen += [node] * times
                    able ^= filled
                if able and rest:
                    node = lowest_bit(able)
                    self.put(node, rest * gpus)
                    chosen += [node] * rest
                if len(chosen) == count:
                    return chosen
        return chosen

    def _put_all(self, among: int, level: int, gpus: int) -> list[int]:
        """Use GPUs for good of each of some nodes with `level` free GPUs, and return the nodes."""
        free, firm, nodes = self.free, self.firm, list(bits(among))
        for node in nodes:
            free[node] -= gpus
            firm[node] -= gpus
        self.levels[level] ^= among
        self.levels[level - gpus] |= among
        self.busy |= among
        for node in self.soft.on.keys() & nodes:
            self.soft.touch(node)
        return nodes

    def spread(self, among: int, count: int, *, one_rack: bool = False) -> int | None:
        """Return `count` nodes of the set `among` in as few racks as possible, or None.

        If one rack suffices, the one with the fewest nodes to spare gives them. Otherwise the
        fullest supplies are used up first, which needs the fewest racks, and the last rack is
        again the one with the fewest to spare.
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


def pool_nodes(cluster: Cluster, pool: int, asleep: Sequence[int]) -> PoolNodes:
    """Return the empty nodes of a pool, indexed once for each cluster: change a copy only.

    Parameters
    ----------
    cluster, pool
        The cluster and the index of the pool.
    asleep
        Nodes (cluster indices) that sleep now.
    """
    topology = cluster.topology
    indexed = _indexed(cluster, pool)
    if not asleep:
        return indexed
    nodes, position = indexed.copy(), node_positions(cluster)
    sleeping = np.array(asleep, dtype=np.int64)
    own = sleeping[topology.node_pool[sleeping] == pool].tolist()
    nodes.awake ^= bits_of(position[node] for node in own)
    return nodes


@per_record(maxsize=16)
def _indexed(cluster: Cluster, pool: int) -> PoolNodes:
    return PoolNodes(cluster.topology, pool)


@per_record(maxsize=8)
def node_positions(cluster: Cluster) -> list[int]:
    """Return the number of each of the cluster's nodes within its pool."""
    topology = cluster.topology
    position = np.empty(len(topology.node_pool), dtype=np.int64)
    for pool in range(len(topology.pools)):
        members = np.flatnonzero(topology.node_pool == pool)
        position[members] = np.arange(len(members))
    return position.tolist()
