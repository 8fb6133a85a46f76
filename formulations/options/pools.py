"""What an option needs to know of a pool: GPU counts worth offering, and the nodes they need."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ronda.formulations.remembered import remembered
from ronda.instances.cluster import Cluster, Pool


@dataclass(frozen=True)
class PoolShape:
    """A pool and the sizes of its nodes.

    Attributes
    ----------
    index
        Index of the pool in ``cluster.topology.pools``.
    pool
        The pool.
    node_gpus
        GPUs of each node, largest first.
    rack_gpus
        GPUs of the pool in that rack which has most of them.
    """

    index: int
    pool: Pool
    node_gpus: tuple[int, ...]
    rack_gpus: int

    def __hash__(self) -> int:
        """Return the hash, computed once: a pool may have thousands of nodes."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.index, self.pool, self.node_gpus, self.rack_gpus))

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        return np.cumsum(np.asarray(self.node_gpus, dtype=np.int64))

    def nodes(self, gpus: ArrayLike) -> NDArray[np.int64]:
        """Return the fewest nodes that hold so many GPUs (the largest nodes first)."""
        return np.asarray(np.searchsorted(self._reach, np.asarray(gpus)) + 1, dtype=np.int64)

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """GPU counts to offer: powers of two in the largest node, then node x powers of two.

        In equal nodes whose size is a power of two, jobs of these sizes always fit side by side
        when their GPUs do (placed in descending order): the buddy property.
        """
        whole = self.pool.gpus_per_node
        counts = [2**k for k in range(whole.bit_length()) if 2**k < whole]
        while whole <= self.pool.gpus:
            counts.append(whole)
            whole *= 2
        return tuple(counts)


def pool_shapes(cluster: Cluster) -> tuple[PoolShape, ...]:
    """Return the shapes of a cluster's pools, in their order (made once per cluster)."""
    return remembered(cluster, "pool_shapes", lambda: _pool_shapes(cluster))


def _pool_shapes(cluster: Cluster) -> tuple[PoolShape, ...]:
    topology, shapes = cluster.topology, []
    for i, pool in enumerate(topology.pools):
        own = topology.node_pool == i
        gpus = topology.node_gpus[own]
        in_rack = np.bincount(topology.node_rack[own], gpus).astype(int)
        node_gpus = tuple(sorted(gpus.tolist(), reverse=True))
        shapes.append(PoolShape(i, pool, node_gpus, int(in_rack.max())))
    return tuple(shapes)
