"""Rows for ways on single nodes by where these are: nodes of one's own, slices, neighbourhoods.

A *region* is a node, or a rack of some level. Jobs that both stay break no rule together, as what
runs may go on; so rows are about ways that are fresh, and about pairs with one of these.

=================  ============================================================================
variable           meaning
=================  ============================================================================
``slices_in``      the number of slices of s nodes that way i has in region r, for (i, r, s)
``least[i]``       the least number of nodes of balanced way i in any region that it uses
``is_in[i,r,k]``   1 if way i has nodes in region r, for its k-th rule
``meets[k,r]``     1 if all fresh ways of neighbourhood k, or all slices of way k, are in region r
=================  ============================================================================
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from ronda.formulations import topology
from ronda.instances.cluster import Cluster
from ronda.instances.job import Job, Slices

Region = Hashable

On = Mapping[int, Mapping[int, Any]]
"""The pieces of ways, by way and node."""


def add_regions(model: Any) -> None:
    """Add the rows of all jobs that have nodes of their own, slices or neighbours."""
    found = model.ways
    jobs: dict[int, Job] = {
        i: found.case.table.jobs[j].job for i, j in enumerate(found.case.job.tolist())
    }
    fresh, held = defaultdict[int, dict[int, Any]](dict), defaultdict[int, dict[int, Any]](dict)
    for piece in model.on:
        if piece.gpus > 0:
            side = held if found.stay[piece.way] else fresh
            there = side[piece.way]
            there[piece.node] = there.get(piece.node, 0) + piece.variable  # whole, or a block
    model.regions = pyo.ConstraintList()
    model.slices_in = pyo.Var(pyo.Any, domain=pyo.NonNegativeIntegers, dense=False)
    model.least = pyo.Var(pyo.Any, domain=pyo.NonNegativeIntegers, dense=False)
    model.is_in = pyo.Var(pyo.Any, domain=pyo.Binary, dense=False)
    model.meets = pyo.Var(pyo.Any, domain=pyo.Binary, dense=False)
    for i, job in jobs.items():
        if not found.stay[i] and (job.exclusive or job.slices is not None):
            whole_nodes_alone(model, i)
            if job.slices is not None:
                in_slices(model, i, job.slices, fresh[i])
    nodes_of_its_own(model, jobs, fresh, held)
    for rule in found.case.round.site.neighbourhoods:
        own = [i for i, job in jobs.items() if rule.name in job.neighbourhoods]
        region = regions(found.case.round.cluster, rule.within)
        sides = [{i: side[i] for i in own if i in side} for side in (fresh, held)]
        (apart if rule.rule == "apart" else together)(model, rule.name, region, *sides)


def regions(cluster: Cluster, within: str) -> list[Region | None]:
    """Return the region of each node: itself, its innermost rack of a level, or None."""
    found: list[int] = topology.regions(cluster, within).tolist()
    return [None if r < 0 else r for r in found]


def whole_nodes_alone(model: Any, i: int) -> None:
    """Add x_i = 0 if way i would hold only some of the GPUs of a node."""
    found = model.ways
    if found.rest[i] or found.mixed[i]:
        model.regions.add(model.x[i] <= 0)


def in_slices(model: Any, i: int, slices: Slices, on: Mapping[int, Any]) -> None:
    """Add Σ_{n in r} whole_in = Σ_s s slices_irs, where slices are as many as the way has.

    If they spread, at most one is in each region. The nodes of a balanced way in regions that it
    uses differ by one at most. All of it may have to be in one region more.
    """
    cluster = model.ways.case.round.cluster
    there, nodes = _by_region(regions(cluster, slices.within), on), int(model.ways.whole[i])
    if None in there:
        model.regions.add(sum(there.pop(None)) <= 0)
    if slices.balanced:
        least = model.least[i]
        for r, pieces in there.items():
            used = model.is_in[i, r, "balanced"]
            model.regions.add(sum(pieces) <= least + 1)
            model.regions.add(sum(pieces) >= least - nodes * (1 - used))
            model.regions.add(sum(pieces) <= nodes * used)
            model.regions.add(sum(pieces) >= used)
    else:
        sizes = Counter(slices.listed or [slices.nodes or 1] * (nodes // (slices.nodes or 1)))
        for r, pieces in there.items():
            model.regions.add(sum(pieces) == sum(s * model.slices_in[i, r, s] for s in sizes))
            if slices.spread:
                model.regions.add(sum(model.slices_in[i, r, s] for s in sizes) <= 1)
        for s, many in sizes.items():
            model.regions.add(sum(model.slices_in[i, r, s] for r in there) == many * model.x[i])
    if slices.together is not None:
        wide = _by_region(regions(cluster, slices.together), on)
        _within_one(model, i, i, wide)
        model.regions.add(sum(model.meets[i, r] for r in wide if r is not None) <= 1)


def nodes_of_its_own(model: Any, jobs: Mapping[int, Job], fresh: On, held: On) -> None:
    """Add piece_in + x_k ≤ 1 if way i is fresh, way k stays on node n, and one has n to itself."""
    at = defaultdict[int, list[int]](list)
    for k, nodes in held.items():
        for n in nodes:
            at[n].append(k)
    for i, pieces in fresh.items():
        for n, piece in pieces.items():
            for k in at[n]:
                alone = jobs[i].exclusive or jobs[k].exclusive
                if alone and jobs[i].id != jobs[k].id:
                    model.regions.add(piece + model.x[k] <= 1)


def apart(model: Any, name: str, region: Sequence[Region | None], fresh: On, held: On) -> None:
    """Add Σ_i is_in_ir + x_k ≤ 1 for all fresh ways i, and each way k that stays in region r."""
    newly, stays = defaultdict(list), defaultdict(list)
    for i, pieces in fresh.items():
        for r, own in _by_region(region, pieces).items():
            if r is not None:
                model.regions.add(sum(own) <= _nodes(model, i) * model.is_in[i, r, name])
                newly[r].append(model.is_in[i, r, name])
    for k, nodes in held.items():
        for r in {region[n] for n in nodes}:
            stays[r].append(model.x[k])
    for r, those in newly.items():
        for one in stays[r] or [0]:
            model.regions.add(sum(those) + one <= 1)


def together(model: Any, name: str, region: Sequence[Region | None], fresh: On, held: On) -> None:
    """Add Σ_{n in r} piece_in ≤ nodes_i meets_r for fresh ways, Σ_r meets_r + x_k ≤ 1.

    The sum has at most one region; where way k stays, only that one which holds all of it.
    """
    every = {r for pieces in fresh.values() for r in _by_region(region, pieces)} - {None}
    for i, pieces in fresh.items():
        _within_one(model, i, name, _by_region(region, pieces))
    if every:
        model.regions.add(sum(model.meets[name, r] for r in every) <= 1)
    for k, nodes in held.items():
        own = {region[n] for n in nodes}
        for r in every - (own if len(own) == 1 else set()):
            model.regions.add(model.meets[name, r] + model.x[k] <= 1)


def _nodes(model: Any, i: int) -> int:
    """Return the number of nodes of a way that is fresh."""
    return int(model.ways.whole[i]) + int(model.ways.rest[i] > 0)


def _within_one(
    model: Any, i: int, key: Hashable, there: Mapping[Region | None, list[Any]]
) -> None:
    """Add Σ_{n in r} piece_in ≤ nodes_i meets_r, and no pieces outside all regions."""
    for r, pieces in there.items():
        most = 0 if r is None else _nodes(model, i) * model.meets[key, r]
        model.regions.add(sum(pieces) <= most)


def _by_region(
    region: Sequence[Region | None], on: Mapping[int, Any]
) -> dict[Region | None, list[Any]]:
    """Return the pieces on some nodes by the region of these."""
    found = defaultdict[Region | None, list[Any]](list)
    for n, piece in on.items():
        found[region[n]].append(piece)
    return dict(found)
