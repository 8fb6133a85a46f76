"""The nodes of one pool while jobs are placed: free GPUs, and what may still be moved away.

Nodes are numbered 0, 1, … within the pool; a set of nodes is the bits of one integer, so that
choosing among thousands of nodes is a few machine operations.
"""

from collections.abc import Iterable
from typing import Self

import numpy as np

from ronda.formulations.bit_sets import bits, bits_of, lowest_bits, positions_by
from ronda.instances.cluster import Topology


class PoolNodes:
    """Free GPUs of the nodes of one pool.

    Blocks that may still be moved are *soft*: they use GPUs, but a larger block may push them out.

    Parameters
    ----------
    topology, pool
        The cluster's nodes and the index of the pool.
    asleep
        Nodes (cluster indices) that sleep now: they are used last.

    Attributes
    ----------
    nodes, size, group
        Cluster index, GPUs and node group of each node.
    whole
        GPUs of the largest node: larger jobs take nodes of this size completely.
    free, firm
        Free GPUs of each node as things stand, and if all its soft blocks were gone.
    soft
        Of each node its soft blocks: GPUs by job.
    levels
        By number of free GPUs: the set of nodes that have exactly so many.
    busy, awake, usable
        Sets of nodes: with any job, not asleep, open to jobs at all.
    racks
        The set of nodes of each rack of the pool, by the rack's index.
    """

    __slots__ = (
        "_contiguous",
        "_largest",
        "awake",
        "busy",
        "firm",
        "free",
        "group",
        "levels",
        "nodes",
        "racks",
        "size",
        "soft",
        "usable",
        "whole",
    )

    def __init__(self, topology: Topology, pool: int, asleep: Iterable[int]) -> None:
        members = np.flatnonzero(topology.node_pool == pool)
        self.nodes: list[int] = members.tolist()
        self.size: list[int] = topology.node_gpus[members].tolist()
        self.group: list[int] = topology.node_group[members].tolist()
        self._contiguous = self.nodes[-1] - self.nodes[0] + 1 == len(self.nodes)
        self.whole = topology.pools[pool].gpus_per_node
        smaller = [size for size in self.size if size < self.whole]
        self._largest = (len(self.size) - len(smaller), max(smaller, default=0))
        self.free, self.firm = list(self.size), list(self.size)
        self.soft: list[dict[int, int]] = [{} for _ in self.nodes]
        self.usable = (1 << len(self.nodes)) - 1
        self.busy = 0
        sleeping = set(asleep)
        drowsy = [i for i, node in enumerate(self.nodes) if node in sleeping] if sleeping else []
        self.awake = self.usable ^ bits_of(drowsy)
        self.levels = list(positions_by(self.size, range(self.whole + 1)).values())
        racks: list[int] = topology.node_rack[members].tolist()
        self.racks = positions_by(racks, sorted(set(racks)))

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
        count = 0
        for size in sorted(self.size, reverse=True):
            if gpus <= 0:
                break
            gpus -= size
            count += 1
        return count

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.free, twin.firm, twin.levels = list(self.free), list(self.firm), list(self.levels)
        twin.soft = [dict(blocks) for blocks in self.soft]
        return twin

    def _shift(self, node: int, change: int) -> None:
        before = self.free[node]
        after = before + change
        self.free[node] = after
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

    def put_soft(self, job: int, node: int, gpus: int) -> None:
        """Use GPUs of a node for a block of `job` that larger blocks may push out."""
        self._shift(node, -gpus)
        self.soft[node][job] = gpus

    def harden(self, job: int, node: int) -> None:
        """Let a soft block stay for good."""
        self.firm[node] -= self.soft[node].pop(job)

    def push_out(self, job: int, node: int) -> int:
        """Remove a soft block and return its GPUs."""
        gpus = self.soft[node].pop(job)
        self._shift(node, gpus)
        return gpus

    def best_fit(self, gpus: int, among: int) -> int | None:
        """Return the fullest node of the set `among` that has `gpus` GPUs free, or None."""
        levels = self.levels
        for level in range(gpus, self.whole + 1):
            mask = levels[level] & among
            if mask:
                return (mask & -mask).bit_length() - 1
        return None

    def cheapest_push(self, gpus: int, among: int) -> tuple[int, list[int]] | None:
        """Return the node where the fewest soft blocks must go to make room, and their jobs.

        Ties go to the fewest GPUs pushed out, then to the lowest node. None if no node of `among`
        can make room for `gpus` GPUs.
        """
        best: tuple[int, int, int, list[int]] | None = None
        firm, free, soft = self.firm, self.free, self.soft
        for node in bits(among):
            if firm[node] < gpus:
                continue
            need = gpus - free[node]
            if best is not None and best[0] == 1 and need >= best[1]:
                continue  # one block, and no smaller one would do: cannot be beaten here
            jobs = _fewest(soft[node], need)
            cost = (len(jobs), sum(soft[node][job] for job in jobs), node, jobs)
            if best is None or cost[:2] < best[:2]:
                best = cost
        return None if best is None else (best[2], best[3])

    def spread(self, among: int, count: int, *, one_rack: bool = False) -> int | None:
        """Return `count` nodes of the set `among` in as few racks as possible, or None.

        If one rack suffices, the one with the fewest nodes to spare gives them. Otherwise the
        fullest supplies are used up first, which needs the fewest racks, and the last rack is
        again the one with the fewest to spare.
        """
        if among.bit_count() < count:
            return None
        supply = sorted((m.bit_count(), m) for rack in self.racks.values() if (m := rack & among))
        chosen = 0
        while count > 0:
            enough = next((mask for number, mask in supply if number >= count), None)
            if enough is not None:
                return chosen | lowest_bits(enough, count)
            if one_rack:
                return None
            number, mask = supply.pop()
            chosen |= mask
            count -= number
        return chosen


def _fewest(blocks: dict[int, int], need: int) -> list[int]:
    """Return few jobs whose blocks together hold at least `need` GPUs.

    The smallest block that alone suffices, otherwise the largest and so on with the rest: for
    powers of two this is the smallest number of blocks.
    """
    ordered = sorted((gpus, job) for job, gpus in blocks.items())
    chosen = []
    while need > 0:
        pick = next((pair for pair in ordered if pair[0] >= need), ordered[-1])
        ordered.remove(pick)
        chosen.append(pick[1])
        need -= pick[0]
    return chosen
