"""Packing the jobs of one pool onto its nodes with few moves: the combinatorial repack.

Every job is cut into whole nodes and at most one *block* smaller than a node. Whole nodes come
first, then blocks in descending order of size. What runs stays where it is unless a larger piece
needs the room; then the fewest blocks are pushed out, and they are placed again in their turn.

**Theorem** (powers of two in descending order never fragment). Let all nodes have M GPUs, and let
every block size divide every larger one and M (powers of two do, if M is one). If no job is pinned
and the jobs need no more GPUs than there are, the repack places every job.

*Proof.* Consider the moment when a piece of s GPUs is placed, and count only firm pieces. They
were placed earlier and are no smaller, so s divides each of their sizes, and s divides M; hence
the GPUs that a node has left beside its firm pieces are a multiple of s. If no node had s of them
left, all would have 0 left: firm pieces would fill the pool, and the jobs, this piece included,
would need more GPUs than there are. So some node has room for s beside its firm pieces, and soft
blocks in the way are smaller and not placed for good: they can be pushed out. A pushed block is
smaller than s, so its turn is still to come, and the argument holds for it too. ∎
(Coffman, Garey and Johnson 1987 show the same for first-fit decreasing bin packing with divisible
item sizes.)

If nothing is pushed out, the same argument with fixed blocks in place of firm pieces shows that
blocks of divisible sizes find room in place whenever any way to place them exists: a node with f
free GPUs holds floor(f/s) more blocks of size s wherever the larger ones went.
"""

from bisect import bisect_left
from collections import defaultdict
from operator import attrgetter
from typing import NamedTuple

from ronda.formulations.bit_sets import bits_of
from ronda.formulations.clock import checkpoint
from ronda.formulations.placement.nodes import Piece, PoolNodes, PoolRequest
from ronda.formulations.placement.whole_nodes import mixed_nodes, nodes_to_fill
from ronda.formulations.watts import RackPower


class WaitingBlock(NamedTuple):
    """The part of a job that does not fill a node; `near` its other nodes' racks is preferred."""

    request: PoolRequest
    gpus: int
    near: int
    allowed: int


class Packing:
    """One attempt to place jobs on the empty `nodes` of a pool; these and `power` are changed.

    `at` has the pieces of each placed job by its order, `failed` the orders of jobs without room.
    """

    def __init__(self, nodes: PoolNodes, power: RackPower | None = None) -> None:
        self.nodes, self.power = nodes, power
        self._closed = ~nodes.usable & (1 << len(nodes.nodes)) - 1
        self.at: dict[int, list[Piece]] = {}
        self.failed: set[int] = set()
        self._movable: dict[int, PoolRequest] = {}
        # By size: where the soft block of a job is; what waits for its turn, alone or near nodes.
        self._soft: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._loose: defaultdict[int, list[PoolRequest]] = defaultdict(list)
        self._tied: defaultdict[int, list[WaitingBlock]] = defaultdict(list)

    def run(self, requests: list[PoolRequest], *, scratch: bool = False) -> bool:
        """Place all requests (in order of importance) as the module describes; False if one fails.

        With `scratch` blocks forget where they are, and only whole nodes and pinned jobs stay.
        """
        whole, wide = self.nodes.whole, []
        for request in requests:
            checkpoint()
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

    def add(self, request: PoolRequest) -> None:
        """Place one more request without moving anything, if there is room."""
        if request.held and self._can_stay(request):
            self.at[request.order] = []
            for node, gpus in request.held:
                self._put(request, node, gpus)
            return
        rest = self._start(request, push=False)
        if rest:
            self._settle(self._block(request, rest), push=False)

    # -- what runs already --------------------------------------------------------------------

    def _hold(self, request: PoolRequest, scratch: bool) -> bool:
        """Leave a running job where it is, its block soft; False if it must be placed again."""
        nodes, order, stays = self.nodes, request.order, list(request.held)
        regular = request.is_regular(nodes.whole)
        if not request.pinned:
            if scratch and not regular:
                return False
            if self._closed and any(self._closed >> node & 1 for node, _ in stays):
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
        """Take soft blocks off a node and let them wait for their turn."""
        for job in jobs:
            gpus = self.nodes.push_out(job, node)
            del self._soft[gpus][job]
            self.at[job].remove((node, gpus))
            self._account(self._movable[job], node, -gpus)
            self._wait(self._movable[job], gpus)

    def _wait(self, request: PoolRequest, gpus: int) -> None:
        """Let the block of a job wait for its turn."""
        if self.at[request.order]:
            self._tied[gpus].append(self._block(request, gpus))
        else:
            self._loose[gpus].append(request)

    # -- what has to be placed ----------------------------------------------------------------

    def _start(self, request: PoolRequest, *, push: bool) -> int:
        """Place a job's whole nodes and return the GPUs of its block, 0 if it has none."""
        nodes = self.nodes
        count, rest = divmod(request.gpus, nodes.whole)
        if request.span == "node" and request.gpus > nodes.whole:
            self.failed.add(request.order)
            return 0
        self.at[request.order] = []
        mixed = count > 0 and not nodes.can_hold(count, rest)
        chosen: list[int] | None = []
        if mixed:
            count = nodes.fewest_nodes(request.gpus)
            allowed = nodes.usable & self._power_mask(request, nodes.whole, count)
            chosen = mixed_nodes(nodes, request, count, allowed, push=push)
        elif count:
            allowed = nodes.usable & self._power_mask(request, nodes.whole, count)
            chosen = nodes_to_fill(nodes, request, count, allowed, push=push)
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
        """Return the block of a job whose other nodes, if any, have been chosen."""
        nodes, near = self.nodes, 0
        for rack in {nodes.rack[node] for node, _ in self.at[request.order]}:
            near |= nodes.racks[rack]
        within = near if near and request.span == "rack" else nodes.usable
        return WaitingBlock(request, gpus, near, within)

    def _settle_all(self, size: int) -> None:
        """Place all blocks of a size in order of importance, until there is no room for one."""
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
        """Place blocks that may go anywhere; if there are no caps, all that have room together."""
        nodes = self.nodes.put_best_fit(size, len(requests)) if self.power is None else []
        for request, node in zip(requests, nodes, strict=False):
            self.at[request.order].append((node, size))
        for request in requests[len(nodes) :]:
            if self.failed:
                return
            self._settle(WaitingBlock(request, size, 0, self.nodes.usable), push=True)

    def _settle(self, block: WaitingBlock, *, push: bool) -> None:
        """Place a block: best fit on nodes in use, else awake ones, else any, else push."""
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
        """Give up a job: what it has got is free again."""
        for node, gpus in self.at.pop(request.order):
            self.nodes.put(node, -gpus)
            self._account(request, node, -gpus)
        self.failed.add(request.order)

    def _account(self, request: PoolRequest, node: int, gpus: int) -> None:
        if self.power is not None:
            self.power.add(self.nodes.nodes[node], request.extra_w * gpus)

    def _power_mask(self, request: PoolRequest, gpus: int, count: int = 1) -> int:
        if self.power is None:
            return self.nodes.usable
        among = self.nodes.in_cluster(self.nodes.usable)
        return self.nodes.in_pool(self.power.allowed(among, request.extra_w * gpus, count))

    def _can_stay(self, request: PoolRequest) -> bool:
        """Tell whether a running job's GPUs, and the watts for them, are still free."""
        nodes = self.nodes
        if any(
            nodes.free[node] < gpus or not nodes.usable >> node & 1 for node, gpus in request.held
        ):
            return False
        return self.power is None or self.power.fits(
            (nodes.nodes[node], request.extra_w * gpus) for node, gpus in request.held
        )


_order = attrgetter("order")
