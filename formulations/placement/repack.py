"""Place all jobs of a pool: in place, else repacked, else the most important ones."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from ronda.formulations.bit_sets import bits, bits_of, lowest_bit
from ronda.formulations.dual_feasible import at_most
from ronda.formulations.placement.nodes import PoolNodes, PoolRequest
from ronda.formulations.placement.packing import Packing
from ronda.formulations.watts import RackPower

_GPU = 1 << 20
"""What a GPU that stays counts beside a job that stays: more than any number of jobs."""


def pack(nodes: PoolNodes, requests: list[PoolRequest], power: RackPower | None = None) -> Packing:
    """Place requests (in order of importance) on the empty nodes of a pool.

    Jobs are admitted by importance as long as their number of GPUs leaves room. They are placed
    with everything that runs kept in place, a few blocks pushed out where they must; or else with
    all blocks placed again. If neither places all (sizes that do not divide each other, pinned
    jobs, power caps), the longest list of most important jobs that can be placed is, as bisection
    finds it, and of the others those that fit without a further move. Lists that no placement has
    room for (`ronda.formulations.dual_feasible`) count as tried.
    """
    ranked = [r for r in requests if r.pinned] + [r for r in requests if not r.pinned]
    room = sum([gpus * (those & nodes.usable).bit_count() for gpus, those in nodes.sized.items()])
    admitted: list[PoolRequest] = []
    for request in ranked:
        if request.gpus <= room:
            room -= request.gpus
            admitted.append(request)
    cannot = _first_in_vain(nodes, admitted)
    packing = _attempt(nodes, admitted, power) if cannot > len(admitted) else None
    if packing is not None:
        return packing
    packing = Packing(nodes.copy(), power.copy() if power else None)
    low, most = 0, len(admitted)
    while most - low > 1:  # `low` jobs can be placed, `most` cannot
        middle = (low + most) // 2
        trial = _attempt(nodes, admitted[:middle], power) if middle < cannot else None
        if trial is None:
            most = middle
        else:
            low, packing = middle, trial
    for request in admitted[low:]:
        packing.add(request)
    return packing


def _first_in_vain(nodes: PoolNodes, requests: list[PoolRequest]) -> int:
    """Return a number n such that no list of the first n requests, or more, can be placed.

    Beyond all requests if their sizes divide each other, or the pool's nodes are unequal.
    """
    whole = nodes.whole
    sizes = sorted({r.gpus % whole for r in requests} | {whole})
    divide = all(large % small == 0 for small, large in pairwise(sizes) if small)
    if divide or min(nodes.size) < whole:
        return len(requests) + 1
    # What is pinned, or runs on something else than whole nodes and one block, counts nothing.
    gpus = [0 if r.held and (r.pinned or not r.is_regular(whole)) else r.gpus for r in requests]
    return at_most(gpus, nodes.usable.bit_count(), whole) + 1


def _attempt(
    nodes: PoolNodes, requests: list[PoolRequest], power: RackPower | None
) -> Packing | None:
    """Place all requests in place, else by a repack of all blocks; None if neither does it."""
    packing = Packing(nodes.copy(), power.copy() if power else None)
    if packing.run(requests):
        return packing
    if not any(r.held for r in requests):
        return None
    repack = Packing(nodes.copy(), power.copy() if power else None)
    if not repack.run(requests, scratch=True):
        return None
    _keep_in_place(repack, requests)
    return repack


def _keep_in_place(packing: Packing, requests: list[PoolRequest]) -> None:
    """Exchange nodes of a kind so that as few GPUs as possible move; ties go to fewer jobs.

    Only nodes whose jobs are all movable and below a node in size are exchanged. It is a flow of
    least cost: one unit from every node of the packing to the node that shall do its part. Nodes
    that are left take others that are left: their own, else awake ones.
    """
    nodes, at = packing.nodes, packing.at
    loose = {r.order: r for r in requests if not r.pinned and len(at[r.order]) == 1}
    tied = bits_of(node for order in at.keys() - loose.keys() for node, _ in at[order])
    open_to_all = nodes.usable & ~tied
    stays: defaultdict[tuple[int, int], int] = defaultdict(int)
    filled = 0
    for order, request in loose.items():
        target = at[order][0][0]
        filled |= (1 << target) & open_to_all
        for source, gpus in request.held if len(request.held) == 1 else ():
            both = 1 << target | 1 << source
            if nodes.kind[target] == nodes.kind[source] and both & open_to_all == both:
                stays[target, source] += gpus * _GPU + 1
    renamed = _heaviest_matching(stays)
    left = open_to_all ^ bits_of(renamed.values())
    for target in bits(filled & left & nodes.awake):
        if target not in renamed:
            renamed[target] = target
            left ^= 1 << target
    for target in bits(filled):
        if target not in renamed:
            equal = left & nodes.kinds[nodes.kind[target]]
            renamed[target] = lowest_bit(equal & nodes.awake or equal & 1 << target or equal)
            left ^= 1 << renamed[target]
    before = [at[order][0] for order in loose]
    after = [(renamed.get(node, node), gpus) for node, gpus in before]
    at.update((order, [piece]) for order, piece in zip(loose, after, strict=True))
    nodes.take((nodes.nodes[node], -gpus) for node, gpus in before)
    nodes.take((nodes.nodes[node], gpus) for node, gpus in after)


def _heaviest_matching(weights: Mapping[tuple[int, int], int]) -> dict[int, int]:
    """Return the pairs (row, column), no two alike in either, of the greatest total weight.

    A sparse linear assignment, in which a column of its own lets each row go without a partner.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    if not weights:
        return {}
    edges, weight = np.array(list(weights)), np.array(list(weights.values()))
    rows, i = np.unique(edges[:, 0], return_inverse=True)
    columns, j = np.unique(edges[:, 1], return_inverse=True)
    alone = np.arange(len(rows))
    matrix = csr_matrix(
        (
            np.append(weight + 1, np.ones_like(alone)),
            (np.append(i, alone), np.append(j, len(columns) + alone)),
        )
    )
    matched, partner = min_weight_full_bipartite_matching(matrix, maximize=True)
    together = partner < len(columns)
    pairs = zip(rows[matched[together]], columns[partner[together]], strict=True)
    return {int(row): int(column) for row, column in pairs}
