"""Dual feasible functions of bin packing, which bound packings more tightly than a count of GPUs.

A piece of a node with G GPUs gets a share such that the shares of pieces that fit into one node sum
to at most 1. So in N nodes the shares sum to at most N. The functions are those of S. P. Fekete and
J. Schepers, New classes of fast lower bounds for bin packing problems, Math. Programming 91 (2001),
section 3, for k = 1, 2, ... and x = gpus / G::

    f_k(x) = x if (k + 1) x is an integer, else floor((k + 1) x) / k

and those of S. Martello and P. Toth, Knapsack Problems (1990), the bound L2, for 1 ≤ k ≤ G/2::

    w_k(x) = 1 if gpus > G - k;  x if k ≤ gpus ≤ G - k;  0 if gpus < k
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from ronda.instances.base import Floats, Rows


def node_shares(gpus: Rows, node_gpus: int, k: int) -> Floats:
    """Return the share of a node that f_k gives to each piece in `gpus` (n,), shape (n,).

    f_1 gives the share 1 to every piece larger than half a node.
    """
    scaled = (k + 1) * gpus
    return np.where(scaled % node_gpus == 0, gpus / node_gpus, (scaled // node_gpus) / k)


def tightening(sizes: Iterable[int], node_gpus: int) -> tuple[int, ...]:
    """Return every k whose `node_shares` are tighter than a count of GPUs for the given sizes.

    No k is tighter if all sizes divide the node. Of functions that agree on all sizes, only the
    first is returned.
    """
    return _tightening(tuple(sorted(set(sizes))), node_gpus)


@lru_cache(maxsize=1024)
def _tightening(sizes: tuple[int, ...], node_gpus: int) -> tuple[int, ...]:
    gpus = np.array(sizes, dtype=np.int64)
    found: dict[tuple[float, ...], int] = {}
    for k in range(1, node_gpus):
        shares = node_shares(gpus, node_gpus, k)
        if (shares > gpus / node_gpus).any():
            found.setdefault(tuple(shares.tolist()), k)
    return tuple(found.values())


def at_most(gpus: Sequence[int], nodes: int, node_gpus: int) -> int:
    """Return an upper bound on the number of first jobs that can be placed together.

    Parameters
    ----------
    gpus
        The GPUs of the jobs, each on whole nodes and one piece; 0 counts nothing.
    nodes, node_gpus
        The number of nodes, and the GPUs of each.
    """
    columns, bounds = node_weights(node_gpus)
    pieces = [(*divmod(size, node_gpus), times) for size, times in Counter(gpus).items()]
    if all(
        sum((count * bound + column[rest]) * times for count, rest, times in pieces)
        <= nodes * bound
        for column, bound in zip(columns, bounds, strict=True)
    ):
        return len(gpus)
    weights, sizes = np.array(columns).T, np.array(gpus)
    weighs = np.array(bounds) * (sizes // node_gpus)[:, None] + weights[sizes % node_gpus]
    fits = (weighs.cumsum(axis=0) <= nodes * np.array(bounds)).all(axis=1)
    return int(np.argmin(fits))


@lru_cache(maxsize=64)
def node_weights(node_gpus: int) -> tuple[list[list[int]], list[int]]:
    """Return each function's shares of 0 to G GPUs as integers, and the integer for a full node."""
    sizes = np.arange(node_gpus + 1)
    columns, bounds = [], []
    for k in range(1, node_gpus // 2 + 1):
        kept = np.where(sizes >= k, sizes, 0)
        columns.append(np.where(sizes > node_gpus - k, node_gpus, kept).tolist())
        bounds.append(node_gpus)
    for k in range(1, node_gpus - 1):
        shares = node_shares(sizes, node_gpus, k) * (node_gpus * k)
        columns.append(np.rint(shares).astype(int).tolist())
        bounds.append(node_gpus * k)
    return columns, bounds
