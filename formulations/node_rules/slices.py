"""Rows for slices of nodes, each within one rack, by the levels of a buddy allocator.

A rack with N free nodes holds at most ⌊N/u⌋ blocks of u nodes, and a slice of s nodes takes ⌊s/u⌋
of them. For powers of two the rows are exact; for other sizes they are necessary.
"""

from collections import Counter

import numpy as np

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import RACK, OptionTable
from ronda.formulations.topology import regions
from ronda.instances.base import Floats, Rows
from ronda.instances.job import Slices
from ronda.instances.round import Round


def slice_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State Σ_k m_k w(s_k) x_k ≤ Σ_R W(N_R) for each level of racks and size u of its slices.

    Option k takes m_k slices of s_k nodes. An option within one rack is one slice of its whole
    nodes; others count with their whole nodes at u = 1. N_R are the nodes of the pool in rack R in
    service, without those that jobs which must run touch. W(N) is the most that any slices of the
    sizes at hand weigh in N nodes. In the rows ``slices[pool,level,u]`` a slice weighs ⌊s/u⌋, so
    that W(N) ≤ ⌊N/u⌋; in ``slice_nodes[pool,level,u]`` it weighs s if s ≥ u, else 0.
    """
    asked = {s.job.slices for s in table.jobs if s.job.slices is not None}
    levels = sorted({s.within for s in asked} | {s.together for s in asked if s.together})
    at = {level: regions(round.cluster, level) for level in levels}
    for p, pool in enumerate(table.pools) if asked else ():
        rows = np.flatnonzero((table.pool == p) & ~table.must_run[table.job])
        for level in levels:
            found = _Slices(round, table, rows, p, at, level)
            for u in found.sizes:
                sizes = np.arange(found.largest + 1)
                weights = {"slices": sizes // u, "slice_nodes": np.where(sizes >= u, sizes, 0)}
                for family, weight in weights.items():
                    if family == "slices" or u > 1:
                        use, most = found.weighed(weight, u == 1)
                        name = f"{family}[{pool.name},{level},{u}]"
                        if use.any():
                            sheet.state(name, rows, use, most)


class _Slices:
    """The slices of options in one pool, at one level of racks."""

    def __init__(
        self,
        round: Round,
        table: OptionTable,
        rows: Rows,
        pool: int,
        at: dict[str, Rows],
        level: str,
    ) -> None:
        here, whole = at[level], table.pools[pool].gpus_per_node
        wider = {name for name, racks in at.items() if _holds(here, racks)}
        self._one, self._alone = _in_one(round, table, rows, here)
        self._sliced = {
            i: _blocks(slices, int(table.gpus[k]) // whole, wider)
            for i, k in enumerate(rows.tolist())
            if (slices := table.jobs[table.job.item(k)].job.slices) is not None and not self._one[i]
        }
        self._stay = _staying(round, table, rows, here)
        self._room = _room(round, table, pool, here)
        sizes = {size for blocks in self._sliced.values() for size in blocks}
        sizes |= {int(n) for n in np.unique(self._one)} | {1}
        self.sizes = sorted(sizes - {0})
        self.largest = max(
            [self.sizes[-1], *self._room, *(n for c in self._stay.values() for n in c)]
        )

    def weighed(self, weight: Rows, alone: bool) -> tuple[Floats, float]:
        """Return the weight of each option (n,), and the most that racks hold.

        `weight` are those of slices of 0, 1, 2, … nodes; nodes of jobs without slices weigh 1 if
        they count `alone`.
        """
        single = alone or 1 in {size for blocks in self._sliced.values() for size in blocks}
        most = _most(weight.tolist(), [s for s in self.sizes if s > 1 or single])
        use = weight[self._one.astype(int)] + (self._alone if alone else 0.0)
        for i, blocks in self._sliced.items():
            use[i] = sum(many * weight[size] for size, many in blocks.items())
        for i, counts in self._stay.items():
            use[i] = min(use[i], sum(most[n] for n in counts))
        return use, float(sum(most[n] for n in self._room))


def _most(weight: list[int], sizes: list[int]) -> list[int]:
    """Return the most that slices of the given sizes weigh in 0, 1, 2, … nodes."""
    found = [0] * len(weight)
    for n in range(1, len(weight)):
        found[n] = max([found[n - 1], *(found[n - s] + weight[s] for s in sizes if s <= n)])
    return found


def _blocks(slices: Slices, nodes: int, wider: set[str]) -> Counter[int]:
    """Return the numbers of slices by size; `wider` are levels whose racks lie within one here."""
    if slices.together in wider:
        return Counter({nodes: 1})
    if slices.within not in wider or slices.balanced:
        return Counter({1: nodes})
    sizes = slices.listed or [slices.nodes or 1] * (nodes // (slices.nodes or 1))
    return Counter(sizes)


def _in_one(round: Round, table: OptionTable, rows: Rows, at: Rows) -> tuple[Floats, Floats]:
    """Return the whole nodes (n,) of options within one rack, and those of all others.

    Where nodes are unequal, an option may be on others than whole nodes, and counts 0.
    """
    topology = round.cluster.topology
    up = topology.node_gpus > 0
    size = np.array([pool.gpus_per_node for pool in table.pools])
    uneven = set(topology.node_pool[up & (topology.node_gpus < size[topology.node_pool])].tolist())
    whole = table.gpus[rows] // size[table.pool[rows]] / table.width[rows]
    whole[[p in uneven for p in table.pool[rows].tolist()]] = 0.0
    leaf = _holds(at, topology.node_rack)
    within = (table.span[rows] == RACK) & leaf
    return np.where(within, whole, 0.0), np.where(within, 0.0, whole)


def _staying(round: Round, table: OptionTable, rows: Rows, at: Rows) -> dict[int, list[int]]:
    """Return the whole nodes by rack of each option that may go on as it runs, by its index."""
    size: list[int] = round.cluster.topology.node_gpus.tolist()
    found = {}
    for i in np.flatnonzero(table.current[rows]).tolist():
        held = table.jobs[table.job.item(rows[i])].allocation
        assert held is not None
        found[i] = _by_rack(at[[n for n, gpus in held.placement if gpus == size[n]]])
    return found


def _room(round: Round, table: OptionTable, pool: int, at: Rows) -> list[int]:
    """Return the numbers of whole nodes of a pool by rack, without those of jobs that must run."""
    topology = round.cluster.topology
    free = topology.node_pool == pool
    free &= topology.node_gpus == table.pools[pool].gpus_per_node
    for j in np.flatnonzero(table.must_run).tolist():
        held = table.jobs[j].allocation
        free[[n for n, _ in held.placement] if held is not None else []] = False
    return _by_rack(at[free])


def _by_rack(at: Rows) -> list[int]:
    """Return how often each rack occurs; a node outside all racks is one of its own."""
    outside = int(np.count_nonzero(at < 0))
    return [*Counter(at[at >= 0].tolist()).values(), *[1] * outside]


def _holds(outer: Rows, inner: Rows) -> bool:
    """Return whether nodes in one inner region are in one outer region, too."""
    inside = inner >= 0
    pairs = set(zip(inner[inside].tolist(), outer[inside].tolist(), strict=True))
    return len(pairs) == len({r for r, _ in pairs}) and all(r >= 0 for _, r in pairs)
