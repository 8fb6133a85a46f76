"""A heuristic that empties one node after another: a fast answer if time ends the search."""

from contextlib import suppress

import numpy as np

from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.watts import capped, extra_gpu_w
from ronda.instances.clock import OutOfTimeError, watched
from ronda.instances.job import used_nodes
from ronda.questions.consolidate.holdings import Mover, Occupancy, Placement


def one_by_one(
    found: Occupancy, *, moves: int | None = None, lost_gpu_s: float | None = None
) -> dict[str, Placement]:
    """Return new placements of jobs, emptying first the nodes that save most per move.

    The jobs of a node move, the widest first, to the nodes where they leave least free. A node
    stays as it is if it cannot be emptied within the limits or has received a job. If the time ends
    (`ronda.instances.clock.ending`), the nodes emptied so far are the answer.
    """
    rest, left_moves = _Rest(found), float("inf") if moves is None else moves
    left_s = float("inf") if lost_gpu_s is None else lost_gpu_s
    worth = {n: found.worth[c] for c, group in enumerate(found.groups) for n in group.nodes}
    able = [
        node
        for content, nodes in found.contents.items()
        if not content.fixed and content.stages and all(s.wide < 0 for s in content.stages)
        for node in nodes
        if worth[node] > 0
    ]
    going = {node: rest.jobs(node) for node in able}
    at: dict[str, Placement] = {}
    with suppress(OutOfTimeError):
        for node in watched(sorted(able, key=lambda n: (len(going[n]) / worth[n], rest.held(n)))):
            lost_s = sum(mover.lost_gpu_s for mover in going[node])
            if node in rest.filled or len(going[node]) > left_moves or lost_s > left_s:
                continue
            if to := rest.emptied(node, going[node]):
                at |= {m.job: ((n, m.kind[1]),) for m, n in zip(going[node], to, strict=True)}
                left_moves, left_s = left_moves - len(to), left_s - lost_s
    return at


class _Rest:
    """The nodes in use that are open: what is free there, and its weighted sum ``left``.

    Resources weigh inversely to what is free of them in all; ``left`` of other nodes is infinite.
    """

    def __init__(self, found: Occupancy) -> None:
        self._found, self._free, self.filled = found, found.free.copy(), set[int]()
        topology = found.round.cluster.topology
        self._size = topology.node_gpus
        self._pools = [topology.node_pool == p for p in range(len(topology.pools))]
        self._power: RackPower | None = None
        if capped(found.round.cluster):
            self._power = RackPower(found.round, found.round.asleep)
        for held in found.round.held.values() if self._power is not None else ():
            for node, gpus in held.placement:
                self._draw(node, gpus, extra_gpu_w(found.round, held.option))
        used = np.zeros(len(self._size), dtype=bool)
        used[list(used_nodes(found.round.held.values()))] = True
        scarce = np.maximum(self._free[:, used], 0.0).sum(axis=1)
        self._weight = max(1.0, scarce[0]) / np.maximum(scarce, 1e-9)
        self._left = np.where(used & found.open, self._weight @ self._free, np.inf)

    def held(self, node: int) -> int:
        return int(self._size[node] - self._free[0, node])

    def jobs(self, node: int) -> list[Mover]:
        """Return the jobs on a node, the widest first."""
        alike = self._found.blocks[node].values()
        return sorted((m for own in alike for m in own), key=lambda m: -m.kind[1])

    def emptied(self, node: int, going: list[Mover]) -> list[int]:
        """Move all jobs of a node and return their new nodes; empty if one job finds no room."""
        before, self._left[node] = self._left[node], np.inf
        to = list[int]()
        for mover in going:
            self._draw(node, -mover.kind[1], mover.kind[2])
            target = self._room(mover)
            if target is None:
                self._draw(node, mover.kind[1], mover.kind[2])
                break
            self._put(target, mover, 1)
            to.append(target)
        if len(to) == len(going):
            self.filled.update(to)
            return to
        for mover, target in zip(going, to, strict=False):
            self._put(target, mover, -1)
            self._draw(node, mover.kind[1], mover.kind[2])
        self._left[node] = before
        return []

    def _room(self, mover: Mover) -> int | None:
        """Return the node where a job leaves least free, if it has room on any."""
        pool, gpus, each_w = mover.kind
        fits = self._pools[pool] & (self._free[0] >= gpus)
        for need, free in zip(mover.needs[0], self._free[1:], strict=True):
            if need > 0:
                fits &= free >= need
        left = np.where(fits, self._left, np.inf)
        while np.isfinite(left[node := int(left.argmin())]):
            if self._power is None or self._power.allowed(1 << node, gpus * each_w):
                return node
            left[node] = np.inf
        return None

    def _put(self, node: int, mover: Mover, times: int) -> None:
        taken = times * np.array([mover.kind[1], *mover.needs[0]])
        self._free[:, node] -= taken
        self._left[node] -= self._weight @ taken
        self._draw(node, times * mover.kind[1], mover.kind[2])

    def _draw(self, node: int, gpus: int, each_w: float) -> None:
        if self._power is not None:
            self._power.add(node, gpus * each_w)
