"""How many of some jobs can be placed at most, whatever the way: a bound of bin packing.

Pieces of x of a node's M GPUs get weights such that whatever fits into one node weighs M at most
(dual feasible functions). So jobs whose pieces weigh more than M times the number of nodes cannot
be placed. The weights are those of Martello and Toth (1990), the bound L2, for 1 ≤ k ≤ M/2::

    w(x) = M if x > M - k;  x if k ≤ x ≤ M - k;  0 if x < k

and of Fekete and Schepers (2001), for k = 1 … M - 2, here times k::

    w(x) = x k if (k + 1) x is a multiple of M, else floor((k + 1) x / M) M
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ronda.formulations.placement.requests import PoolRequest


def at_most(requests: Sequence[PoolRequest], nodes: int, whole: int) -> int:
    """Return so many of the first requests that no longer list of first ones can be placed.

    Parameters
    ----------
    requests
        The jobs. Those that are pinned, or run on something else than whole nodes and one block,
        count nothing.
    nodes, whole
        How many nodes there are, and the GPUs of each.
    """
    gpus = [0 if r.held and (r.pinned or not r.is_regular(whole)) else r.gpus for r in requests]
    columns, bounds = node_weights(whole)
    pieces = [(*divmod(size, whole), times) for size, times in Counter(gpus).items()]
    if all(
        sum((count * column[whole] + column[rest]) * times for count, rest, times in pieces)
        <= nodes * bound
        for column, bound in zip(columns, bounds, strict=True)
    ):
        return len(requests)
    weights, sizes = np.array(columns).T, np.array(gpus)
    weighs = weights[whole] * (sizes // whole)[:, None] + weights[sizes % whole]
    fits = (weighs.cumsum(axis=0) <= nodes * np.array(bounds)).all(axis=1)
    return int(np.argmin(fits))


@lru_cache(maxsize=64)
def node_weights(whole: int) -> tuple[list[list[int]], list[int]]:
    """Return weights of pieces of 0 to M GPUs, kind by kind, and what a node can weigh of each."""
    columns, bounds = [], []
    for least in range(1, whole // 2 + 1):
        columns.append(
            [whole if x > whole - least else x if x >= least else 0 for x in range(whole + 1)]
        )
        bounds.append(whole)
    for k in range(1, whole - 1):
        steps = [divmod((k + 1) * x, whole) for x in range(whole + 1)]
        columns.append([whole * n if part else x * k for x, (n, part) in enumerate(steps)])
        bounds.append(whole * k)
    return columns, bounds
