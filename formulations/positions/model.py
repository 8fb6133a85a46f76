"""Options and positions as one exact MILP in Pyomo, with prices for moves and fragments.

The model adds nodes to the allocation model (`ronda.formulations.allocation.pyomo_model`). A *way*
is an option that is either *fresh* (on nodes of its own choice) or *staying* on its nodes
(`ronda.formulations.positions.variables`). The nodes of a group (pool, rack, size) are
interchangeable except for the jobs that stay on them, so room is a flow
(`ronda.formulations.positions.cuts`).

=================  ============================================================================
variable           meaning
=================  ============================================================================
``x[i]``           1 if way i is chosen: option k, fresh or staying
``keep[n,j,u,t]``  1 if the j-th job that may stay on node n stays (t = 1) or goes (t = 0), where
                   earlier such jobs keep u GPUs; only where several jobs may stay
``cut[c,f,s]``     the number of nodes of group c with f free GPUs that give s of them to a piece
``in_rack[i,r]``   1 if way i, tied to one rack, is in rack r
``filled[i,r]``    the number of whole nodes of way i in rack r, and ``block[i,r]`` that of its
                   block; only where racks have power caps
``mixed[i,c]``     the number of empty nodes of group c that mixed way i takes
=================  ============================================================================

Each constraint family is one function below. Its docstring gives the constraints that it adds, and
its name is the name of the constraints in the model.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ronda.formulations.allocation.pyomo_model import build_separable
from ronda.formulations.allocation.rows import KILO, named_blocks, separable
from ronda.formulations.allocation.separable import normalise
from ronda.formulations.positions.by_node import add_nodes
from ronda.formulations.positions.cuts import add_cuts, at_least, in_use, room
from ronda.formulations.positions.variables import Group, Nodes, Ways, largest_nodes, nodes_of
from ronda.formulations.site.nodes import concerns_nodes
from ronda.instances.base import Rows


def build_positions(found: Ways, *, units_of_its_own: bool = True) -> Any:
    """Return the model of the given ways, with the data in its attributes ``ways`` and ``nodes``.

    With `units_of_its_own` the objective is in units of the largest value (``scale``) and rows are
    normalised; otherwise they are in the units of the values, GPUs, watts and joules.
    """
    case = found.case
    problem, scale = separable(case, both_limits=True), 1.0
    if units_of_its_own:
        problem, units = normalise(problem)
        scale = units.value
    with PauseGC():
        model = build_separable(
            problem,
            jobs=[state.job.id for state in case.table.jobs],
            blocks=named_blocks(case),
        )
        model.ways, model.scale = found, scale
        if concerns_nodes(case.round):
            add_nodes(model)
        else:
            _add_cuts(model)
        used = sum(model.in_use.values())
        model.value.set_value(model.value.expr - found.node_price / scale * used)
    return model


def _add_cuts(model: Any) -> None:
    """Add nodes, with the flow of their room, to a model of ways."""
    model.nodes = nodes_of(model.ways)
    _variables(model)
    for add in (stays, room, pieces, one_rack, pieces_in_rack, mixed_nodes):
        add(model)
    if model.ways.case.sleeps:
        awake_nodes(model)
    if model.ways.case.racks:
        capped_pieces(model)
        power_in_rack(model)


def chosen_ways(model: Any) -> Rows:
    """Return the indices of the ways that a solved model chooses."""
    taken = np.array([v.value or 0.0 for v in model.x.values()])
    return np.flatnonzero(taken > 0.5)


# -- constraint families --------------------------------------------------------------------------


def stays(model: Any) -> None:
    """Add Σ_u keep_{nju1} = x_j, Σ_t keep_{n1·t} = 1 and the balance at (j, u), per node n."""
    model.stays = pyo.ConstraintList()
    for arcs, into in model.paths.values():
        for i, taken in arcs.items():
            model.stays.add(sum(taken) == model.x[i])
        for come, go in into:
            model.stays.add(sum(come) == sum(go))


def pieces(model: Any) -> None:
    """Add Σ_{c in p, f} cut_cfs ≥ Σ_{fresh i in p} (q_i [s = M] + [r_i = s]) x_i."""
    needs = defaultdict(list)
    for i, pool, size, count in pieces_of(model.ways):
        needs[pool, size].append(count * model.x[i])
    at_least(model, "pieces", needs)


def one_rack(model: Any) -> None:
    """Add Σ_r in_rack_ir = x_i for every way tied to one rack."""
    racks = defaultdict(list)
    for i, r in model.in_rack:
        racks[i].append(model.in_rack[i, r])
    tied = np.flatnonzero(model.ways.tied).tolist()
    model.one_rack = pyo.Constraint(tied, rule=lambda m, i: sum(racks[i]) == m.x[i])


def pieces_in_rack(model: Any) -> None:
    """Add Σ_{c in p and r, f} cut_cfs ≥ Σ_i (q_i [s = M] + [r_i = s]) in_rack_ir."""
    needs = defaultdict(list)
    racks = _racks(model)
    for i, pool, size, count in pieces_of(model.ways):
        for r in racks[i]:
            needs[pool, size, r].append(count * model.in_rack[i, r])
    at_least(model, "pieces_in_rack", needs)


def mixed_nodes(model: Any) -> None:
    """Add Σ_c mixed_ic = q_i x_i and Σ_c size_c mixed_ic ≥ n_i x_i, in one rack for tied ways."""
    found, groups = model.ways, model.nodes.groups
    model.mixed_nodes = pyo.ConstraintList()
    own = defaultdict(list)
    for i, c in model.mixed:
        own[i].append(c)
    for i, cs in own.items():
        many = sum(model.mixed[i, c] for c in cs)
        model.mixed_nodes.add(many == int(found.whole[i]) * model.x[i])
        gpus = sum(groups[c].size * model.mixed[i, c] for c in cs)
        model.mixed_nodes.add(gpus >= int(found.case.gpus[i]) * model.x[i])
        for c in cs if found.tied[i] else ():
            place = i, groups[c].rack
            there = [model.in_rack[place]] if place in model.in_rack else []
            model.mixed_nodes.add(model.mixed[i, c] <= int(found.whole[i]) * sum(there))


def awake_nodes(model: Any) -> None:
    """Add a_c ≥ the number of nodes of class c that any job uses."""
    used = defaultdict(list)
    for c, group in enumerate(model.nodes.groups):
        used[model.ways.case.classes[group.kind].name].append(model.in_use[c])
    model.awake_nodes = pyo.Constraint(
        list(used), rule=lambda m, name: m.awake[name] >= sum(used[name])
    )


def capped_pieces(model: Any) -> None:
    """Add Σ_r filled_ir = q_i x_i, Σ_r block_ir = [r_i > 0] x_i, and racks as in `pieces_in_rack`.

    Ways tied to a rack have all pieces in that rack.
    """
    found, most = model.ways, largest_nodes(model.ways.case.round.cluster.topology)
    needs = defaultdict(list)
    model.capped_pieces = pyo.ConstraintList()
    for i, racks in model.capped.items():
        q, rest, pool = int(found.whole[i]), int(found.rest[i]), int(found.case.pool[i])
        b = int(rest > 0)
        model.capped_pieces.add(sum(model.filled[i, r] for r in racks) == q * model.x[i])
        model.capped_pieces.add(sum(model.block[i, r] for r in racks) == b * model.x[i])
        for r in racks:
            if found.tied[i]:
                there = model.filled[i, r] + model.block[i, r]
                model.capped_pieces.add(there == (q + b) * model.in_rack[i, r])
            needs[pool, most[pool], r].append(model.filled[i, r])
            if rest:
                needs[pool, rest, r].append(model.block[i, r])
    at_least(model, "pieces_by_rack", needs)


def power_in_rack(model: Any) -> None:
    """Add Σ extra watts of the GPUs that ways have in rack r and pool p ≤ 1000 y_pr."""
    found, case = model.ways, model.ways.case
    topology = case.round.cluster.topology
    most = largest_nodes(topology)
    each_w = case.extra_w / np.maximum(case.gpus, 1)
    drawn: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)

    def draw(i: int, rack: int, gpus: Any) -> None:
        pair = (case.table.pools[int(case.pool[i])].name, topology.racks[rack])
        pair = pair if pair in case.most_rack_kw else (pair[0], "elsewhere")
        drawn[pair].append(float(each_w[i]) / KILO * gpus)

    for i in np.flatnonzero(found.stay).tolist():
        allocation = case.table.jobs[int(case.job[i])].allocation
        for node, gpus in () if allocation is None else allocation.placement:
            draw(i, int(topology.node_rack[node]), gpus * model.x[i])
    for (i, c), count in model.mixed.items():
        draw(i, model.nodes.groups[c].rack, model.nodes.groups[c].size * count)
    for i, racks in model.capped.items():
        whole, rest = most[int(case.pool[i])], int(found.rest[i])
        for r in racks:
            draw(i, r, whole * model.filled[i, r] + rest * model.block[i, r])
    model.power_in_rack = pyo.Constraint(
        list(drawn), rule=lambda m, *pair: sum(drawn[pair]) <= m.rack_kw[pair]
    )


# -- variables ------------------------------------------------------------------------------------


def _variables(model: Any) -> None:
    """Add the variables of the module's table, and the room that jobs in place leave."""
    found, nodes = model.ways, model.nodes
    every = _racks_of_all(model) if found.case.racks else {}
    model.capped = {i: those for i, those in every.items() if not found.mixed[i]}
    racks = _racks(model)
    model.in_rack = pyo.Var([(i, r) for i in racks for r in racks[i]], domain=pyo.Binary)
    at = [(i, r) for i, those in model.capped.items() for r in those]
    model.filled = pyo.Var(at, domain=pyo.NonNegativeIntegers)
    model.block = pyo.Var(at, domain=pyo.Binary)
    mixed = [
        (i, c)
        for i in np.flatnonzero(found.mixed & ~found.stay).tolist()
        for c, group in enumerate(nodes.groups)
        if group.pool == found.case.pool[i]
    ]
    model.mixed = pyo.Var(mixed, domain=pyo.NonNegativeIntegers)
    for i, c in mixed:
        model.mixed[i, c].setub(len(nodes.groups[c].nodes))
    wanted = defaultdict(set)
    for _, pool, size, _ in pieces_of(found):
        wanted[pool].add(size)
    add_cuts(model, nodes.groups, wanted, largest_nodes(found.case.round.cluster.topology))
    _keeps(model)
    model.in_use = {c: in_use(model, c) for c in range(len(nodes.groups))}


def _keeps(model: Any) -> None:
    """Add ``keep``, and ``left[c, f]``, the number of nodes with f GPUs that staying jobs leave.

    On a node where one job may stay, the x of that job decides the free GPUs. Where several jobs
    may stay, a path through these jobs decides.
    """
    model.keep = pyo.Var(pyo.Any, dense=False, bounds=(0, 1))
    model.paths = {}
    left: defaultdict[tuple[int, int], list[Any]] = defaultdict(list)
    for c, group in enumerate(model.nodes.groups):
        for n in group.nodes:
            jobs = model.nodes.held.get(n, ())
            if not jobs:
                left[c, group.size].append(1)
            elif len(jobs) == 1:
                i, gpus = jobs[0]
                left[c, group.size].append(1 - model.x[i])
                left[c, group.size - gpus].append(model.x[i])
            else:
                for free, arcs in _path(model, n, group).items():
                    left[c, free] += arcs
    model.left = {
        (c, f): sum(left[c, f])
        for c, group in enumerate(model.nodes.groups)
        for f in range(group.size, -1, -1)
    }


def _path(model: Any, n: int, group: Group) -> dict[int, list[Any]]:
    """Add the path through the jobs that may stay on node n, and return its ends by free GPUs."""
    arcs: dict[int, list[Any]] = {}
    into: list[tuple[list[Any], list[Any]]] = []
    reached: dict[int, list[Any]] = {0: [1]}
    for j, (i, gpus) in enumerate(model.nodes.held[n]):
        after = defaultdict(list)
        arcs[i] = []
        for used, come in reached.items():
            goes, remains = model.keep[n, j, used, 0], model.keep[n, j, used, 1]
            into.append((come, [goes, remains]))
            after[used].append(goes)
            after[used + gpus].append(remains)
            arcs[i].append(remains)
        reached = after
    model.paths[n] = arcs, into
    return {group.size - used: those for used, those in reached.items()}


def pieces_of(found: Ways) -> Iterator[tuple[int, int, int, int]]:
    """Yield (way, pool, GPUs, count) of all pieces of fresh ways that are not mixed."""
    case = found.case
    most = largest_nodes(case.round.cluster.topology)
    for i in np.flatnonzero(~found.stay & ~found.mixed).tolist():
        pool = int(case.pool[i])
        if found.whole[i]:
            yield i, pool, most[pool], int(found.whole[i])
        if found.rest[i]:
            yield i, pool, int(found.rest[i]), 1


def _racks(model: Any) -> dict[int, list[int]]:
    """Return the racks that could hold each way that is tied to a rack, none for other ways."""
    found: Ways = model.ways
    every = _racks_of_all(model)
    return {i: every[i] if tied else [] for i, tied in enumerate(found.tied.tolist()) if i in every}


def _racks_of_all(model: Any) -> dict[int, list[int]]:
    """Return the racks in the pool of each fresh way that are large enough for the way.

    A way that is not tied to a rack has all racks of the pool; a way whose option names a rack has
    only that rack.
    """
    found: Ways = model.ways
    nodes: Nodes = model.nodes
    gpus: defaultdict[tuple[int, int], int] = defaultdict(int)
    for group in nodes.groups:
        gpus[group.pool, group.rack] += group.size * len(group.nodes)
    least = np.where(found.tied, found.case.gpus, 0).tolist()
    case = found.case
    asked = zip(case.pool.tolist(), case.rack.tolist(), least, found.stay.tolist(), strict=True)
    return {
        i: [
            r
            for (p, r), there in gpus.items()
            if p == pool and there >= enough and (rack < 0 or r == rack)
        ]
        for i, (pool, rack, enough, stays) in enumerate(asked)
        if not stays
    }
