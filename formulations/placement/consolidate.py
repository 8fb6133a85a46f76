"""The *consolidate* placer of the Helios artifact: best fit on free GPUs per node.

Source: facts on Helios (SC'21), section 2.2, read from the published simulator. FIFO, SJF and
SRTF on plain traces call it for every job, so its state is one bit mask of nodes per number of
free GPUs: the node with the lowest index is the lowest set bit, whatever the number of nodes.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Self

Placement = tuple[tuple[int, int], ...]


class Consolidate:
    """Free GPUs of the nodes of one pool, and the rule that picks nodes for a job.

    Parameters
    ----------
    free
        Free GPUs of each node.
    gpus_per_node
        GPUs of a whole node; a node counts as completely free only with this many.
    nodes
        Names of the nodes in the answers, ascending (their indices in the cluster);
        None: 0, 1, 2, …

    Notes
    -----
    `place` only looks; `take` and `release` change the state. All three cost about a microsecond
    per node of the placement.
    """

    __slots__ = ("_free", "_masks", "_nodes", "_position", "gpus_per_node", "total_free")

    def __init__(
        self, free: Sequence[int], gpus_per_node: int, nodes: Sequence[int] | None = None
    ) -> None:
        names = range(len(free)) if nodes is None else nodes
        if len(names) != len(free) or any(a >= b for a, b in pairwise(names)):
            raise ValueError("nodes must be ascending and as many as free")
        if any(not 0 <= f <= gpus_per_node for f in free):
            raise ValueError(f"free GPUs must lie between 0 and {gpus_per_node}")
        self.gpus_per_node = gpus_per_node
        self.total_free = sum(free)
        self._nodes = tuple(names)
        self._position = {node: position for position, node in enumerate(self._nodes)}
        self._free = list(free)
        self._masks = [0] * (gpus_per_node + 1)  # bit i of mask f: node i has f free GPUs
        for position, gpus in enumerate(free):
            self._masks[gpus] |= 1 << position

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.gpus_per_node, twin.total_free = self.gpus_per_node, self.total_free
        twin._nodes, twin._position = self._nodes, self._position
        twin._free, twin._masks = list(self._free), list(self._masks)
        return twin

    @property
    def free(self) -> dict[int, int]:
        """Free GPUs by node."""
        return dict(zip(self._nodes, self._free, strict=True))

    def place(self, gpus: int) -> Placement | None:
        """Return where a job of `gpus` GPUs goes, as pairs (node, GPUs), or None if it must wait.

        * Up to a node: the fullest node that still fits (ties: lowest index).
        * A multiple of a node: completely free nodes, lowest indices first.
        * Otherwise: as many completely free nodes as it fills, and the remainder on the next node
          in descending order of free GPUs (ties: lowest index), which is usually a free one too.
        """
        size, masks = self.gpus_per_node, self._masks
        if gpus < 1:
            raise ValueError(f"a job of {gpus} GPUs")
        if gpus > self.total_free:
            return None
        if gpus <= size:
            for level in range(gpus, size + 1):
                mask = masks[level]
                if mask:
                    return ((self._nodes[(mask & -mask).bit_length() - 1], gpus),)
            return None
        whole, rest = divmod(gpus, size)
        mask = masks[size]
        if mask.bit_count() < whole:
            return None
        found = []
        for _ in range(whole):
            lowest = mask & -mask
            found.append((self._nodes[lowest.bit_length() - 1], size))
            mask ^= lowest
        if not rest:
            return tuple(found)
        for level in range(size, rest - 1, -1):
            mask = mask if level == size else masks[level]
            if mask:
                found.append((self._nodes[(mask & -mask).bit_length() - 1], rest))
                return tuple(found)
        return None

    def take(self, placement: Iterable[tuple[int, int]]) -> None:
        """Mark the GPUs of a placement as used; ValueError if a node has not that many free."""
        for node, gpus in placement:
            self._move(node, -gpus)

    def release(self, placement: Iterable[tuple[int, int]]) -> None:
        """Mark the GPUs of a placement as free again; ValueError beyond a node's size."""
        for node, gpus in placement:
            self._move(node, gpus)

    def _move(self, node: int, change: int) -> None:
        """Add `change` to the free GPUs of `node`."""
        position = self._position[node]
        before = self._free[position]
        after = before + change
        if not 0 <= after <= self.gpus_per_node:
            raise ValueError(
                f"node {node} has {before} of {self.gpus_per_node} GPUs free: cannot add {change}"
            )
        self._free[position] = after
        self.total_free += change
        bit = 1 << position
        self._masks[before] ^= bit
        self._masks[after] |= bit
