"""What whole nodes add to counting GPUs: dual feasible functions of bin packing."""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


def node_shares(gpus: NDArray[np.int64], node_gpus: int, k: int) -> NDArray[np.float64]:
    """Return (n,) the share of a node that jobs of so many GPUs take, by the k-th dual function.

    With x = gpus / node_gpus::

        f_k(x) = x if (k + 1) x is an integer, else floor((k + 1) x) / k

    Jobs that fit together in one node have shares that sum to at most 1 (S. P. Fekete and
    J. Schepers, New classes of fast lower bounds for bin packing problems, Math. Programming 91
    (2001), section 3). So in N nodes the shares sum to at most N, which counting GPUs alone does
    not imply: f_1 gives every job of more than half a node a node of its own.

    Parameters
    ----------
    gpus
        (n,) GPUs of jobs that fit in one node, ``0 <= gpus <= node_gpus``.
    node_gpus
        GPUs of a node.
    k
        Which function, from 1.
    """
    scaled = (k + 1) * gpus
    return np.where(scaled % node_gpus == 0, gpus / node_gpus, (scaled // node_gpus) / k)


def tightening(sizes: Iterable[int], node_gpus: int) -> tuple[int, ...]:
    """Return the k whose `node_shares` say more about these sizes than counting GPUs does.

    None if the sizes are powers of two that divide the node: then counting GPUs is exact, as jobs
    placed in descending order always fit (buddy allocation). Of functions that agree on all
    sizes only the first is returned.
    """
    return _tightening(tuple(sorted(set(sizes))), node_gpus)


@lru_cache(maxsize=1024)
def _tightening(sizes: tuple[int, ...], node_gpus: int) -> tuple[int, ...]:
    if all(node_gpus % size == 0 and size & (size - 1) == 0 for size in sizes):
        return ()
    gpus = np.array(sizes, dtype=np.int64)
    found: dict[tuple[float, ...], int] = {}
    for k in range(1, node_gpus):
        shares = node_shares(gpus, node_gpus, k)
        if (shares > gpus / node_gpus).any():
            found.setdefault(tuple(shares.tolist()), k)
    return tuple(found.values())
