"""The packing of the jobs of one pool onto its nodes with few moves, the combinatorial repack.

Every job is cut into whole nodes and at most one *block* smaller than a node. Whole nodes come
first, and take nodes that are empty or easiest to empty (`nodes_to_fill`). Blocks follow in
descending order of size. Running jobs stay in place unless a larger piece needs the room. In that
case the fewest blocks are pushed out, and are placed again in their turn.

**Theorem** (powers of two in descending order never fragment). Let all nodes have M GPUs, and let
every block size divide every larger one and M (powers of two do, if M is one). If no job is pinned
and the jobs need no more GPUs than there are, the repack places every job.

*Proof.* Consider the moment when a piece of s GPUs is placed, and count only firm pieces. They
were placed earlier and are no smaller, so s divides each of their sizes, and s divides M. Hence
each node has a multiple of s GPUs left next to its firm pieces. If no node had s GPUs left, all
would have 0 left. Firm pieces would fill the pool, and the jobs, with the new piece, would need
more GPUs than there are. So some node has room for s next to its firm pieces. Soft blocks in the
way are smaller and not placed for good, so they can be pushed out. A block that is pushed out is
smaller than s, so its turn is still to come, and the argument holds for it too. ∎
(Coffman, Garey and Johnson 1987 show the same for first-fit decreasing bin packing with divisible
item sizes.)

If nothing is pushed out, the same argument with fixed blocks in place of firm pieces shows that
blocks of divisible sizes find room without moves whenever there is any way to place them. A node
with f free GPUs holds floor(f/s) more blocks of size s wherever the larger blocks went.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import islice, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ronda.formulations.dual_feasible import at_most
from ronda.formulations.placement.nodes import (
    Piece,
    PoolNodes,
    PoolRequest,
    bits,
    bits_of,
    lowest_bit,
)
from ronda.formulations.placement.rack_power import RackPower
from ronda.instances.clock import checkpoint, watched

_GPU = 1 << 20
"""The weight of a GPU that stays, more than any number of jobs, which have weight 1 each."""


class WaitingBlock(NamedTuple):
    """The part of a job that does not fill a node; `near` are the nodes of preferred racks."""

    request: PoolRequest
    gpus: int
    near: int
    allowed: int


class Packing:
    """One attempt to place jobs on the empty `nodes` of a pool, which changes `nodes` and `power`.

    `at` maps the order of each placed job to its pieces; `failed` are the orders of jobs without
    room.
    """

    def __init__(self, nodes: PoolNodes, power: RackPower | None = None) -> None:
        self.nodes, self.power = nodes, power
        self._closed = ~nodes.usable & (1 << len(nodes.nodes)) - 1
        self.at: dict[int, list[Piece]] = {}
        self.failed: set[int] = set()
        self._movable: dict[int, PoolRequest] = {}
        # Per size: the nodes of soft blocks by job, and the waiting blocks, alone or near nodes.
        self._soft: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._loose: defaultdict[int, list[PoolRequest]] = defaultdict(list)
        self._tied: defaultdict[int, list[WaitingBlock]] = defaultdict(list)

    def run(self, requests: list[PoolRequest], *, scratch: bool = False) -> bool:
        """Place all requests, in order of importance, and return False if one fails.

        With `scratch`, all blocks are placed again, and only whole nodes and pinned jobs stay.
        """
        whole, wide = self.nodes.whole, []
        for request in watched(requests):
            if request.held and self._hold(request, scratch):
                continue
            if request.gpus < whole:
                self.at[request.order] = []
                self._loose[request.gpus].append(request)
            else:
                wide.append(request)
        for request in sorted(wide, key=lambda r: (r.rack < 0, -r.gpus, r.order)):
            rest = self._start(request, push=True)
            if self.failed:
                return False
            if rest:
                self._tied[rest].append(self._block(request, rest))
        for size in range(whole - 1, 0, -1):
            if not self._loose and not self._tied:
                break
            for job, node in self._soft.pop(size, {}).items():
                self.nodes.soft.remove(job, node)
            if size in self._loose or size in self._tied:
                self._settle_all(size)
                if self.failed:
                    return False
        return True

    def moved(self, requests: Iterable[PoolRequest]) -> list[int]:
        """Return the orders of the running jobs that are not on their nodes any more."""
        return [
            r.order
            for r in requests
            if r.held and sorted(self.at.get(r.order, ())) != sorted(r.held)
        ]

    def add(self, request: PoolRequest) -> None:
        """Place one more request without any move, if there is room."""
        if request.held and self._can_stay(request):
            self.at[request.order] = []
            for node, gpus in request.held:
                self._put(request, node, gpus)
            return
        rest = self._start(request, push=False)
        if rest:
            self._settle(self._block(request, rest), push=False)

    # -- running jobs -------------------------------------------------------------------------

    def _hold(self, request: PoolRequest, scratch: bool) -> bool:
        """Keep a running job in place, with a soft block; return False if it must move."""
        nodes, order, stays = self.nodes, request.order, list(request.held)
        regular = request.is_regular(nodes.whole)
        if not request.pinned:
            if scratch and not regular:
                return False
            if self._closed and any(self._closed >> node & 1 for node, _ in stays):
                return False
            if not self._bears(request, stays):
                return False
        rest = request.gpus % nodes.whole
        movable = regular and not request.pinned and rest > 0
        if movable and scratch:
            stays = [(node, gpus) for node, gpus in stays if gpus == nodes.whole]
        self.at[order] = stays
        if regular and not rest and self.power is None:
            nodes.put_all(bits_of(node for node, _ in stays), nodes.whole, nodes.whole)
            return True
        for node, gpus in stays:
            if self.power is not None:
                self._account(request, node, gpus)
            if movable and gpus < nodes.whole:
                nodes.put_soft(order, node, gpus)
                self._soft[gpus][order] = node
                self._movable[order] = request
            else:
                nodes.put(node, gpus)
        if movable and scratch:
            self._wait(request, rest)
        return True

    def _push_out(self, node: int, jobs: list[int]) -> None:
        for job in jobs:
            gpus = self.nodes.push_out(job, node)
            del self._soft[gpus][job]
            self.at[job].remove((node, gpus))
            self._account(self._movable[job], node, -gpus)
            self._wait(self._movable[job], gpus)

    def _wait(self, request: PoolRequest, gpus: int) -> None:
        if self.at[request.order]:
            self._tied[gpus].append(self._block(request, gpus))
        else:
            self._loose[gpus].append(request)

    # -- jobs to place ------------------------------------------------------------------------

    def _start(self, request: PoolRequest, *, push: bool) -> int:
        nodes = self.nodes
        count, rest = divmod(request.gpus, nodes.whole)
        if request.span == "node" and request.gpus > nodes.whole:
            self.failed.add(request.order)
            return 0
        self.at[request.order] = []
        mixed = count > 0 and not nodes.can_hold(count, rest)
        chosen: list[int] | None = []
        if count:
            count = nodes.fewest_nodes(request.gpus) if mixed else count
            allowed = nodes.usable & self._power_mask(request, nodes.whole, count)
            choose = mixed_nodes if mixed else nodes_to_fill
            chosen = choose(nodes, request, count, allowed, push=push)
        if chosen is None:
            self._fail(request)
            return 0
        for node in chosen:
            if node in nodes.soft.on:
                self._push_out(node, list(nodes.soft.on[node]))
        if not mixed and self.power is None:
            nodes.put_all(bits_of(chosen), nodes.whole, nodes.whole)
            self.at[request.order] = [(node, nodes.whole) for node in chosen]
            return rest
        left = request.gpus
        for node in chosen:
            self._put(request, node, min(left, nodes.size[node]))
            left -= nodes.size[node]
        return 0 if mixed else rest

    def _block(self, request: PoolRequest, gpus: int) -> WaitingBlock:
        nodes, near = self.nodes, 0
        for rack in {nodes.rack[node] for node, _ in self.at[request.order]}:
            near |= nodes.racks[rack]
        within = near if near and request.span == "rack" else nodes.usable
        return WaitingBlock(request, gpus, near, within)

    def _settle_all(self, size: int) -> None:
        """Place all blocks of a size in order of importance, until one finds no room."""
        loose = sorted(self._loose.pop(size, ()), key=_order)
        done = 0
        for block in sorted(self._tied.pop(size, ()), key=lambda b: b.request.order):
            turn = bisect_left(loose, block.request.order, lo=done, key=_order)
            self._settle_loose(size, loose[done:turn])
            self._settle(block, push=True)
            if self.failed:
                return
            done = turn
        self._settle_loose(size, loose[done:])

    def _settle_loose(self, size: int, requests: list[PoolRequest]) -> None:
        """Place blocks that may go anywhere; without power caps, place them together."""
        nodes = self.nodes.put_best_fit(size, len(requests)) if self.power is None else []
        for request, node in zip(requests, nodes, strict=False):
            self.at[request.order].append((node, size))
        for request in requests[len(nodes) :]:
            if self.failed:
                return
            self._settle(WaitingBlock(request, size, 0, self.nodes.usable), push=True)

    def _settle(self, block: WaitingBlock, *, push: bool) -> None:
        """Place a block by best fit on nodes in use, awake or any, or else push blocks out."""
        checkpoint()
        nodes, request, near = self.nodes, block.request, block.near
        allowed = nodes.usable & block.allowed & self._power_mask(request, block.gpus)
        groups = (near & nodes.busy, near & nodes.awake) if near else ()
        for group in (*groups, nodes.busy, nodes.awake, near, nodes.usable):
            node = nodes.best_fit(block.gpus, allowed & group)
            if node is not None:
                break
        else:
            found = nodes.soft.cheapest(block.gpus, allowed) if push else None
            if found is None:
                self._fail(request)
                return
            node, jobs = found
            self._push_out(node, jobs)
        self._put(request, node, block.gpus)

    # -- book-keeping -------------------------------------------------------------------------

    def _put(self, request: PoolRequest, node: int, gpus: int) -> None:
        self._account(request, node, gpus)
        self.nodes.put(node, gpus)
        self.at[request.order].append((node, gpus))

    def _fail(self, request: PoolRequest) -> None:
        for node, gpus in self.at.pop(request.order):
            self.nodes.put(node, -gpus)
            self._account(request, node, -gpus)
        self.failed.add(request.order)

    def _account(self, request: PoolRequest, node: int, gpus: int) -> None:
        if self.power is not None and not request.pinned:  # pinned jobs count from the start
            self.power.add(self.nodes.nodes[node], request.extra_w * gpus)

    def _power_mask(self, request: PoolRequest, gpus: int, count: int = 1) -> int:
        if self.power is None:
            return self.nodes.usable
        among = self.nodes.in_cluster(self.nodes.usable)
        return self.nodes.in_pool(self.power.allowed(among, request.extra_w * gpus, count))

    def _can_stay(self, request: PoolRequest) -> bool:
        """Return whether the GPUs of a running job, and the watts for them, are still free."""
        nodes = self.nodes
        if any(
            nodes.free[node] < gpus or not nodes.usable >> node & 1 for node, gpus in request.held
        ):
            return False
        return request.pinned or self._bears(request, request.held)

    def _bears(self, request: PoolRequest, pieces: Iterable[Piece]) -> bool:
        return self.power is None or self.power.fits(
            (self.nodes.nodes[node], request.extra_w * gpus) for node, gpus in pieces
        )


_order = attrgetter("order")


def nodes_to_fill(
    nodes: PoolNodes, request: PoolRequest, count: int, allowed: int, *, push: bool
) -> list[int] | None:
    """Return `count` of the largest nodes for a job, in its preferred rack if there is room."""
    wished = nodes.racks.get(request.rack, 0)
    chosen = _among(nodes, request, count, allowed & wished, push=push) if wished else None
    return chosen if chosen is not None else _among(nodes, request, count, allowed, push=push)


def mixed_nodes(
    nodes: PoolNodes, request: PoolRequest, fewest: int, allowed: int, *, push: bool
) -> list[int] | None:
    """Return `fewest` empty nodes, largest first, for a job that the largest nodes cannot hold.

    Return None if these are too few, as the job's rate is promised for the fewest nodes.
    """
    able: dict[tuple[int, int], int] = {}
    for (size, blocks, _), mask in _emptiable(nodes, push=push).items():
        able[-size, blocks] = able.get((-size, blocks), 0) | mask
    ordered = [mask for _, mask in sorted(able.items())]
    for group in nodes.racks.values() if request.span == "rack" else (nodes.usable,):
        chosen = _first(ordered, allowed & group, fewest)
        if sum(nodes.size[node] for node in chosen) >= request.gpus:
            return chosen
    return None


def _among(
    nodes: PoolNodes, request: PoolRequest, count: int, allowed: int, *, push: bool
) -> list[int] | None:
    """Return nodes to take completely, first empty and awake, then empty, then easy to empty."""
    empty = nodes.levels[nodes.whole] & allowed
    one_rack = request.span == "rack"
    roomy = empty
    if request.gpus % nodes.whole:
        roomy &= _racks_with_room(nodes, request, empty, count)
    for group in (nodes.awake, nodes.usable):
        chosen = nodes.spread(roomy & group, count, one_rack=True)
        if chosen is None and not one_rack:
            chosen = nodes.spread(empty & group, count)
        if chosen is not None:
            return list(bits(chosen))
    if not push:
        return None
    racks = nodes.racks.values() if one_rack else (nodes.usable,)
    return easiest_to_empty(nodes, count, (allowed & rack for rack in racks))


def _racks_with_room(nodes: PoolNodes, request: PoolRequest, empty: int, count: int) -> int:
    """Return the nodes in racks that could also take the remaining block."""
    part_used = 0
    for free in range(request.gpus % nodes.whole, nodes.whole):
        part_used |= nodes.levels[free]
    part_used &= nodes.usable
    room = 0
    for rack in nodes.racks.values():
        if part_used & rack or (empty & rack).bit_count() > count:
            room |= rack
    return room


def easiest_to_empty(nodes: PoolNodes, count: int, groups: Iterable[int]) -> list[int] | None:
    """Return `count` of the largest nodes in one group that the fewest moves empty, or None.

    Nodes with fewer soft blocks come first, then nodes with fewer GPUs in use, then lower numbers.
    """
    able = _emptiable(nodes, push=True)
    ordered = [mask for (size, _, _), mask in sorted(able.items()) if size == nodes.whole]
    best: tuple[int, list[int]] | None = None
    for group in groups:
        chosen = _first(ordered, group, count)
        moves = sum(len(nodes.soft.on.get(node, ())) for node in chosen)
        if len(chosen) == count and (best is None or moves < best[0]):
            best = (moves, chosen)
    return None if best is None else best[1]


def _emptiable(nodes: PoolNodes, *, push: bool) -> Mapping[tuple[int, int, int], int]:
    """Return the nodes that are empty or, with `push`, hold nothing but soft blocks.

    The result maps size, number of soft blocks and their GPUs to sets of nodes.
    """
    empty = nodes.empty
    able = {(size, 0, 0): mask & empty for size, mask in nodes.sized.items()}
    for (free, sizes), mask in nodes.soft.kinds() if push else ():
        used = sum(sizes)
        only_soft = mask & nodes.sized.get(free + used, 0)
        if only_soft:
            key = (free + used, len(sizes), used)
            able[key] = able.get(key, 0) | only_soft
    return able


def _first(ordered: Iterable[int], among: int, count: int) -> list[int]:
    """Return up to `count` nodes of the set `among`, from the sets in `ordered` in turn."""
    chosen: list[int] = []
    for mask in ordered:
        chosen += islice(bits(mask & among), count - len(chosen))
        if len(chosen) == count:
            break
    return chosen


class Staying(NamedTuple):
    """Running jobs whose moves are limited: their orders, and whether some may all move."""

    costly: Collection[int]
    allows: Callable[[Iterable[int]], bool]


def pack(
    nodes: PoolNodes,
    requests: list[PoolRequest],
    power: RackPower | None = None,
    staying: Staying | None = None,
) -> Packing:
    """Place requests (in order of importance) on the empty nodes of a pool.

    Jobs are admitted by importance as long as their GPUs leave room. The first attempt keeps
    running jobs in place and pushes out a few blocks where it must; the second places all blocks
    again. If both fail (by sizes that do not divide each other, pinned jobs, or power caps),
    bisection finds the longest list of most important jobs that can be placed. The other jobs are
    added where they fit without a further move. Lists that cannot have a placement
    (`ronda.formulations.dual_feasible`) are not tried. Running jobs whose moves are limited
    (`staying`) come before all others, so that none of them stops, and no list is placed by more
    moves than are allowed.
    """
    costly = () if staying is None else staying.costly
    firm = [r for r in requests if r.pinned or r.order in costly]
    ranked = [r for r in firm if r.pinned] + [r for r in firm if not r.pinned]
    ranked += [r for r in requests if not r.pinned and r.order not in costly]
    room = sum([gpus * (those & nodes.usable).bit_count() for gpus, those in nodes.sized.items()])
    admitted: list[PoolRequest] = []
    for request in ranked:
        if request.gpus <= room:
            room -= request.gpus
            admitted.append(request)
    cannot = _first_in_vain(nodes, admitted)
    attempt = partial(_attempt, nodes, power=power, staying=staying)
    packing = attempt(admitted) if cannot > len(admitted) else None
    if packing is not None:
        return packing
    low, most = 0, len(admitted)
    if costly and (in_place := attempt(admitted[: len(firm)])) is not None:
        low, packing = len(firm), in_place
    packing = packing or Packing(nodes.copy(), power.copy() if power else None)
    while most - low > 1:  # `low` jobs can be placed, `most` cannot
        middle = (low + most) // 2
        trial = attempt(admitted[:middle]) if middle < cannot else None
        if trial is None:
            most = middle
        else:
            low, packing = middle, trial
    for request in admitted[low:]:
        packing.add(request)
    return packing


def _first_in_vain(nodes: PoolNodes, requests: list[PoolRequest]) -> int:
    """Return a number n such that no list of the first n or more requests can be placed.

    It exceeds the number of requests if their sizes divide each other, or if the pool has unequal
    nodes.
    """
    whole = nodes.whole
    sizes = sorted({r.gpus % whole for r in requests} | {whole})
    divide = all(large % small == 0 for small, large in pairwise(sizes) if small)
    if divide or min(nodes.size) < whole:
        return len(requests) + 1
    # Pinned jobs, and jobs that do not run on whole nodes and one block, count 0.
    gpus = [0 if r.held and (r.pinned or not r.is_regular(whole)) else r.gpus for r in requests]
    return at_most(gpus, nodes.usable.bit_count(), whole) + 1


def _attempt(
    nodes: PoolNodes,
    requests: list[PoolRequest],
    power: RackPower | None,
    staying: Staying | None = None,
) -> Packing | None:
    """Return a packing of all requests, first with few moves, else repacked; None if both fail.

    Both fail if they move more than `staying` allows.
    """
    packing = Packing(nodes.copy(), power.copy() if power else None)
    if packing.run(requests) and _allowed(packing, requests, staying):
        return packing
    if not any(r.held for r in requests):
        return None
    repack = Packing(nodes.copy(), power.copy() if power else None)
    if not repack.run(requests, scratch=True):
        return None
    _keep_in_place(repack, requests)
    return repack if _allowed(repack, requests, staying) else None


def _allowed(packing: Packing, requests: list[PoolRequest], staying: Staying | None) -> bool:
    return staying is None or staying.allows(packing.moved(requests))


def _keep_in_place(packing: Packing, requests: list[PoolRequest]) -> None:
    """Exchange equal nodes so that as few GPUs as possible move, and then as few jobs as possible.

    Only nodes whose jobs are all movable and smaller than a node are exchanged. A matching with the
    greatest weight of GPUs that stay assigns parts of the packing to nodes. Each remaining part
    keeps its node if that is free and awake, else it takes an awake node, else its own or any.
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
    """Return the matching of rows to columns with the greatest total weight.

    It solves a sparse linear assignment, in which each row has an additional column of its own, so
    that it may have no partner.
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
