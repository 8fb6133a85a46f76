"""The placement that a solved model gives, as pieces cut from nodes for jobs."""

from collections import defaultdict
from typing import Any

from ronda.formulations.placement.parts import Places
from ronda.formulations.positions.by_node import placements_by_node
from ronda.formulations.positions.cuts import pieces_cut, whole_number
from ronda.formulations.positions.model import chosen_ways
from ronda.formulations.positions.on_gpus import parts_on_gpus
from ronda.formulations.positions.variables import Ways, largest_nodes
from ronda.formulations.site.nodes import concerns_nodes

Placement = tuple[tuple[int, int], ...]


def parts_of(model: Any) -> dict[str, Places]:
    """Return the part of a GPU of each job that a solved model lets start on one."""
    return parts_on_gpus(model) if hasattr(model, "part") else {}


def placements(model: Any) -> dict[str, Placement]:
    """Return the pairs (node, GPUs) of each job that a solved model runs.

    With cuts they are ascending, and jobs tied to a rack choose first, then wider jobs, each in as
    few racks as possible.
    """
    found: Ways = model.ways
    case = found.case
    chosen = chosen_ways(model).tolist()
    if concerns_nodes(case.round):
        return placements_by_node(model, chosen)
    supply = _Supply(model, set(chosen))
    placed = {}
    for i in sorted(chosen, key=lambda i: (not found.tied[i], -int(case.gpus[i]))):
        state = case.table.jobs[int(case.job[i])]
        held = state.allocation if found.stay[i] else None
        pieces = supply.take(i) if held is None else held.placement
        placed[state.job.id] = tuple(sorted(pieces))
    return placed


class _Supply:
    """The nodes of the pieces that a solution cuts, indexed by (pool, GPUs) and rack."""

    def __init__(self, model: Any, chosen: set[int]) -> None:
        self._model = model
        self._pieces: defaultdict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)
        self._empty: list[list[int]] = []
        asleep = frozenset(model.ways.case.round.asleep)
        for c, group in enumerate(model.nodes.groups):
            free = defaultdict(list)
            for n in sorted(group.nodes, key=lambda n: (n in asleep, n)):
                kept = sum(g for i, g in model.nodes.held.get(n, ()) if i in chosen)
                free[group.size - kept].append(n)
            for s, node in pieces_cut(model, c, free):
                self._pieces[group.pool, s].setdefault(group.rack, []).append(node)
            self._empty.append(free[group.size])

    def take(self, i: int) -> list[tuple[int, int]]:
        """Return the pieces of way i, which is fresh."""
        found: Ways = self._model.ways
        if found.mixed[i]:
            return self._mixed(i)
        pool = int(found.case.pool[i])
        size, rest = largest_nodes(found.case.round.cluster.topology)[pool], int(found.rest[i])
        wholes, blocks = self._pieces[pool, size], self._pieces[pool, rest]
        taken, near = [], list[int]()
        for rack, count in self._whole_racks(i, wholes):
            taken += [(wholes[rack].pop(0), size) for _ in range(count)]
            near.append(rack)
        if rest:
            rack = self._block_rack(i, near, blocks)
            taken.append((blocks[rack].pop(0), rest))
        return taken

    def _mixed(self, i: int) -> list[tuple[int, int]]:
        """Return the pieces of mixed way i on empty nodes, all full except the smallest."""
        model, left = self._model, int(self._model.ways.case.gpus[i])
        groups = [(-g.size, c) for c, g in enumerate(model.nodes.groups)]
        taken = []
        for size, c in sorted(groups):
            for _ in range(whole_number(model.mixed, (i, c))):
                node = self._empty[c].pop(0)
                taken.append((node, min(left, -size)))
                left += size
        return [(node, gpus) for node, gpus in taken if gpus > 0]

    def _whole_racks(self, i: int, there: dict[int, list[int]]) -> list[tuple[int, int]]:
        left = int(self._model.ways.whole[i])
        if i in self._model.capped:
            racks = self._model.capped[i]
            return [(r, n) for r in racks if (n := whole_number(self._model.filled, (i, r)))]
        chosen = []
        supply = {r: len(nodes) for r, nodes in there.items() if nodes}
        if self._model.ways.tied[i]:
            supply = {r: n for r, n in supply.items() if whole_number(self._model.in_rack, (i, r))}
        while left:
            enough = [r for r, n in supply.items() if n >= left]
            best = min(enough, key=supply.__getitem__) if enough else max(supply, key=supply.get)  # type: ignore[arg-type]
            chosen.append((best, min(left, supply.pop(best))))
            left -= chosen[-1][1]
        return chosen

    def _block_rack(self, i: int, near: list[int], there: dict[int, list[int]]) -> int:
        racks = [r for r, nodes in there.items() if nodes]
        if i in self._model.capped:
            return next(r for r in racks if whole_number(self._model.block, (i, r)))
        if self._model.ways.tied[i]:
            return next(r for r in racks if whole_number(self._model.in_rack, (i, r)))
        return next((r for r in racks if r in near), racks[0])
