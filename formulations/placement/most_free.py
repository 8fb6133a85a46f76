"""The placer of Pollux's artifact: GPUs from the nodes with most of them free."""

from collections.abc import Iterable
from typing import Self

Placement = tuple[tuple[int, int], ...]


class MostFree:
    """Free GPUs of the nodes of one pool; jobs take from the emptiest nodes first.

    As Tiresias and Optimus are placed in the artifact of Pollux (OSDI 2021): every job fits whose
    GPUs are free somewhere, on however many nodes.

    Parameters
    ----------
    free
        Free GPUs by node.

    Notes
    -----
    As in `ronda.formulations.placement.consolidate`, the nodes with f free GPUs are the bits of one
    integer.
    """

    __slots__ = ("_free", "_levels", "total_free")

    def __init__(self, free: dict[int, int]) -> None:
        self._free = dict(free)
        self._levels = [0] * (max(free.values(), default=0) + 1)
        for node, gpus in free.items():
            self._levels[gpus] |= 1 << node
        self.total_free = sum(free.values())

    @property
    def free(self) -> dict[int, int]:
        """Free GPUs by node."""
        return dict(self._free)

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin._free, twin._levels = dict(self._free), list(self._levels)
        twin.total_free = self.total_free
        return twin

    def place(self, gpus: int) -> Placement | None:
        """Return pairs (node, GPUs), ascending, or None if so many GPUs are not free.

        Nodes with the most free GPUs come first (ties: the lowest index), each used up before the
        next.
        """
        if gpus > self.total_free:
            return None
        pieces = []
        for level in range(len(self._levels) - 1, 0, -1):
            mask = self._levels[level]
            while mask and gpus:
                lowest = mask & -mask
                mask ^= lowest
                piece = min(level, gpus)
                pieces.append((lowest.bit_length() - 1, piece))
                gpus -= piece
        return tuple(sorted(pieces))

    def take(self, placement: Iterable[tuple[int, int]]) -> None:
        """Mark the GPUs of a placement as used; ValueError if a node has not that many free."""
        for node, gpus in placement:
            before = self._free[node]
            if gpus > before:
                raise ValueError(f"node {node} has {before} GPUs free, not {gpus}")
            self._free[node] = before - gpus
            self._levels[before] ^= 1 << node
            self._levels[before - gpus] |= 1 << node
            self.total_free -= gpus
