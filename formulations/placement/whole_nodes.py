"""Which nodes a job takes completely: empty ones, or those that are emptied most easily."""

from collections.abc import Iterable, Mapping
from itertools import islice

from ronda.formulations.bit_sets import bits
from ronda.formulations.placement.nodes import PoolNodes, PoolRequest


def nodes_to_fill(
    nodes: PoolNodes, request: PoolRequest, count: int, allowed: int, *, push: bool
) -> list[int] | None:
    """Return `count` of the largest nodes for a job, in the rack it would like if that has room."""
    wished = nodes.racks.get(request.rack, 0)
    chosen = _among(nodes, request, count, allowed & wished, push=push) if wished else None
    return chosen if chosen is not None else _among(nodes, request, count, allowed, push=push)


def mixed_nodes(
    nodes: PoolNodes, request: PoolRequest, fewest: int, allowed: int, *, push: bool
) -> list[int] | None:
    """Return `fewest` empty nodes, largest first, for a job that the largest cannot hold.

    None unless they suffice: on as few as the pool allows the job's rate relies.
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
    """Return nodes to take completely: empty and awake, else empty, else soon emptied."""
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
    """Return the nodes of racks that could also take the block that is left over."""
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
    """Return `count` of the largest nodes in one group, empty once the fewest blocks go, or None.

    Nodes with fewer soft blocks come first, then those with fewer GPUs in use, then the lowest.
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

    As sets by size, number of soft blocks and GPUs that these use.
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
    """Return up to `count` nodes of a set, from the first sets in order."""
    chosen: list[int] = []
    for mask in ordered:
        chosen += islice(bits(mask & among), count - len(chosen))
        if len(chosen) == count:
            break
    return chosen
