"""Options and positions as one exact MILP with a variable for each piece and node.

It is for rounds in which rules tell nodes apart, by host resources, closed nodes, slices in racks,
and neighbours. Its rows and ways are those of `ronda.formulations.positions.model`, whose flow of
cuts needs nodes that are exchangeable. It is larger, with about one variable for each way and each
node that is open to it.

=================  ============================================================================
variable           meaning
=================  ============================================================================
``x[i]``           1 if way i is chosen: option k, fresh or staying
``whole[i,n]``     1 if way i takes all of node n; a mixed way takes empty nodes of any size
``idle[i,n]``      the number of GPUs that mixed way i leaves idle there
``block[i,n]``     1 if the block of way i is on node n
``first[i,n]``     1 if node n bears what way i needs once; only where no block does
``grows[n,d]``     1 if any way comes to node n that needs resource d; only where what runs there
                   needs more than the host has now
``in_rack[i,r]``   1 if way i, tied to one rack, is in rack r
``in_use[n]``      1 if node n is in use
=================  ============================================================================

Each constraint family is one function below. Its docstring gives the constraints that it adds, and
its name is the name of the constraints in the model.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ronda.formulations.allocation.rows import KILO
from ronda.formulations.node_rules.hosts import ROUNDED, host_has, needs_of, resources
from ronda.formulations.options.table import option
from ronda.formulations.positions.on_gpus import add_gpus, in_parts
from ronda.formulations.positions.regions import add_regions
from ronda.formulations.positions.variables import Ways, largest_nodes
from ronda.formulations.site.nodes import closed_to
from ronda.formulations.watts import classes_of_nodes
from ronda.instances.base import Floats

Placement = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    """A variable of a way on a node, with the GPUs and the needs (D,) there for each unit of it."""

    way: int
    node: int
    variable: Any
    gpus: float
    needs: Floats


def add_nodes(model: Any) -> None:
    """Add nodes, with a variable for each piece, to a model of ways without them.

    Its attribute ``on`` holds all pieces.
    """
    _variables(model)
    if in_parts(model.ways):
        add_gpus(model)
    for add in (on_nodes, node_gpus, node_resources, one_rack):
        add(model)
    add_regions(model)
    if model.ways.case.sleeps:
        awake_nodes(model)
    if model.ways.case.racks:
        power_in_rack(model)


def placements_by_node(model: Any, chosen: Iterable[int]) -> dict[str, Placement]:
    """Return the pairs (node, GPUs) of each job that a solved model runs with the `chosen` ways.

    The node that bears what a job needs once comes first, and then the others ascending.
    """
    found: Ways = model.ways
    on: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    first: dict[int, int] = {}
    for piece in model.on:
        if many := round(piece.variable.value or 0.0):
            on[piece.way][piece.node] += piece.gpus * many
            if piece.gpus == 0:
                first[piece.way] = piece.node
    placed = {}
    for i in chosen:
        state = found.case.table.jobs[int(found.case.job[i])]
        held = state.allocation if found.stay[i] else None
        nodes = sorted(on[i].items(), key=lambda pair: (pair[0] != first.get(i), pair))
        fresh = tuple((node, round(gpus)) for node, gpus in nodes)
        placed[state.job.id] = fresh if held is None else held.placement
    return placed


# -- constraint families --------------------------------------------------------------------------


def on_nodes(model: Any) -> None:
    """Add Σ_n whole_in = q_i x_i, Σ_n block_in = [r_i > 0] x_i, Σ_n first_in = x_i ≤ its node's.

    A mixed way has Σ_n (size_n whole_in − idle_in) = n_i x_i and idle_in < size_n whole_in.
    """
    found, size = model.ways, found_sizes(model.ways)
    model.on_nodes = pyo.ConstraintList()
    fresh = np.flatnonzero(~found.stay).tolist()
    for family, count in (("whole", found.whole), ("block", found.rest > 0)):
        own = _by_way(getattr(model, family))
        for i in fresh:
            if count[i]:
                model.on_nodes.add(sum(own[i]) == int(count[i]) * model.x[i])
    for i, those in _by_way(model.first).items():
        model.on_nodes.add(sum(those) == model.x[i])
    for i, n in model.first:
        model.on_nodes.add(model.first[i, n] <= model.whole[i, n])
    gpus = defaultdict(list)
    for i, n in model.idle:
        gpus[i].append(size[n] * model.whole[i, n] - model.idle[i, n])
        model.on_nodes.add(model.idle[i, n] <= (size[n] - 1) * model.whole[i, n])
    for i, those in gpus.items():
        model.on_nodes.add(sum(those) == int(found.case.gpus[i]) * model.x[i])


def node_gpus(model: Any) -> None:
    """Add Σ_i GPUs of way i on node n ≤ size_n in_use_n; a mixed way takes all of its nodes.

    A GPU in parts (`ronda.formulations.positions.on_gpus`) counts once.
    """
    size, own, cut = found_sizes(model.ways), defaultdict(list), set(in_parts(model.ways))
    for n, g in model.cut if cut else ():
        own[n].append(model.cut[n, g])
    for piece in model.on:
        if piece.gpus > 0 and piece.way not in cut:
            own[piece.node].append(piece.gpus * piece.variable)
    model.node_gpus = pyo.Constraint(
        list(own), rule=lambda m, n: sum(own[n]) <= size[n] * m.in_use[n]
    )


def node_resources(model: Any) -> None:
    """Add Σ_i needs of way i on node n ≤ what the host has left, for each resource.

    If what runs there needs more, it may all the same, unless other ways come to the node.
    """
    has = host_has(model.ways.case.round.cluster)
    left = has + ROUNDED * np.abs(has)
    every, come, held = defaultdict(list), defaultdict(list), np.zeros_like(left)
    for piece in model.on:
        stays = model.ways.stay[piece.way]
        held[:, piece.node] += piece.needs * stays
        for d in np.flatnonzero(piece.needs).tolist():
            every[piece.node, d].append(float(piece.needs[d]) * piece.variable)
            if piece.needs[d] > 0 and not stays:
                come[piece.node, d].append(piece.variable)
    over = np.maximum(held - left, 0.0)
    model.grows = pyo.Var([(n, d) for n, d in come if over[d, n]], domain=pyo.Binary)
    model.node_resources = pyo.ConstraintList()
    for (n, d), needs in every.items():
        more = float(over[d, n])
        if (n, d) in model.grows:
            more = more * (1 - model.grows[n, d])
            for variable in come[n, d]:
                model.node_resources.add(variable <= model.grows[n, d])
        model.node_resources.add(sum(needs) <= float(left[d, n]) + more)


def one_rack(model: Any) -> None:
    """Add Σ_r in_rack_ir = x_i, and pieces of way i on nodes of rack r ≤ (q_i + 1) in_rack_ir."""
    found, there = model.ways, defaultdict(list)
    racks = found.case.round.cluster.topology.node_rack.tolist()
    for piece in model.on:
        if found.tied[piece.way] and piece.gpus > 0:
            there[piece.way, racks[piece.node]].append(piece.variable)
    model.in_rack = pyo.Var(list(there), domain=pyo.Binary)
    model.one_rack = pyo.ConstraintList()
    for (i, r), pieces in there.items():
        many = int(found.whole[i]) + (found.rest[i] > 0)
        model.one_rack.add(sum(pieces) <= many * model.in_rack[i, r])
    for i, those in _by_way(model.in_rack).items():
        model.one_rack.add(sum(those) == model.x[i])


def awake_nodes(model: Any) -> None:
    """Add a_c ≥ the number of nodes of class c that any job uses."""
    used, kinds = defaultdict(list), classes_of_nodes(model.ways.case.round)
    for n, variable in model.in_use.items():
        used[model.ways.case.classes[kinds[n]].name].append(variable)
    model.awake_nodes = pyo.Constraint(
        list(used), rule=lambda m, name: m.awake[name] >= sum(used[name])
    )


def power_in_rack(model: Any) -> None:
    """Add Σ extra watts of the GPUs that ways have in rack r and pool p ≤ 1000 y_pr."""
    case, topology = model.ways.case, model.ways.case.round.cluster.topology
    each_kw = case.extra_w / np.maximum(case.gpus, 1) / KILO
    drawn = defaultdict(list)
    for piece in model.on:
        pool = case.table.pools[int(case.pool[piece.way])].name
        pair = pool, topology.racks[topology.node_rack[piece.node]]
        pair = pair if pair in case.most_rack_kw else (pool, "elsewhere")
        drawn[pair].append(float(each_kw[piece.way]) * piece.gpus * piece.variable)
    model.power_in_rack = pyo.Constraint(
        list(drawn), rule=lambda m, *pair: sum(drawn[pair]) <= m.rack_kw[pair]
    )


# -- variables ------------------------------------------------------------------------------------


def open_nodes(found: Ways) -> dict[int, list[int]]:
    """Return the nodes in service that are open to each way that does not stay."""
    case = found.case
    topology, nodes = case.round.cluster.topology, {}
    for i in np.flatnonzero(~found.stay).tolist():
        able = topology.in_service(int(case.pool[i]))
        if case.rack[i] >= 0:
            able &= topology.node_rack == case.rack[i]
        state = case.table.jobs[int(case.job[i])]
        closed = closed_to(case.round, state, option(case.table, int(case.rows[i])))
        nodes[i] = np.flatnonzero(able if closed is None else able & ~closed).tolist()
    return nodes


def found_sizes(found: Ways) -> list[int]:
    """Return the GPUs in service of each node (N,)."""
    sizes: list[int] = found.case.round.cluster.topology.node_gpus.tolist()
    return sizes


def _variables(model: Any) -> None:
    """Add the variables of the module's table, and the pieces that they say."""
    found: Ways = model.ways
    case, size = found.case, found_sizes(found)
    names, most = resources(case.round.cluster), largest_nodes(case.round.cluster.topology)
    index = defaultdict[str, list[tuple[int, int]]](list)
    terms = list[tuple[str, int, int, float, Floats]]()
    for i, nodes in open_nodes(found).items():
        needs = needs_of(case.table.jobs[int(case.job[i])].job, names)
        rest, wide = int(found.rest[i]), most[int(case.pool[i])]
        for n in nodes:
            if found.whole[i] and (found.mixed[i] or size[n] == wide):
                terms.append(("whole", i, n, size[n], needs.piece(size[n])))
                if found.mixed[i]:
                    terms.append(("idle", i, n, -1, -needs.per_gpu))
                if not rest and needs.flat.any():
                    terms.append(("first", i, n, 0, needs.flat))
            if 0 < rest <= size[n]:
                terms.append(("block", i, n, rest, needs.piece(rest) + needs.flat))
    for family, i, n, *_ in terms:
        index[family].append((i, n))
    for family in ("whole", "block", "first", "idle"):
        model.add_component(family, pyo.Var(index[family], domain=pyo.Binary))
    model.idle.domain = pyo.NonNegativeIntegers
    model.in_use = pyo.Var([n for n, gpus in enumerate(size) if gpus], domain=pyo.Binary)
    model.on = [
        Piece(i, n, getattr(model, family)[i, n], gpus, needs)
        for family, i, n, gpus, needs in terms
    ]
    for i in np.flatnonzero(found.stay).tolist():
        state = case.table.jobs[int(case.job[i])]
        held = () if state.allocation is None else state.allocation.placement
        there = needs_of(state.job, names).on(held)
        for k, (n, gpus) in enumerate(held):
            model.on.append(Piece(i, n, model.x[i], gpus, there[:, k]))


def _by_way(variables: Any) -> dict[int, list[Any]]:
    """Return the variables of each way, whose index begins with the way."""
    found = defaultdict[int, list[Any]](list)
    for (i, _), variable in variables.items():
        found[i].append(variable)
    return found
