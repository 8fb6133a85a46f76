"""What an option needs to know of a pool: GPU counts worth offering, and the nodes they need."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ronda.formulations.per_record import per_record
from ronda.instances.cluster import Cluster, Pool


@dataclass(frozen=True)
class PoolShape:
    """A pool, its index in ``cluster.topology.pools``, and its GPUs in the rack with most."""

    index: int
    pool: Pool
    rack_gpus: int

    def __hash__(self) -> int:
        """Return the hash, computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.index, self.pool, self.rack_gpus))

    def nodes(self, gpus: int) -> int:
        """Return the fewest nodes that hold a number of GPUs, if all are like the largest one."""
        return -(-gpus // self.pool.gpus_per_node)

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


@per_record(maxsize=64)
def pool_shapes(cluster: Cluster) -> tuple[PoolShape, ...]:
    """Return the shapes of a cluster's pools, in their order."""
    topology, shapes = cluster.topology, []
    for index, pool in enumerate(topology.pools):
        own = topology.node_pool == index
        in_rack = np.bincount(topology.node_rack[own], topology.node_gpus[own]).astype(int)
        shapes.append(PoolShape(index, pool, int(in_rack.max())))
    return tuple(shapes)
