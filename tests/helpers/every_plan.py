"""The best plan of a tiny round by trying all: what is allowed, the checker alone says."""

from itertools import combinations

import numpy as np

import ronda
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import options
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan


def best_plan(round_, table, values, *, move_share=0.0, node_price=0.0):
    """Return the greatest worth of a plan that the checker accepts, and the plan; None without one.

    A plan is worth the `values` (K,) of its options (docs/formulations.md), less `move_share` of
    what moves lose and `node_price` for each node in use (docs/placement.md).
    """
    return _Search(round_, table, values, move_share, node_price).best()


def cuts(gpus, sizes):
    """Yield how a job is cut on nodes of some sizes (docs/placement.md): pairs (node, GPUs).

    Whole nodes, the largest and empty, and a block on one more; else the fewest nodes that hold it.
    """
    largest = max(sizes.values())
    whole, rest = divmod(gpus, largest)
    wide = [n for n, size in sizes.items() if size == largest]
    found = [
        (*((n, largest) for n in filled), *((n, rest) for n in block))
        for filled in combinations(wide, whole)
        for block in combinations([n for n in sizes if n not in filled], int(rest > 0))
        if not rest or sizes[block[0]] >= rest
    ]
    fewest = 1 if found else 0
    while not found and fewest < len(sizes):
        fewest += 1
        for chosen in combinations(sorted(sizes, key=lambda n: -sizes[n]), fewest):
            left, pieces = gpus, []
            for n in chosen:
                pieces.append((n, min(left, sizes[n])))
                left -= pieces[-1][1]
            if not left:
                found.append(tuple(pieces))
    yield from (tuple(sorted(placement)) for placement in found)


class _Search:
    """Depth first over jobs; no branch that cannot be better, or that the checker refuses.

    What is refused without the jobs to come is refused with them: they only use and draw more.
    """

    def __init__(self, round_, table, values, move_share, node_price):
        self.round, self.table, self.values = round_, table, values
        self.move_share, self.node_price = move_share, node_price
        topology = round_.cluster.topology
        self.size = dict(enumerate(topology.node_gpus.tolist()))
        self.pool, self.rack = topology.node_pool.tolist(), topology.node_rack.tolist()
        self.top, self.plan = -np.inf, None
        order = sorted(range(len(table.jobs)), key=lambda j: not table.must_run[j])
        self.jobs = [(table.jobs[j].job.id, self._ways(j)) for j in order]
        most = [own[0][0] for _, own in self.jobs]
        self.rest = [sum(most[j:]) for j in range(len(most) + 1)]

    def best(self):
        """Return the greatest worth, and the plan."""
        self._go_on(0, 0.0, dict(self.size), {})
        return None if self.plan is None else (self.top, self.plan)

    def _ways(self, j):
        """Return (worth, allocation) of all that job j may do, the best first."""
        table, state = self.table, self.table.jobs[j]
        found = [] if table.must_run[j] else [(0.0, None)]
        rows = np.arange(table.start[j], table.start[j + 1])
        for k, option in zip(rows.tolist(), options(table, rows), strict=True):
            worth = float(self.values[k])
            if table.current[k]:
                found.append((worth, state.allocation))
                lost = loss_of_moves(self.round, table, self.values, np.array([k]), {state.job.id})
                worth -= self.move_share * lost
            if table.must_run[j] or worth <= 0:
                continue
            sizes = {n: g for n, g in self.size.items() if g and self.pool[n] == option.pool}
            for placement in cuts(option.gpus, sizes):
                racks = {self.rack[n] for n, _ in placement}
                reach = len(placement) if option.span == "node" else len(racks)
                if option.span == "cluster" or reach == 1:
                    found.append((worth, Allocation(option=option, placement=placement)))
        return sorted(found, key=lambda way: -way[0])

    def _go_on(self, j, worth, free, taken):
        """Decide about the jobs from j on."""
        must = self.table.must_run.sum()
        if worth + self.rest[j] <= self.top or (j >= must and not self._accepted(free, taken)):
            return
        if j == len(self.jobs):
            worth -= self.node_price * sum(free[n] < size for n, size in self.size.items())
            if worth > self.top:
                self.top, self.plan = worth, self._accepted(free, taken)
            return
        job, ways = self.jobs[j]
        for gain, held in ways:
            pieces = dict(held.placement) if held is not None else {}
            if all(free[n] >= gpus for n, gpus in pieces.items()):
                left = {n: gpus - pieces.get(n, 0) for n, gpus in free.items()}
                self._go_on(j + 1, worth + gain, left, taken | ({job: held} if pieces else {}))

    def _accepted(self, free, taken):
        """Return the jobs as a plan that the checker accepts, with some idle nodes asleep."""
        idle = [n for n, size in self.size.items() if size and free[n] == size]
        limited = self.round.watts is not None
        limited |= any(rack.power_cap_w is not None for rack in self.round.cluster.racks)
        sets = [tuple(n for n in self.round.asleep if n in idle)]
        for count in range(len(idle), -1, -1) if limited else ():
            sets += combinations(idle, count)
        for asleep in dict.fromkeys(sets):
            plan = Plan(allocations=taken, asleep=asleep)
            if not ronda.check(self.round, plan):
                return plan
        return None
