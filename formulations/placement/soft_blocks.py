"""Blocks that may still be moved, and which nodes are alike in them.

What it costs to clear a node depends on its free GPUs and the sizes of its soft blocks alone: at
most 177 kinds of nodes of 8 GPUs, however many the nodes.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Self

from ronda.formulations.bit_sets import lowest_bit

Kind = tuple[int, tuple[int, ...]]
"""Free GPUs of a node and the sizes of its soft blocks, ascending."""


class SoftBlocks:
    """The soft blocks of the nodes of a pool: `on` has, by node with any, the GPUs by job.

    The list of free GPUs belongs to the caller, who says by `touch` where it changes.
    """

    __slots__ = ("_free", "_kind", "_nodes", "_stale", "on")

    def __init__(self, free: list[int]) -> None:
        self._free = free
        self.on: dict[int, dict[int, int]] = {}
        self._kind: dict[int, Kind] = {}
        self._nodes: dict[Kind, int] = {}
        self._stale: set[int] = set()

    def copy(self, free: list[int]) -> Self:
        """Return an independent copy over another list of free GPUs, equal to this one's."""
        twin = type(self)(free)
        twin.on = {node: dict(blocks) for node, blocks in self.on.items()}
        twin._kind, twin._nodes = dict(self._kind), dict(self._nodes)
        twin._stale = set(self._stale)
        return twin

    def touch(self, node: int) -> None:
        """Take note that the free GPUs of a node with soft blocks have changed."""
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
        """Return the kinds of nodes that there are, each with the set of its nodes."""
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
        """Return the node where the fewest blocks must go to make room, and their jobs; or None.

        Ties go to the fewest GPUs pushed out, then to the lowest node. No node of `among` has the
        GPUs free already.
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
    """Return how many blocks, and of how many GPUs, free `need` GPUs; None if all do not."""
    if sum(sizes) < need:
        return None
    picks = fewest(sizes, need)
    return len(picks), sum(sizes[pick] for pick in picks)


def fewest(sizes: tuple[int, ...], need: int) -> list[int]:
    """Return the positions of few blocks (ascending sizes) that hold at least `need` GPUs.

    The smallest block that alone suffices, otherwise the largest and so on with the rest: for
    powers of two this is the smallest number of blocks.
    """
    left = list(range(len(sizes)))
    chosen = []
    while need > 0:
        pick = next((block for block in left if sizes[block] >= need), left[-1])
        left.remove(pick)
        chosen.append(pick)
        need -= sizes[pick]
    return chosen
