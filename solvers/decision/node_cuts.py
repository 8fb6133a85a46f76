"""Cuts from nodes: rows over ways (options as they can be placed) that every plan keeps.

The rows that tie ways to nodes, each times a number of the right sign, add up to a row that every
plan keeps. The terms of node variables are at least their values at the bounds. The rest is a row
over ways and awake nodes, a cut of J. F. Benders (Numerische Mathematik 4, 1962). With the dual
values of the model's linear relaxation the cut is as strong as all these rows together, for the
ways in the model. Other ways count by the pieces of nodes that they take.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import highspy
import numpy as np

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.positions.model import pieces_of
from ronda.formulations.positions.variables import Ways
from ronda.instances.base import Floats, Rows
from ronda.instances.violation import ROUNDING
from ronda.solvers.exact.from_pyomo import linear_form
from ronda.solvers.exact.highs import highs_of, run
from ronda.solvers.exact.linear_form import LinearForm


@dataclass(frozen=True, slots=True)
class Cut:
    """The row Σ_i use_i x_i + Σ_b block_use_b z_b ≤ capacity over all ways i and blocks b."""

    use: Floats
    block_use: Floats
    capacity: float


def with_cuts(problem: Separable, cuts: list[Cut], name: str = "placement") -> Separable:
    """Return a problem with cuts as additional rows, named ``placement[0]`` and so on."""
    if not cuts:
        return problem
    return replace(
        problem,
        use=Uses.of([*problem.use.dense(), *(c.use for c in cuts)]),
        block_use=np.vstack([problem.block_use, *(c.block_use for c in cuts)]),
        capacity=np.append(problem.capacity, [c.capacity for c in cuts]),
        names=(*problem.names, *(f"{name}[{k}]" for k in range(len(cuts)))),
    )


def node_cut(model: Any, every: Ways, kept: Rows, seconds: float = inf) -> Cut:
    """Return the cut from a model of the ways `kept`, ascending indices into `every`.

    The model must contain all ways that stay in place, and the power of racks must not be capped.
    If the dual values are not found within `seconds`, the cut is trivial.
    """
    form = linear_form(model)
    others = {id(row) for row in (*model.one_option.values(), *model.rows)}
    duals = _duals(form, others, seconds)
    sums = np.zeros(len(form.columns))
    np.add.at(sums, form.index, form.value * duals.repeat(np.diff(form.start)))
    limits = np.where(duals > 0, form.row_upper, form.row_lower)
    capacity = float(duals[duals != 0] @ limits[duals != 0])
    column = {id(variable): k for k, variable in enumerate(form.columns)}
    own = [column.get(id(v), -1) for v in (*model.x.values(), *model.blocks)]
    inside = np.append(sums, 0.0)[own]
    sums[[k for k in own if k >= 0]] = 0.0
    nodes = np.flatnonzero(sums)
    capacity -= float((sums * np.where(sums > 0, form.lower, form.upper))[nodes].sum())
    use = _by_pieces(model, every, dict(zip(map(id, form.rows), duals.tolist(), strict=True)))
    use[kept] = inside[: len(kept)]
    slack = ROUNDING * (1.0 + abs(capacity) + float(np.abs(use).max(initial=0.0)))
    return Cut(use, inside[len(kept) :], capacity + slack)


def _duals(form: LinearForm, others: set[int], seconds: float) -> Floats:
    """Return the relaxation's dual values of node rows, and 0 for the rows `others` (ids)."""
    highs = highs_of(form, relaxed=True)
    if run(highs, seconds) != highspy.HighsModelStatus.kOptimal:
        return np.zeros(len(form.rows))
    duals = np.array(highs.getSolution().row_dual, dtype=float)
    at_most, at_least = np.isfinite(form.row_upper), np.isfinite(form.row_lower)
    duals[at_most & ~at_least] = np.maximum(duals[at_most & ~at_least], 0.0)
    duals[at_least & ~at_most] = np.minimum(duals[at_least & ~at_most], 0.0)
    duals[[id(row) in others for row in form.rows]] = 0.0
    return duals


def _by_pieces(model: Any, every: Ways, dual: dict[int, float]) -> Floats:
    """Return the sum of absolute duals of the pieces that each way takes, shape (n,).

    A way that must lie within one rack counts in its cheapest rack.
    """
    price = {
        key: abs(dual.get(id(row), 0.0))
        for family in (model.pieces, model.pieces_in_rack)
        for key, row in family.items()
    }
    topology = every.case.round.cluster.topology
    racks = len(topology.racks)
    there = np.zeros((len(topology.pools), racks), dtype=bool)
    there[topology.node_pool, topology.node_rack] = True
    in_rack: defaultdict[tuple[int, int], Floats] = defaultdict(lambda: np.zeros(racks))
    for key, each in price.items():
        if len(key) == 3:
            in_rack[key[:2]][key[2]] = each
    use = np.zeros(len(every.stay))
    by_rack: defaultdict[int, Floats] = defaultdict(lambda: np.zeros(racks))
    for i, pool, size, count in pieces_of(every):
        use[i] += count * price.get((pool, size), 0.0)
        if every.tied[i]:
            by_rack[i] += count * in_rack[pool, size]
    for i, dear in by_rack.items():
        use[i] += float(dear[there[every.case.pool[i]]].min())
    return use
