"""A flow model of room, in which the free GPUs of equal nodes are cut into pieces for jobs.

A node with f free GPUs may give s of them to a piece and has f - s left. For powers of two, this is
the tree of the buddy allocator, which splits a block of 2^l into two of 2^(l-1). The flow is valid
for all sizes (the arc-flow model of J. M. Valério de Carvalho, Annals of OR 86, 1999). The model
has ``groups`` of equal nodes. ``left[c, f]`` is the number of nodes of group c with f free GPUs
before any cut, and ``mixed[i, c]`` is the number of empty nodes that way i takes uncut.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from ronda.formulations.positions.variables import Group


def add_cuts(
    model: Any,
    groups: Sequence[Group],
    wanted: Mapping[int, Collection[int]],
    most: Sequence[int],
) -> None:
    """Add ``cut[c, f, s]``, the number of nodes of group c with f free GPUs that give s to a piece.

    Parameters
    ----------
    wanted
        The GPUs of the pieces in each pool. ``sizes`` of the model are the pieces of each group.
    most
        The GPUs of each pool's largest node; a piece of that size takes a whole node.
    """
    model.groups = tuple(groups)
    model.sizes = [sorted(s for s in wanted.get(g.pool, ()) if s <= g.size) for g in groups]
    cuts = [
        (c, free, s)
        for c, group in enumerate(groups)
        for free in range(group.size, 0, -1)
        for s in model.sizes[c]
        if s <= free and (s < most[group.pool] or free == group.size)
    ]
    model.cut = pyo.Var(cuts, domain=pyo.NonNegativeIntegers)
    for c, free, s in cuts:
        model.cut[c, free, s].setub(len(groups[c].nodes))


def room(model: Any) -> None:
    """Add Σ_s cut_cfs ≤ left_cf + Σ_s cut_c(f+s)s, less Σ_i mixed_ic if f is the whole node."""
    taken = defaultdict(list)
    for i, c in model.mixed:
        taken[c].append(model.mixed[i, c])

    def rule(m: Any, c: int, free: int) -> Any:
        group, cuts = m.groups[c], m.cut
        out = [cuts[c, free, s] for s in m.sizes[c] if (c, free, s) in cuts]
        into = [cuts[c, free + s, s] for s in m.sizes[c] if (c, free + s, s) in cuts]
        if free == group.size:
            out += taken[c]
        return sum(out) <= m.left[c, free] + sum(into) if out else pyo.Constraint.Skip

    model.room = pyo.Constraint(list(model.left), rule=rule)


def at_least(model: Any, name: str, needs: Mapping[Any, list[Any]]) -> None:
    """Add a family of rows so that the cuts of each size in a pool, or its rack, meet the `needs`.

    `needs` maps (pool, GPUs), or (pool, GPUs, rack), to terms whose sum is required.
    """
    cuts: defaultdict[Any, list[Any]] = defaultdict(list)
    for (c, _, s), cut in model.cut.items():
        group = model.groups[c]
        cuts[group.pool, s].append(cut)
        cuts[group.pool, s, group.rack].append(cut)
    family = pyo.Constraint(list(needs), rule=lambda m, *key: sum(cuts[key]) >= sum(needs[key]))
    model.add_component(name, family)


def in_use(model: Any, c: int) -> Any:
    """Return the number of nodes of group c in use, as an expression."""
    group = model.groups[c]
    full = [v for (d, f, _), v in model.cut.items() if d == c and f == group.size]
    full += [v for (_, d), v in model.mixed.items() if d == c]
    return len(group.nodes) - model.left[c, group.size] + sum(full)


def pieces_cut(model: Any, c: int, free: Mapping[int, list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the pieces (GPUs, node) that a solved model cuts from group c.

    `free` maps numbers of free GPUs to nodes of the group, and is updated.
    """
    for level in range(model.groups[c].size, 0, -1):
        for s in model.sizes[c]:
            for _ in range(whole_number(model.cut, (c, level, s))):
                node = free[level].pop(0)
                free[level - s].append(node)
                yield s, node


def whole_number(variable: Any, index: Any) -> int:
    """Return the value of an integer variable in a solved model, 0 if the index is missing."""
    return round(variable[index].value or 0.0) if index in variable else 0
