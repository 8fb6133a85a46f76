"""A certified bound on what plans are worth once moves are paid for, by linear programming.

The dual bound of a round knows nothing of nodes. This relaxation adds what large jobs need: nodes
that are empty, from which every job that keeps its option must go at its loss::

    max  sum_k value[k] x[k] - sum_j loss[j] (x[held j] - s[j])
    s.t. sum_{k of job i} x[k] <= 1                                  for each job i
         sum_k burden[r, k] x[k] <= capacity[r]                      for each resource r
         s[j] <= x[held j]                                           for each running job j
         s[j] + e[n] <= 1                                            if j holds GPUs of node n
         sum_k need[k] x[k] - sum_j need[held j] s[j] <= sum_n M[n] e[n]
         0 <= x, s, e <= 1

with s[j] = 1 if j stays exactly where it is, e[n] = 1 if node n is given to whole-node pieces of
other jobs, and need[k] the GPUs of row k in whole nodes (placement cuts every job so). Blocks below
a node, racks and integrality are left out, and nodes that must be woken count by their mean power
(no more than they draw): all of that only raises the bound.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix, hstack, vstack

from ronda.formulations.genes.genome import Genes
from ronda.formulations.genes.moving import PoolMoves
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import RondaError

ROUNDING = 1e-7
"""Relative tolerance of the linear program, added to the bound."""


def bound_with_moves(genes: Genes) -> float:
    """Return what no plan of the genes is worth more than, moves paid for.

    Parameters
    ----------
    genes
        Genes that know where jobs run (`ronda.formulations.genes.neighbourhood.settle`).

    Raises
    ------
    RondaError
        If the linear program is not solved; all waiting is feasible, so that is for numbers out
        of all proportion.
    """
    pools = list(genes.moving)
    rows = len(genes.row)
    stays, nodes = sum(len(p.gene) for p in pools), sum(len(p.free) for p in pools)
    job = np.repeat(np.arange(len(genes)), genes.count)
    blocks = [
        _sparse(np.ones(rows), job, np.arange(rows), (len(genes), rows + stays + nodes)),
        hstack([csr_matrix(genes.burden), csr_matrix((len(genes.limit), stays + nodes))]),
    ]
    top = [np.ones(len(genes)), genes.limit]
    gain = np.concatenate([genes.value, np.zeros(stays + nodes)])
    s, e = rows, rows + stays
    for pool in pools:
        gain[s : s + len(pool.gene)] += pool.loss
        np.subtract.at(gain, pool.row, pool.loss)
        for matrix, limit in _of_pool(pool, s, e, len(gain)):
            blocks.append(matrix)
            top.append(limit)
        s, e = s + len(pool.gene), e + len(pool.free)
    whole: Any = vstack(blocks).tocsr()  # scipy's types know of no sparse one here
    solved: Any = linprog(
        -gain, A_ub=whole, b_ub=np.concatenate(top), bounds=(0, 1), method="highs"
    )
    if solved.status != 0:
        raise RondaError(f"bound with moves: {solved.message}")
    value = -float(solved.fun)
    return value + ROUNDING * abs(value) + genes.fixed_value


def _of_pool(pool: PoolMoves, s: int, e: int, width: int) -> Iterator[tuple[csr_matrix, Floats]]:
    """Yield the constraints of a pool, whose s begin at column `s` and e at column `e`."""
    count, here = len(pool.gene), np.arange(len(pool.gene))
    whole = float(pool.sizes[0])
    ones = np.ones(count)
    yield (
        _sparse(np.r_[ones, -ones], np.r_[here, here], np.r_[s + here, pool.row], (count, width)),
        np.zeros(count),
    )
    who, node = np.nonzero(pool.at)
    line, one = np.arange(len(who)), np.ones(len(who))
    columns = np.r_[s + who, e + node]
    yield (
        _sparse(np.r_[one, one], np.r_[line, line], columns, (len(who), width)),
        one,
    )
    asks = np.flatnonzero(pool.need[0])
    room = np.flatnonzero(pool.free >= whole)
    numbers = np.r_[pool.need[0, asks], -pool.need[0, pool.row], np.full(len(room), -whole)]
    columns = np.r_[asks, s + here, e + room]
    yield (
        _sparse(numbers, np.zeros(len(columns), dtype=np.int64), columns, (1, width)),
        np.zeros(1),
    )


def _sparse(numbers: Floats, rows: Rows, columns: Rows, shape: tuple[int, int]) -> csr_matrix:
    return coo_matrix((numbers, (rows, columns)), shape=shape).tocsr()
