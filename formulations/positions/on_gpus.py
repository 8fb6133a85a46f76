"""Parts and fractions of GPUs on the numbered GPUs of nodes, exact, in the model by node.

=================  ============================================================================
variable           meaning
=================  ============================================================================
``part[i,n,g,s]``  1 if way i has a part of GPU g of node n from slice s on, or a fraction (s = 0)
``idle[f,n,g,s]``  1 if a part f of a fixed layout is there, and no way has it
``cut[n,g]``       1 if any way has a part or a fraction of GPU g of node n
``shared[n,g]``    1 if ways have fractions of it, and no parts
=================  ============================================================================
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ronda.formulations.placement.parts import Places
from ronda.formulations.positions.variables import Ways
from ronda.instances.cluster import NodeGroup, PartProfile, Parts
from ronda.instances.job import Job

Gpu = tuple[int, int]
"""A node, and the number of a GPU there."""


def in_parts(found: Ways) -> list[int]:
    """Return the ways on parts and fractions of GPUs."""
    ways: list[int] = np.flatnonzero(found.case.whole_gpus == 0).tolist()
    return ways


def add_gpus(model: Any) -> None:
    """Add the variables of the module's table, and what ties them to ways, nodes and slices."""
    found: Ways = model.ways
    own, jobs = set(in_parts(found)), found.case.table.jobs
    cluster = found.case.round.cluster
    groups = [cluster.node_groups[g] for g in cluster.topology.node_group.tolist()]
    types = {t.name: t for t in cluster.gpu_types}
    model.cut_gpus = pyo.ConstraintList()
    fresh = [p for p in model.on if p.way in own and not found.stay[p.way]]
    nodes = {p.node for p in model.on if p.way in own}
    gpus = [(n, g) for n in sorted(nodes) for g in range(groups[n].gpus_per_node)]
    starts = [
        (p.way, p.node, g, s)
        for p in fresh
        for g in range(groups[p.node].gpus_per_node)
        for s in _starts(types[groups[p.node].gpu_type].ways, jobs[found.case.job[p.way]].job)
        if (p.node, g, s) not in _here(found, p.way)
    ]
    layouts = [
        (f.name, n, g, s)
        for n, g in gpus
        for f in _profiles(types[groups[n].gpu_type].ways, set(groups[n].cut))
        for s in f.starts
    ]
    model.part = pyo.Var(starts, domain=pyo.Binary)
    model.idle_part = pyo.Var(layouts, domain=pyo.Binary)
    model.cut = pyo.Var(gpus, domain=pyo.Binary)
    model.shared = pyo.Var(gpus, domain=pyo.Binary)
    at = defaultdict[tuple[int, int], list[Any]](list)
    on = defaultdict[Gpu, list[tuple[Job, int, Any, bool]]](list)
    for (i, n, g, s), variable in model.part.items():
        at[i, n].append(variable)
        on[n, g].append((jobs[found.case.job[i]].job, s, variable, False))
    for p in fresh:
        model.cut_gpus.add(sum(at[p.way, p.node]) == p.variable)
    for i in own & set(np.flatnonzero(found.stay).tolist()):
        state = jobs[found.case.job[i]]
        for n, g, s in () if state.allocation is None else state.allocation.parts:
            on[n, g].append((state.job, s, model.x[i], True))
    for n, g in gpus:
        _on_gpu(model, (n, g), groups[n], types[groups[n].gpu_type].ways, on[n, g])
        if g and not any(stays for *_, stays in (*on[n, g], *on[n, g - 1])):
            model.cut_gpus.add(model.cut[n, g] <= model.cut[n, g - 1])  # they are alike


def _on_gpu(
    model: Any,
    gpu: Gpu,
    group: NodeGroup,
    ways: Parts | None,
    there: Iterable[tuple[Job, int, Any, bool]],
) -> None:
    """Add Σ fractions ≤ shared, Σ parts on slice m ≤ cut − shared, and what a layout allows."""
    there, rows, used = list(there), model.cut_gpus, model.cut[gpu]
    for _, _, variable, _ in there:
        rows.add(variable <= used)
    shares = [float(job.share or 0.0) * x for job, _, x, _ in there if job.part is None]
    rows.add(sum(shares) <= model.shared[gpu])
    rows.add(model.shared[gpu] <= used)
    if ways is None:
        return
    profiles = {p.name: p for p in ways.profiles}
    slices, named = defaultdict[int, list[Any]](list), defaultdict[str, list[Any]](list)
    for job, s, variable, _ in there:
        if job.part in profiles:
            named[job.part].append(variable)
            for m in range(s, s + profiles[job.part].memory):
                slices[m].append(variable)
    for those in slices.values():
        rows.add(sum(those) <= used - model.shared[gpu])
    for name, those in named.items():
        rows.add(sum(those) <= profiles[name].most)
    if group.recut == "empty":
        held = [x for *_, x, stays in there if stays]
        for *_, x, stays in there:
            if not stays:
                for other in held:
                    rows.add(x + other <= 1)
    if group.cut:
        for name, many in Counter(group.cut).items():
            idle = [model.idle_part[name, *gpu, s] for s in profiles[name].starts]
            rows.add(sum(named[name]) + sum(idle) == many)
            for s, variable in zip(profiles[name].starts, idle, strict=True):
                for m in range(s, s + profiles[name].memory):
                    slices[m].append(variable)
        for those in slices.values():
            rows.add(sum(those) <= 1)


def parts_on_gpus(model: Any) -> dict[str, Places]:
    """Return the part of a GPU of each job that a solved model lets start."""
    case = model.ways.case
    return {
        case.table.jobs[int(case.job[i])].job.id: ((n, g, s),)
        for (i, n, g, s), variable in model.part.items()
        if round(variable.value or 0.0)
    }


def _here(found: Ways, i: int) -> Places:
    """Return the part that a job has now if way i is its current option; there it would stay."""
    held = found.case.table.jobs[int(found.case.job[i])].allocation
    now = held is not None and bool(found.case.table.current[found.case.rows[i]])
    return held.parts if held is not None and now else ()


def _starts(ways: Parts | None, job: Job) -> tuple[int, ...]:
    if job.part is None:
        return (0,)
    return tuple(s for p in _profiles(ways, {job.part}) for s in p.starts)


def _profiles(ways: Parts | None, names: set[str]) -> list[PartProfile]:
    return [p for p in ways.profiles if p.name in names] if ways is not None else []
