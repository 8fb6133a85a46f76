"""What jobs ask of a pool: whole nodes and at most one smaller block each."""

from typing import NamedTuple

Piece = tuple[int, int]
"""Node (position in the pool) and GPUs there."""


class PoolRequest(NamedTuple):
    """A job that wants GPUs of the pool; its rank `order`, 0 for the most important, is its key.

    `extra_w` are watts per GPU beyond idle power, `held` is where it runs now if it would like to
    stay there (`pinned`: it must), `rack` where a job of span "rack" would like to be (-1: any).
    """

    order: int
    gpus: int
    span: str = "cluster"
    extra_w: float = 0.0
    held: tuple[Piece, ...] = ()
    pinned: bool = False
    rack: int = -1

    def is_regular(self, whole: int) -> bool:
        """Tell whether it holds full nodes of `whole` GPUs and at most one smaller block."""
        if len(self.held) == 1:
            return self.held[0][1] == self.gpus <= whole
        count, rest = divmod(self.gpus, whole)
        pieces = [gpus for _, gpus in self.held]
        if len(pieces) != count + (rest > 0) or pieces.count(whole) != count:
            return False
        return not rest or rest in pieces


class WaitingBlock(NamedTuple):
    """The part of a job that does not fill a node, until it has a place.

    `near` are the nodes in the racks of the job's other nodes, which are preferred; `allowed` those
    that its span allows.
    """

    request: PoolRequest
    gpus: int
    near: int
    allowed: int
