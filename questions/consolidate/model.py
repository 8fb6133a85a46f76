"""A Pyomo model of the moves that save most, as flows through the jobs that may stay on nodes.

The nodes with one content (`ronda.questions.consolidate.holdings`) are units of a flow through its
stages, which decides the jobs that stay. Another flow cuts free GPUs into blocks for jobs that move
(`ronda.formulations.positions.cuts`). Equal nodes and equal jobs are counted rather than
distinguished, so the size of the model does not grow with their number. Its relaxation is as tight
as that of a model with all ways to fill a node.

==================  ===========================================================================
variable            meaning
==================  ===========================================================================
``keep[t,k,u,m]``   number of nodes of content t, with u GPUs kept by stages before k, that keep m
                    jobs of stage k: the m that lose most by a move
``gone[j]``         1 if wide job j moves
``cut[c,f,s]``      number of nodes of group c with f free GPUs that give s of them to a piece
``put[b,r]``        number of blocks of kind b (pool, GPUs, watts) that go to rack r
``in_rack[j,s,r]``  number of pieces of s GPUs of wide job j in rack r (both only if racks matter)
``slices[j,r]``     number of slices of job j in rack r; a job tied to one rack is one slice
``open[r]``         1 if rack r has jobs (only if racks without jobs count)
==================  ===========================================================================

Each function below adds one family of constraints; its docstring states their mathematics.
"""

from collections import defaultdict
from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ronda.formulations.positions.cuts import add_cuts, at_least, in_use, room
from ronda.formulations.positions.variables import largest_nodes
from ronda.formulations.watts import TOLERANCE, rack_caps
from ronda.instances.clock import watched
from ronda.questions.consolidate.holdings import Content, Occupancy, rack_worth


def build(found: Occupancy, *, moves: int | None = None, lost_gpu_s: float | None = None) -> Any:
    """Return the model of an occupancy, with a start solution that moves no job.

    Its expressions are ``saved`` (the saving), ``moved`` (the number of moved jobs) and ``lost``
    (the GPU-seconds that they lose). `moves` and `lost_gpu_s` limit the last two.
    """
    with PauseGC():
        model = pyo.ConcreteModel("consolidation")
        model.holdings, model.mixed = found, {}
        _variables(model)
        for add in (kept, wide_stay, room, pieces):
            add(model)
        if found.racked:
            add_racks(model)
        if each := rack_worth(found.round, found.saving):
            add_open_racks(model, each)
        if moves is not None:
            model.most_moves = pyo.Constraint(expr=model.moved <= moves)
        if lost_gpu_s is not None:
            model.most_lost = pyo.Constraint(expr=model.lost <= lost_gpu_s)
        model.save = pyo.Objective(expr=model.saved, sense=pyo.maximize)
    return model


def fewest_moves(model: Any) -> None:
    """Change the objective of a solved model to the fewest moves, then least loss, at equal saving.

    min moved + lost / (1 + Σ of all possible losses), with saved ≥ the saving found.
    """
    all_s, saved = sum(mover.lost_gpu_s for mover in model.holdings.movers), pyo.value(model.saved)
    model.save.deactivate()
    model.as_much = pyo.Constraint(expr=model.saved >= saved - 1e-6 * max(1.0, abs(saved)))
    model.disturb = pyo.Objective(expr=model.moved + model.lost / (1.0 + all_s))


# -- constraint families --------------------------------------------------------------------------


def kept(model: Any) -> None:
    """Add Σ_m keep_t00m = nodes of content t, and: inflow of (k, u) = Σ_m keep_tkum."""
    model.kept = pyo.ConstraintList()
    for come, leave in model.flow:
        model.kept.add(sum(leave) == sum(come))


def wide_stay(model: Any) -> None:
    """Add Σ_u keep_tku1 = nodes of content t (1 - gone_j) for the stage k of wide job j."""
    model.wide_stay = pyo.ConstraintList()
    for j, stay, nodes in model.parts:
        model.wide_stay.add(sum(stay) == nodes * (1 - model.gone[j]))


def pieces(model: Any) -> None:
    """Add Σ_{c in p, f} cut_cfs ≥ moved blocks of s GPUs + Σ_j (pieces of s GPUs of j) gone_j."""
    needs = defaultdict[tuple[int, int], list[Any]](list)
    for (pool, gpus, _), terms in model.blocks.items():
        needs[pool, gpus] += terms
    for j, mover in enumerate(model.holdings.wide):
        for gpus, n in mover.pieces:
            needs[mover.kind[0], gpus].append(n * model.gone[j])
    at_least(model, "pieces", needs)


def pieces_in_rack(model: Any) -> None:
    """Add Σ_{c in p and r, f} cut_cfs ≥ Σ_b put_br + Σ_j in_rack_jsr, over blocks of s GPUs."""
    needs = defaultdict(list)
    for (pool, gpus, _, r), put in model.put.items():
        needs[pool, gpus, r].append(put)
    for (j, gpus, r), part in model.in_rack.items():
        needs[model.holdings.wide[j].kind[0], gpus, r].append(part)
    at_least(model, "pieces_in_rack", needs)


def somewhere(model: Any) -> None:
    """Add Σ_r put_br = moved blocks of kind b; Σ_r in_rack_jsr = (pieces of s GPUs of j) gone_j.

    A job of slices has in_rack_jsr = (pieces of s GPUs in a slice) slices_jr; at most 1 if they
    spread.
    """
    found: Occupancy = model.holdings
    model.somewhere = pyo.ConstraintList()
    for kind, terms in model.blocks.items():
        there = [model.put[*kind, r] for r in found.racks[kind[0]]]
        model.somewhere.add(sum(there) == sum(terms))
    for j, mover in enumerate(found.wide):
        racks = found.racks[mover.kind[0]]
        for gpus, n in mover.pieces:
            model.somewhere.add(sum(model.in_rack[j, gpus, r] for r in racks) == n * model.gone[j])
            for r in racks if mover.slice else ():
                each = min(n, mover.slice)  # a slice of all pieces has the block, too
                model.somewhere.add(model.in_rack[j, gpus, r] == each * model.slices[j, r])


def rack_power(model: Any) -> None:
    """Add awake nodes + staying jobs + Σ_b gpus w put_br + Σ_j s w_j in_rack_jsr ≤ cap, in kW.

    If watts are saved, nodes without jobs sleep.
    """
    found, drawn = model.holdings, defaultdict(list, model.kept_w)
    for (_, gpus, each_w, r), put in model.put.items():
        drawn[r].append(gpus * each_w * put)
    for (j, gpus, r), part in model.in_rack.items():
        drawn[r].append(gpus * found.wide[j].kind[2] * part)
    for c, group in enumerate(found.groups if found.saving == "watts" else ()):
        drawn[group.rack].append(found.worth[c] * (model.in_use[c] - len(group.nodes)))
    model.rack_power = pyo.ConstraintList()
    for cap in rack_caps(found.round.cluster):
        watts = sum(sum(drawn[r]) + float(found.fixed_w[r]) for r in cap.racks)
        if pyo.is_potentially_variable(watts):  # otherwise no move changes it
            model.rack_power.add(watts / 1000 <= cap.cap_w * (1 + TOLERANCE) / 1000)


# -- variables and what they mean -----------------------------------------------------------------


def _variables(model: Any) -> None:
    """Add ``keep``, ``gone`` and ``cut``, and the expressions that follow from them."""
    found: Occupancy = model.holdings
    model.gone = pyo.Var(range(len(found.wide)), domain=pyo.Binary, initialize=0)
    model.keep = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeIntegers)
    model.flow, model.parts = [], []
    model.blocks, model.kept_w = defaultdict(list), defaultdict(list)
    model.moves = list(model.gone.values())
    model.losses = [m.lost_gpu_s * model.gone[j] for j, m in enumerate(found.wide)]
    left, used = defaultdict[tuple[int, int], list[Any]](list), [0] * len(found.groups)
    for t, (content, nodes) in enumerate(watched(found.contents.items())):
        c = content.group
        used[c] += len(nodes) * bool(content.fixed or content.stages)
        for kept_gpus, ends in _paths(model, t, content, len(nodes)).items():
            left[c, found.groups[c].size - content.fixed - kept_gpus] += ends
    model.left = {
        (c, f): sum(left[c, f])
        for c, group in enumerate(found.groups)
        for f in range(group.size, -1, -1)
    }
    wanted = defaultdict(set)
    for pool, gpus, _ in model.blocks:
        wanted[pool].add(gpus)
    for mover in found.wide:
        wanted[mover.kind[0]] |= {gpus for gpus, _ in mover.pieces}
    add_cuts(model, found.groups, wanted, largest_nodes(found.round.cluster.topology))
    for (c, _, _), cut in model.cut.items():
        cut.set_value(0)
        if not found.open[found.groups[c].nodes[0]]:
            cut.setub(0)
    model.in_use = [in_use(model, c) for c in range(len(found.groups))]
    counts = zip(found.worth, used, model.in_use, strict=True)
    saved = sum(worth * (before - after) for worth, before, after in counts)
    model.saved = pyo.Expression(expr=saved)
    model.moved = pyo.Expression(expr=sum(model.moves))
    model.lost = pyo.Expression(expr=sum(model.losses))


def _paths(model: Any, t: int, content: Content, nodes: int) -> dict[int, list[Any]]:
    """Add the paths through the stages of a content; return their last arcs, keyed by GPUs kept."""
    group, now = model.holdings.groups[content.group], 0
    reached: dict[int, list[Any]] = {0: [nodes]}
    for k, stage in enumerate(content.stages):
        jobs, stay, after = len(stage.lost), [], defaultdict(list)
        for used, come in reached.items():
            arcs = [model.keep[t, k, used, m] for m in range(jobs + 1)]
            model.flow.append((come, arcs))
            for m, arc in enumerate(arcs):
                arc.setub(nodes)
                arc.set_value(nodes if m == jobs and used == now else 0)
                after[used + m * stage.gpus].append(arc)
                if stage.each_w and m:
                    model.kept_w[group.rack].append(m * stage.gpus * stage.each_w * arc)
                if stage.wide < 0 and m < jobs:
                    model.blocks[group.pool, stage.gpus, stage.each_w].append((jobs - m) * arc)
                    model.moves.append((jobs - m) * arc)
                    model.losses.append(sum(stage.lost[: jobs - m]) * arc)
            stay.append(arcs[-1])
        if stage.wide >= 0:
            model.parts.append((stage.wide, stay, nodes))
        reached, now = after, now + jobs * stage.gpus
    return reached


def add_racks(model: Any) -> None:
    """Add ``put`` and ``in_rack``, and the constraint families that use them."""
    found, whole = model.holdings, {"domain": pyo.NonNegativeIntegers, "initialize": 0}
    at = [(*kind, r) for kind in model.blocks for r in found.racks[kind[0]]]
    model.put = pyo.Var(at, **whole)
    wide = [(j, m, r) for j, m in enumerate(found.wide) for r in found.racks[m.kind[0]]]
    model.in_rack = pyo.Var([(j, s, r) for j, m, r in wide for s, _ in m.pieces], **whole)
    most = [1 if m.spread else sum(n for _, n in m.pieces) // (m.slice or 1) for m in found.wide]
    sliced = {(j, r): max(1, most[j]) for j, m, r in wide if m.slice}
    model.slices = pyo.Var(sliced, bounds=lambda _, j, r: (0, sliced[j, r]), **whole)
    for add in (somewhere, pieces_in_rack, rack_power):
        add(model)


def add_open_racks(model: Any, each: float) -> None:
    """Add in_use_c ≤ (nodes of c) open_r for groups c in rack r, and `each` for a rack freed."""
    found, now = model.holdings, set[int]()
    for content in found.contents:
        if content.fixed or content.stages:
            now.add(found.groups[content.group].rack)
    racks = sorted({group.rack for group in found.groups})
    model.open = pyo.Var(racks, domain=pyo.Binary, initialize=lambda _, r: int(r in now))
    model.open_racks = pyo.ConstraintList()
    for c, group in enumerate(found.groups):
        model.open_racks.add(model.in_use[c] <= len(group.nodes) * model.open[group.rack])
    freed = len(now) - sum(model.open.values())
    model.saved.set_value(model.saved.expr + each * freed)
