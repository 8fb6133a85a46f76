"""The free GPUs and host resources of all nodes, for rounds in which some rule concerns nodes.

In other rounds equal numbers of GPUs are exchangeable, and sets of nodes are enough
(`ronda.formulations.placement.packing`). Here two nodes with as many free GPUs may differ, so every
piece asks every node. As there, a job is cut into whole nodes and at most one block, smaller than a
node; a job that the largest nodes cannot hold takes the fewest nodes, largest first.

A piece goes where it leaves least: to the node with the greatest of its shares of what is free
there, of GPUs and of every resource. Nodes that leave come before nodes in use, these before idle
ones, and these before sleeping ones.
"""

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np

from ronda.formulations.node_rules.best_fit import in_racks
from ronda.formulations.node_rules.hosts import ROUNDED, JobNeeds, host_has, needs_of, resources
from ronda.formulations.node_rules.neighbours import Neighbours
from ronda.formulations.node_rules.parts import has_parts
from ronda.formulations.placement.nodes import Placement, bits_of
from ronda.formulations.placement.parts import CutGpus, Places
from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.site.nodes import closed_to
from ronda.formulations.topology import regions
from ronda.formulations.watts import extra_gpu_w
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.job import Allocation, Job, JobState, Option, Slices
from ronda.instances.round import Round

LEAVING, IN_USE, AWAKE, ASLEEP = range(4)
"""The order in which nodes are preferred: jobs that end before a node leaves go there first."""


class NodeBook:
    """What is free on the nodes of a round while jobs are placed, everything at first.

    Attributes
    ----------
    free
        The free GPUs of each node, shape (N,).
    left
        The amount of each resource of hosts that is left on each node, shape (D, N).
    pieces
        The number of pieces of jobs on each node, shape (N,).
    usable
        Whether each node may be used, (N,).
    cut
        The jobs on parts and fractions of GPUs; None if no job may have any. Such a GPU is not
        free, and a GPU that is cut for good never is.
    """

    def __init__(self, round: Round) -> None:
        topology = round.cluster.topology
        self.round, self.names = round, resources(round.cluster)
        self.size, self.pool, self.rack = topology.node_gpus, topology.node_pool, topology.node_rack
        has = host_has(round.cluster)
        self.free, self.left = self.size.copy(), has + ROUNDED * np.abs(has)
        self.pieces = np.zeros(len(self.size), dtype=np.int64)
        self._needs: dict[str, JobNeeds] = {}  # shared by copies
        self.neighbours = Neighbours.of(round)
        self.usable: Mask = self.size > 0
        self.cut = CutGpus(round) if has_parts(round) else None
        if self.cut is not None:
            self.free[self.cut.fixed] = 0
        self._rank = np.full(len(self.size), AWAKE)
        self._rank[[node for node, _ in round.leaving]] = LEAVING
        self._rank[list(round.asleep)] = ASLEEP

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.free, twin.left = self.free.copy(), self.left.copy()
        twin.pieces = self.pieces.copy()
        twin.neighbours = self.neighbours and self.neighbours.copy()
        twin.cut = None if self.cut is None else self.cut.copy()
        return twin

    def take(self, state: JobState, given: Allocation, sign: int = 1) -> Placement:
        """Take what a job holds on its nodes, whether or not it is free; return its GPUs.

        A job that joins others on a GPU takes none.
        """
        needed, taken = self.needs(state).on(given.placement), given.placement
        if self.cut is not None and given.option.share is not None:
            job, cut = state.job.id, self.cut
            new = cut.add(job, given) if sign > 0 else cut.remove(job)
            taken = tuple((node, int(new)) for node, _ in taken)
        for k, (node, gpus) in enumerate(taken):
            self.free[node] -= sign * gpus
            self.left[:, node] -= sign * needed[:, k]
            self.pieces[node] += sign
        if self.neighbours is not None:
            self.neighbours.take(state.job, given.placement, sign)
        return taken

    def give(self, state: JobState, given: Allocation) -> None:
        """Give back what a job holds on its nodes."""
        self.take(state, given, -1)

    def hide(self, placement: Iterable[tuple[int, int]], sign: int = 1) -> None:
        """Take GPUs that are promised to others (negative: free them again)."""
        for node, gpus in placement:
            self.free[node] -= sign * gpus

    def holds(self, state: JobState, given: Allocation) -> bool:
        """Return whether what a job holds on its nodes is free."""
        nodes = [node for node, _ in given.placement]
        gpus = np.array([gpus for _, gpus in given.placement])
        needed = self.needs(state).on(given.placement)
        enough = (self.free[nodes] >= gpus) & self.usable[nodes]
        if self.neighbours is not None and not self.neighbours.welcome(state.job, given.placement):
            return False
        if self.cut is not None and given.parts:
            joins = self.cut.joins(given) or enough.all()
            enough = self.usable[nodes] & (joins and self.cut.allows(state.job.id, given))
        return bool(enough.all() and ((needed <= self.left[:, nodes]) | (needed <= 0)).all())

    def needs(self, state: JobState) -> JobNeeds:
        """Return what a job needs of the resources of hosts."""
        found = self._needs.get(state.job.id)
        if found is None:
            found = self._needs[state.job.id] = needs_of(state.job, self.names)
        return found

    def fit(
        self,
        state: JobState,
        option: Option,
        *,
        power: RackPower | None = None,
        among: Mask | None = None,
        rack: int = -1,
    ) -> Placement | None:
        """Return the nodes of a job with an option, which are not taken, or None without room.

        Parameters
        ----------
        power
            The watts that the caps of racks leave.
        among
            The nodes (N,) that the job may have; None for all.
        rack
            The rack that a job of span "rack" prefers; -1 for any.
        """
        able = self.open_to(state, option)
        if among is not None:
            able &= among
        if option.share is not None:
            return self._part(state, option, able, power)
        sizes = np.sort(self.size[self.usable & (self.pool == option.pool)])[::-1]
        if not len(sizes) or (option.span == "node" and option.gpus > sizes[0]):
            return None
        piece, needs = min(option.gpus, int(sizes[0])), self.needs(state)
        able = self._bearing(able, option, piece, power)
        slices = state.job.slices
        wide = slices is None and option.gpus > piece
        places = self._regions(able, option, rack) if wide else (able,)
        for place in self._together(state.job, able) or places:
            if slices is not None:
                found = self._sliced(place, slices, option, int(sizes[0]), needs)
            else:
                found = self._within(place, option.gpus, sizes, needs)
            if found is not None and (power is None or power.bears(option, found)):
                return found
        return None

    def open_to(self, state: JobState, option: Option) -> Mask:
        """Return the nodes (N,) of the option's pool that are open to a job."""
        able: Mask = self.usable & (self.pool == option.pool)
        closed = closed_to(self.round, state, option)
        if self.neighbours is not None:
            able &= self.neighbours.open_to(state.job)
        return able if closed is None else able & ~closed

    def room_for(self, gpus: int, needed: Floats, among: Mask) -> Mask:
        """Return the nodes (N,) of `among` with GPUs and resources (D,) for one more piece."""
        able: Mask = among & (self.free >= gpus)
        for amount, left in zip(needed.tolist(), self.left, strict=True):
            if amount > 0:
                able &= left >= amount
        return able

    def parts(self, job: str) -> Places:
        """Return the part of a GPU that a placed job has; none for a job on whole GPUs."""
        return () if self.cut is None else self.cut.parts(job)

    def named(self, state: JobState, given: Allocation) -> Allocation:
        """Return an allocation with the part of a GPU that its job would get on its node."""
        return given if self.cut is None else self.cut.named(state.job.id, given)

    def memory(self, option: Option) -> float:
        """Return the share of the memory slices of a GPU that an option's part takes, else 0."""
        gpu_type = self.round.cluster.topology.pools[option.pool].gpu_type
        ways, profile = gpu_type.ways, gpu_type.profile(option.part)
        return profile.memory / ways.memory if ways is not None and profile is not None else 0.0

    def _part(
        self, state: JobState, option: Option, able: Mask, power: RackPower | None
    ) -> Placement | None:
        """Return the node of a job on a part of a GPU: of one in use, else of another, or None."""
        needs = self.needs(state)
        needed = needs.piece(1) + needs.flat
        able = self.room_for(0, needed, self._bearing(able, option, 1, power))
        for nodes in (able & (self._rank != ASLEEP), able):
            gpu = self.cut and self.cut.best(state.job.id, np.flatnonzero(nodes).tolist(), option)
            found = ((gpu[0], 1),) if gpu else self._block(nodes, 1, needed)
            if found is not None:
                return found if power is None or power.bears(option, found) else None
        return None

    # -- the nodes of a job -------------------------------------------------------------------

    def _regions(self, able: Mask, option: Option, rack: int) -> Iterator[Mask]:
        """Yield sets of nodes (N,), one of which must hold a whole job: racks, then all nodes.

        The preferred rack comes first, and then racks with few free GPUs.
        """
        racks = np.unique(self.rack[able])
        if len(racks) > 1:
            free = np.bincount(self.rack[able], self.free[able])
            asleep = np.bincount(self.rack[able], self._rank[able] == ASLEEP)
            key = [(r != rack, asleep[r] > 0, free[r], r) for r in racks.tolist()]
            for *_, gpus, r in sorted(key):
                if gpus >= option.gpus:
                    yield able & (self.rack == r)
        if option.span != "rack" or len(racks) == 1:
            yield able

    def _together(self, job: Job, able: Mask) -> list[Mask]:
        """Return the regions (N,) that a job shares with neighbours, most free GPUs first."""
        wholes = [] if self.neighbours is None else self.neighbours.wholes(job)
        if not wholes:
            return []
        keys = np.stack([own[able] for own in wholes], axis=1)
        ways, which = np.unique(keys, axis=0, return_inverse=True)
        free = np.bincount(which.ravel(), self.free[able], minlength=len(ways))
        order = np.argsort(-free, kind="stable").tolist()
        return [able & np.all(np.stack(wholes, axis=1) == ways[k], axis=1) for k in order]

    def _sliced(
        self, able: Mask, slices: Slices, option: Option, size: int, needs: JobNeeds
    ) -> Placement | None:
        """Return the whole nodes of a job in slices, or None without room."""
        racks, empty = regions(self.round.cluster, slices.within), needs.piece(size)
        able = self.room_for(size, empty, able & (self.size == size) & (self.pieces == 0))
        able &= racks >= 0
        wide = None
        if slices.together is not None:
            wide = regions(self.round.cluster, slices.together)
        elif option.span == "rack":
            wide = self.rack
        places = [able]
        if wide is not None:
            many = sorted((np.count_nonzero(able & (wide == r)), r) for r in set(wide[able]) - {-1})
            places = [able & (wide == r) for _, r in many]
        for place in places:
            nodes = np.flatnonzero(place)
            names, which = np.unique(racks[nodes], return_inverse=True)
            free = np.bincount(which, minlength=len(names)).tolist()
            taken = in_racks(slices, option.gpus // size, free)
            if taken is None:
                continue
            nodes = nodes[np.lexsort((nodes, self._dear(nodes, size, empty)))]
            chosen = list[int]()
            for r, most in zip(names, taken, strict=True):
                chosen += nodes[racks[nodes] == r][:most].tolist()
            first = self.room_for(size, empty + needs.flat, place)
            chosen.sort(key=lambda n: (not first[n], n))
            if first[chosen[0]]:
                return tuple((n, size) for n in chosen)
        return None

    def _within(self, able: Mask, gpus: int, sizes: Rows, needs: JobNeeds) -> Placement | None:
        """Return the nodes of a job among the nodes `able` (N,), or None without room.

        `sizes` are the GPUs of all usable nodes of the pool, descending.
        """
        size = int(sizes[0])
        count, rest = divmod(gpus, size)
        if len(sizes) < count + (rest > 0) or not (
            (count == 0 or sizes[count - 1] == size) and (rest == 0 or sizes[count] >= rest)
        ):
            return self._mixed(able, gpus, sizes, needs)
        if not count:
            return self._block(able, gpus, needs.piece(gpus) + needs.flat)
        whole = self._whole(able, size, count, rest, needs)
        if whole is None or not rest:
            return whole
        left = able.copy()
        left[[node for node, _ in whole]] = False
        near = left & np.isin(self.rack, self.rack[[node for node, _ in whole]])
        needed = needs.piece(rest) + needs.flat
        block = self._block(near, rest, needed) or self._block(left, rest, needed)
        return None if block is None else tuple(sorted(whole + block))

    def _block(self, able: Mask, gpus: int, needed: Floats) -> Placement | None:
        """Return the node where a piece leaves least, or None without room."""
        nodes = np.flatnonzero(self.room_for(gpus, needed, able))
        if not len(nodes):
            return None
        return ((int(nodes[self._dear(nodes, gpus, needed).argmin()]), gpus),)

    def _whole(
        self, able: Mask, size: int, count: int, rest: int, needs: JobNeeds
    ) -> Placement | None:
        """Return free nodes of `size` GPUs in few racks; the first has what the job needs once."""
        needed = needs.piece(size)
        empty = able & (self.size == size) & (self.pieces == 0)
        nodes = np.flatnonzero(self.room_for(size, needed, empty))
        if len(nodes) < count:
            return None
        nodes = nodes[np.lexsort((nodes, self._dear(nodes, size, needed)))]
        racks = self.rack[nodes]
        first: Rows = nodes[:0]
        if not rest and needs.flat.any():
            roomy = self.room_for(size, needed + needs.flat, empty)[nodes]
            if not roomy.any():
                return None
            first = nodes[roomy][:1]
            racks, nodes = racks[nodes != first], nodes[nodes != first]
        supply = np.bincount(racks, minlength=int(self.rack.max()) + 1)
        chosen, left = first.tolist(), count - len(first)
        while left:
            enough = np.flatnonzero(supply >= left)
            r = int(enough[supply[enough].argmin()] if len(enough) else supply.argmax())
            some = nodes[racks == r][:left].tolist()
            chosen += some
            left -= len(some)
            supply[r] = 0
        once = len(first)
        return tuple((node, size) for node in chosen[:once] + sorted(chosen[once:]))

    def _mixed(self, able: Mask, gpus: int, sizes: Rows, needs: JobNeeds) -> Placement | None:
        """Return the fewest empty nodes, largest first, of a job that the largest cannot hold."""
        fewest = 1 + int(np.searchsorted(np.cumsum(sizes), gpus))
        empty = np.flatnonzero(able & (self.pieces == 0))
        placement, left = list[tuple[int, int]](), gpus
        for node in empty[np.lexsort((empty, -self.size[empty]))].tolist():
            piece = min(left, int(self.size[node]))
            if (needs.piece(piece) <= self.left[:, node]).all():
                placement.append((node, piece))
                left -= piece
            if not left or len(placement) == fewest:
                break
        found = tuple(sorted(placement))
        if left or (needs.on(found) > self.left[:, [node for node, _ in found]]).any():
            return None
        return found

    def _dear(self, nodes: Rows, gpus: int, needed: Floats) -> Floats:
        """Return a key (n,) of nodes with room for a piece, least for the best one."""
        share = gpus / self.free[nodes]
        for amount, left in zip(needed.tolist(), self.left, strict=True):
            if amount > 0:
                share = np.maximum(share, amount / left[nodes])
        used = (self.pieces[nodes] > 0) & (self._rank[nodes] != LEAVING)
        return np.asarray(2.0 * np.where(used, IN_USE, self._rank[nodes]) - share)

    # -- watts --------------------------------------------------------------------------------

    def _bearing(self, able: Mask, option: Option, gpus: int, power: RackPower | None) -> Mask:
        """Return the nodes of `able` (N,) whose racks bear a piece of a job."""
        if power is None:
            return able
        nodes = np.flatnonzero(able).tolist()
        watts = extra_gpu_w(self.round, option) * gpus
        allowed = power.allowed(bits_of(nodes), watts, -(-option.gpus // gpus))
        found = np.zeros_like(able)
        found[[node for node in nodes if allowed >> node & 1]] = True
        return found
