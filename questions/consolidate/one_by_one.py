"""A heuristic that empties one node after another: a fast answer if time ends the search."""

from collections import defaultdict

from ronda.formulations.placement.nodes import lowest_bit
from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.watts import capped, extra_gpu_w
from ronda.instances.clock import watched
from ronda.questions.consolidate.holdings import Mover, Occupancy, Placement


def one_by_one(
    found: Occupancy, *, moves: int | None = None, lost_gpu_s: float | None = None
) -> dict[str, Placement]:
    """Return new placements of jobs, emptying first the nodes that save most per move.

    The jobs of a node move, the widest first, to the nodes where they leave the fewest GPUs free. A
    node stays as it is if it cannot be emptied within the limits or has received a job.
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
    for node in watched(sorted(able, key=lambda n: (len(going[n]) / worth[n], rest.held(n)))):
        lost_s = sum(mover.lost_gpu_s for mover in going[node])
        if node in rest.filled or len(going[node]) > left_moves or lost_s > left_s:
            continue
        if to := rest.emptied(node, going[node]):
            at |= {m.job: ((n, m.kind[1]),) for m, n in zip(going[node], to, strict=True)}
            left_moves, left_s = left_moves - len(to), left_s - lost_s
    return at


class _Rest:
    """The nodes in use, as bit sets keyed by pool and number of free GPUs."""

    def __init__(self, found: Occupancy) -> None:
        self._found, self._free = found, dict[int, int]()
        self._sets: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.filled = set[int]()
        topology = found.round.cluster.topology
        self._size: list[int] = topology.node_gpus.tolist()
        self._pool: list[int] = topology.node_pool.tolist()
        self._power: RackPower | None = None
        if capped(found.round.cluster):
            self._power = RackPower(found.round, found.round.asleep)
        for held in found.round.held.values():
            for node, gpus in held.placement:
                self._free[node] = self._free.get(node, self._size[node]) - gpus
                self._draw(node, gpus, extra_gpu_w(found.round, held.option))
        for node in self._free:
            self._turn(node)

    def held(self, node: int) -> int:
        return self._size[node] - self._free[node]

    def jobs(self, node: int) -> list[Mover]:
        """Return the jobs on a node, the widest first."""
        alike = self._found.blocks[node].values()
        return sorted((m for own in alike for m in own), key=lambda m: -m.kind[1])

    def emptied(self, node: int, going: list[Mover]) -> list[int]:
        """Move all jobs of a node and return their new nodes; empty if one job finds no room."""
        self._turn(node)
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
        self._turn(node)
        return []

    def _room(self, mover: Mover) -> int | None:
        """Return the node in use with the fewest free GPUs that has room for a job, if any."""
        pool, gpus, each_w = mover.kind
        for free in range(gpus, max(self._size) + 1):
            nodes = self._sets.get((pool, free), 0)
            if nodes and self._power is not None:
                nodes = self._power.allowed(nodes, gpus * each_w)
            if nodes:
                return lowest_bit(nodes)
        return None

    def _put(self, node: int, mover: Mover, times: int) -> None:
        self._turn(node)
        self._free[node] -= times * mover.kind[1]
        self._draw(node, times * mover.kind[1], mover.kind[2])
        self._turn(node)

    def _draw(self, node: int, gpus: int, each_w: float) -> None:
        if self._power is not None:
            self._power.add(node, gpus * each_w)

    def _turn(self, node: int) -> None:
        self._sets[self._pool[node], self._free[node]] ^= 1 << node
