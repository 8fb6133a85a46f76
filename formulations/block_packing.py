"""Packing the jobs of one pool onto its nodes with few moves: the combinatorial repack.

Every job is cut into whole nodes and at most one *block* smaller than a node. Whole nodes come
first, then blocks in descending order of size. What runs stays where it is unless a larger piece
needs the room; then the fewest blocks are pushed out, and they are placed anew in their turn.

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

from collections import defaultdict

from ronda.formulations.bit_sets import bits
from ronda.formulations.pieces import Block, Piece, Request
from ronda.formulations.pool_nodes import PoolNodes
from ronda.formulations.rack_power import RackPower


class Packing:
    """One attempt to place jobs on the nodes of a pool.

    Parameters
    ----------
    nodes
        The empty pool; it is changed.
    power
        Power caps of racks, or None; it is changed.

    Attributes
    ----------
    at
        The pieces of each placed job, by its order.
    failed
        The orders of jobs for which there was no room.
    """

    def __init__(self, nodes: PoolNodes, power: RackPower | None = None) -> None:
        self.nodes, self.power = nodes, power
        self.at: dict[int, list[Piece]] = {}
        self.failed: set[int] = set()
        self._requests: dict[int, Request] = {}
        self._soft: defaultdict[int, dict[int, int]] = defaultdict(dict)  # size: job: node
        self._queue: defaultdict[int, list[Block]] = defaultdict(list)

    def run(self, requests: list[Request], *, scratch: bool = False) -> None:
        """Place all requests (in order of importance) as the module describes.

        With `scratch` blocks forget where they are, and only whole nodes and pinned jobs stay.
        """
        self._requests = {r.order: r for r in requests}
        fresh = [r for r in requests if not (r.held and self._hold(r, scratch))]
        for request in sorted(fresh, key=lambda r: (r.rack < 0, -r.gpus, r.order)):
            self._start(request, push=True)
        for size in range(self.nodes.whole - 1, 0, -1):
            if not any(self._queue.values()):
                break
            for job, node in self._soft.pop(size, {}).items():
                self.nodes.harden(job, node)
            for block in sorted(self._queue.pop(size, ()), key=lambda b: b.request.order):
                self._settle(block, push=True)

    def add(self, request: Request) -> bool:
        """Place one more request without moving anything; tell whether there was room."""
        nodes = self.nodes
        if request.held and self._can_stay(request):
            self.at[request.order] = []
            for node, gpus in request.held:
                self._put(request, node, gpus)
            return True
        self._start(request, push=False)
        for block in self._queue.pop(request.gpus % nodes.whole, ()):
            self._settle(block, push=False)
        return request.order in self.at

    # -- what runs already --------------------------------------------------------------------

    def _hold(self, request: Request, scratch: bool) -> bool:
        """Leave a running job where it is, its block soft; False if it must be placed anew."""
        nodes = self.nodes
        regular = request.is_regular(nodes.whole)
        open_to_it = all(nodes.usable >> node & 1 for node, _ in request.held)
        if not request.pinned and not (open_to_it and (regular or not scratch)):
            return False
        rest = request.gpus % nodes.whole
        movable = regular and not request.pinned and rest > 0
        if movable and scratch and len(request.held) == 1:
            return False
        self.at[request.order] = []
        for node, gpus in request.held:
            if not movable or gpus == nodes.whole:
                self._put(request, node, gpus)
            elif not scratch:
                self._account(request, node, gpus)
                nodes.put_soft(request.order, node, gpus)
                self._soft[gpus][request.order] = node
        if movable and not scratch:
            self.at[request.order] = list(request.held)
        elif movable:
            self._enqueue(request, rest)
        return True

    def _push_out(self, node: int, jobs: list[int]) -> None:
        """Take soft blocks off a node and let them wait for their turn."""
        for job in jobs:
            gpus = self.nodes.push_out(job, node)
            del self._soft[gpus][job]
            self.at[job].remove((node, gpus))
            self._account(self._requests[job], node, -gpus)
            self._enqueue(self._requests[job], gpus)

    # -- what has to be placed ----------------------------------------------------------------

    def _start(self, request: Request, *, push: bool) -> None:
        """Place a job's whole nodes and let its block wait for its turn."""
        count, rest = divmod(request.gpus, self.nodes.whole)
        if request.span == "node" and request.gpus > self.nodes.whole:
            self.failed.add(request.order)
            return
        self.at[request.order] = []
        mixed = count > 0 and not self.nodes.can_hold(count, rest)
        if mixed:
            chosen = self._choose_mixed(request, push=push)
        else:
            chosen = self._choose_whole(request, count, push=push) if count else []
        if chosen is None:
            self._fail(request)
            return
        left = request.gpus
        for node in chosen:
            self._push_out(node, list(self.nodes.soft[node]))
            self._put(request, node, min(left, self.nodes.size[node]))
            left -= self.nodes.size[node]
        if rest and not mixed:
            self._enqueue(request, rest)

    def _choose_whole(self, request: Request, count: int, *, push: bool) -> list[int] | None:
        """Return nodes to take completely, in the rack that the job would like if it has room."""
        wished = self.nodes.racks.get(request.rack, 0)
        chosen = self._choose_among(wished, request, count, push=push) if wished else None
        if chosen is not None:
            return chosen
        return self._choose_among(self.nodes.usable, request, count, push=push)

    def _choose_among(
        self, among: int, request: Request, count: int, *, push: bool
    ) -> list[int] | None:
        """Return nodes to take completely: empty and awake, else empty, else soon emptied."""
        nodes = self.nodes
        allowed = nodes.usable & among & self._power_mask(request, nodes.whole, count)
        empty = nodes.levels[nodes.whole] & allowed
        one_rack = request.span == "rack"
        roomy = empty
        if request.gpus % nodes.whole:
            roomy &= self._racks_with_room(request, empty, count)
        for group in (nodes.awake, nodes.usable):
            chosen = nodes.spread(roomy & group, count, one_rack=True)
            if chosen is None and not one_rack:
                chosen = nodes.spread(empty & group, count)
            if chosen is not None:
                return list(bits(chosen))
        return self._empty_nodes(allowed, count, one_rack=one_rack) if push else None

    def _choose_mixed(self, request: Request, *, push: bool) -> list[int] | None:
        """Return empty nodes of several sizes, for a job that the largest alone cannot hold.

        Largest first; None unless they are as few as the pool allows, on which its rate relies.
        """
        nodes = self.nodes
        fewest = nodes.fewest_nodes(request.gpus)
        allowed = nodes.usable & self._power_mask(request, nodes.whole, fewest)
        room = nodes.firm if push else nodes.free
        for rack in nodes.racks.values() if request.span == "rack" else (nodes.usable,):
            able = [n for n in bits(allowed & rack) if room[n] == nodes.size[n]]
            able.sort(key=lambda n: (-nodes.size[n], len(nodes.soft[n]), n))
            if sum(nodes.size[n] for n in able[:fewest]) >= request.gpus:
                return able[:fewest]
        return None

    def _racks_with_room(self, request: Request, empty: int, count: int) -> int:
        """Return the nodes of racks that could also take the block that is left over."""
        nodes, rest = self.nodes, request.gpus % self.nodes.whole
        room = 0
        for rack in nodes.racks.values():
            part_used = any(nodes.levels[f] & rack & nodes.usable for f in range(rest, nodes.whole))
            if part_used or (empty & rack).bit_count() > count:
                room |= rack
        return room

    def _empty_nodes(self, allowed: int, count: int, *, one_rack: bool) -> list[int] | None:
        """Return nodes that are empty once the fewest soft blocks are pushed out."""
        nodes = self.nodes
        best: tuple[int, list[int]] | None = None
        for rack in nodes.racks.values() if one_rack else (nodes.usable,):
            able = [n for n in bits(allowed & rack) if nodes.firm[n] == nodes.whole]
            if len(able) < count:
                continue
            able.sort(key=lambda n: (len(nodes.soft[n]), nodes.size[n] - nodes.free[n], n))
            moves = sum(len(nodes.soft[n]) for n in able[:count])
            if best is None or moves < best[0]:
                best = (moves, able[:count])
        return None if best is None else best[1]

    def _enqueue(self, request: Request, gpus: int) -> None:
        """Let the block of a job wait for its turn."""
        near = 0
        own = 0
        for node, _ in self.at[request.order]:
            own |= 1 << node
        if own:
            for rack in self.nodes.racks.values():
                if rack & own:
                    near |= rack
        within = near if own and request.span == "rack" else self.nodes.usable
        self._queue[gpus].append(Block(request, gpus, near, within))

    def _settle(self, block: Block, *, push: bool) -> None:
        """Place a block: best fit on nodes in use, else awake ones, else any, else push."""
        nodes, request, near = self.nodes, block.request, block.near
        allowed = nodes.usable & block.within & self._power_mask(request, block.gpus)
        groups = (near & nodes.busy, near & nodes.awake) if near else ()
        for group in (*groups, nodes.busy, nodes.awake, near, nodes.usable):
            node = nodes.best_fit(block.gpus, allowed & group)
            if node is not None:
                break
        else:
            found = nodes.cheapest_push(block.gpus, allowed) if push else None
            if found is None:
                self._fail(request)
                return
            node, jobs = found
            self._push_out(node, jobs)
        self._put(request, node, block.gpus)

    # -- book-keeping -------------------------------------------------------------------------

    def _put(self, request: Request, node: int, gpus: int) -> None:
        self._account(request, node, gpus)
        self.nodes.put(node, gpus)
        self.at[request.order].append((node, gpus))

    def _fail(self, request: Request) -> None:
        """Give up a job: what it has got is free again."""
        for node, gpus in self.at.pop(request.order):
            self.nodes.put(node, -gpus)
            self._account(request, node, -gpus)
        self.failed.add(request.order)

    def _account(self, request: Request, node: int, gpus: int) -> None:
        if self.power is not None:
            self.power.add(self.nodes.nodes[node], request.extra_w * gpus)

    def _power_mask(self, request: Request, gpus: int, count: int = 1) -> int:
        if self.power is None:
            return self.nodes.usable
        among = self.nodes.in_cluster(self.nodes.usable)
        return self.nodes.in_pool(self.power.allowed(among, request.extra_w * gpus, count))

    def _can_stay(self, request: Request) -> bool:
        """Tell whether a running job's GPUs, and the watts for them, are still free."""
        nodes = self.nodes
        if any(
            nodes.free[node] < gpus or not nodes.usable >> node & 1 for node, gpus in request.held
        ):
            return False
        return self.power is None or self.power.fits(
            (nodes.nodes[node], request.extra_w * gpus) for node, gpus in request.held
        )
