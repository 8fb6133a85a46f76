"""The reading of a solved model of moves: which jobs move, and to which nodes."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ronda.formulations.positions.cuts import pieces_cut, whole_number
from ronda.questions.consolidate.holdings import Content, Mover, Occupancy, Placement


def placements(model: Any) -> dict[str, Placement]:
    """Return the new (node, GPUs) pairs, ascending, of each job that a solved model moves."""
    found: Occupancy = model.holdings
    singles = list[Mover]()
    free: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    flows = _flows(model)
    for t, (content, nodes) in enumerate(found.contents.items()):
        for node, kept, gone in _decided(found, content, nodes, flows[t]):
            # Nodes with jobs come first, so emptied nodes are filled before idle ones.
            there = free[content.group][found.groups[content.group].size - content.fixed - kept]
            there.insert(0 if content.stages else len(there), node)
            singles += gone
    supply: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for c, group in enumerate(found.groups):
        for gpus, node in pieces_cut(model, c, free[c]):
            supply[group.pool, gpus, group.rack].append(node)
    placed = {}
    for j, mover in enumerate(found.wide):
        if whole_number(model.gone, j):
            placed[mover.job] = _taken(mover, _wide_pieces(model, j), supply)
    racks = {kind: _racks(model, *kind) for kind in model.blocks if found.racked}
    for mover in singles:
        rack = racks[mover.kind].pop() if found.racked else -1
        placed[mover.job] = _taken(mover, [(mover.kind[1], rack)], supply)
    return placed


Flow = defaultdict[tuple[int, int], list[int]]
"""For each node at (stage, GPUs kept before it), the number of jobs that it keeps."""


def _flows(model: Any) -> defaultdict[int, Flow]:
    found: defaultdict[int, Flow] = defaultdict(lambda: defaultdict(list))
    for (t, k, used, m), arc in model.keep.items():
        found[t][k, used] += [m] * round(arc.value)
    return found


def _decided(
    found: Occupancy, content: Content, nodes: list[int], flow: Flow
) -> Iterator[tuple[int, int, list[Mover]]]:
    """Yield, for each node of a content, the GPUs that stay and the jobs on it alone that move."""
    pool = found.groups[content.group].pool
    for node in nodes:
        kept, gone = 0, list[Mover]()
        for k, stage in enumerate(content.stages):
            m = flow[k, kept].pop()
            if stage.wide < 0:
                alike = found.blocks[node][pool, stage.gpus, stage.each_w]
                gone += alike[: len(alike) - m]
            kept += m * stage.gpus
        yield node, kept, gone


def _wide_pieces(model: Any, j: int) -> list[tuple[int, int]]:
    """Return the pieces (GPUs, rack) of a wide job that moves; rack -1 means any rack."""
    pieces = model.holdings.wide[j].pieces
    if not model.holdings.racked:
        return [(gpus, -1) for gpus, n in pieces for _ in range(n)]
    racks = model.holdings.racks[model.holdings.wide[j].kind[0]]
    counts = [(s, r, whole_number(model.in_rack, (j, s, r))) for s, _ in pieces for r in racks]
    return [(s, r) for s, r, n in counts for _ in range(n)]


def _racks(model: Any, *kind: Any) -> list[int]:
    racks = model.holdings.racks[kind[0]]
    return [r for r in racks for _ in range(whole_number(model.put, (*kind, r)))]


def _taken(
    mover: Mover, pieces: list[tuple[int, int]], supply: dict[tuple[int, int, int], list[int]]
) -> Placement:
    """Take nodes for pieces (GPUs, rack) from the supply; several, where possible those it has."""
    held, taken = {node for node, _ in mover.placement}, dict[int, int]()
    for gpus, rack in pieces:
        nodes = supply[mover.kind[0], gpus, rack]
        own = [i for i, node in enumerate(nodes) if node in held] if len(held) > 1 else []
        node = nodes.pop(own[0] if own else 0)
        taken[node] = taken.get(node, 0) + gpus
    return tuple(sorted(taken.items()))
