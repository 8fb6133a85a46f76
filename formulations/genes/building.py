"""Casting choices as genes: the options of a round, or any separable problem given as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ronda.formulations.allocation.limits import Limits
from ronda.formulations.genes.genome import Genes, charged, rounding
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.errors import InputError

NEIGHBOURHOODS = 8
"""Groups of consecutive jobs that are inherited together where nothing says who is near whom."""


def genes(
    table: OptionTable,
    values: Floats,
    limits: Limits,
    prices: Mapping[str, float] | None = None,
) -> Genes:
    """Cast a round's options as genes.

    Rows that can be in no best plan are left out: worth nothing, or more than the capacity that the
    must-run jobs leave. A job without any row left has no gene. `values` are (K,). `prices`, the
    value of a unit of each resource by name, only guide moves; without them all resources are taken
    as equally scarce, a unit at 1 / capacity.
    """
    must = table.must_run[table.job]
    fixed = np.full(len(table.jobs), -1)
    fixed[table.job[must]] = np.flatnonzero(must)
    demand = limits.demand
    held = demand[: len(limits.node_w), must].sum(axis=1).astype(np.int64).tolist()
    step_w = [w[g:] if g < len(w) else w[-1:] for w, g in zip(limits.node_w, held, strict=True)]
    capacity = limits.capacity - demand[:, must].sum(axis=1)
    limit = capacity + rounding(limits.capacity)
    alone = np.array(charged(list(demand), step_w))
    fits = (alone <= limit[:, None]).all(axis=0)
    keep = np.flatnonzero(~must & fits & np.isfinite(values) & (values > 0))
    unit = np.array([(prices or {}).get(name, 0.0) for name in limits.names])
    return _assembled(
        keep,
        table.job[keep],
        values[keep],
        demand[:, keep],
        _burden(limits)[:, keep],
        table.current[keep],
        prices=np.maximum(unit, 0.0),
        capacity=capacity,
        limit=limit,
        fixed=fixed,
        fixed_value=float(values[must].sum()),
        step_w=tuple(step_w),
    )


def genes_of(
    start: Rows, value: Floats, usage: Floats, capacity: Floats, prices: Floats | None = None
) -> Genes:
    """Cast a separable knapsack as genes: at most one column of each job, within capacities.

    `start` (J + 1,) are offsets of each job's columns, `value` (K,) is to be maximised in sum; no
    column is worth 0. Columns worth nothing, or that fit by themselves nowhere, are left out.
    `usage` (R, K) is what each column takes of each resource; `prices` (R,) guide moves. InputError
    for shapes that do not fit, numbers that are not finite, or a negative usage.
    """
    shape = (len(capacity), len(value))
    if usage.shape != shape or not len(start) or start[-1] != len(value):
        found = f"usage of shape {usage.shape} and {len(start) - 1} jobs"
        raise InputError("problem", found, f"shape {shape}, and offsets that end at {len(value)}")
    for name, array in (("value", value), ("usage", usage), ("capacity", capacity)):
        if not np.isfinite(array).all():
            raise InputError(f"problem: {name}", "a number that is not finite", "finite numbers")
    if (usage < 0).any():
        raise InputError("problem: usage", f"{usage.min():g}", "numbers of at least 0")
    limit = capacity + rounding(capacity)
    keep = np.flatnonzero((value > 0) & (usage <= limit[:, None]).all(axis=0))
    jobs = len(start) - 1
    job = np.repeat(np.arange(jobs), np.diff(start))[keep]
    taken = usage[:, keep]
    unit = np.zeros(len(capacity)) if prices is None else np.maximum(prices, 0.0)
    return _assembled(
        keep,
        job,
        value[keep],
        taken,
        taken,
        np.zeros(len(keep), dtype=bool),
        prices=unit,
        capacity=np.asarray(capacity, dtype=float),
        limit=limit,
        fixed=np.full(jobs, -1),
        fixed_value=0.0,
        step_w=(),
    )


def _assembled(
    row: Rows,
    job: Rows,
    value: Floats,
    demand: Floats,
    burden: Floats,
    current: Mask,
    *,
    prices: Floats,
    capacity: Floats,
    **rest: Any,
) -> Genes:
    """Put "waits" before every job's rows and sort them, cheapest first; `rest` goes to `Genes`."""
    column, count = np.unique(job, return_counts=True)
    none, nothing = np.zeros(len(column)), np.zeros((len(capacity), len(column)))
    row = np.concatenate([np.full(len(column), -1), row])
    job = np.concatenate([column, job])
    value = np.concatenate([none, value])
    demand, burden = np.hstack([nothing, demand]), np.hstack([nothing, burden])
    runs = np.concatenate([none.astype(bool), current])
    cost = _units(prices, capacity) @ burden
    order = np.lexsort((value, cost, row >= 0, job))
    row, value, cost, runs = row[order], value[order], cost[order], runs[order]
    demand, burden = np.ascontiguousarray(demand[:, order]), np.ascontiguousarray(burden[:, order])
    count = count + 1
    first = np.cumsum(count) - count
    held = first.copy()
    now = np.flatnonzero(runs)
    held[np.repeat(np.arange(len(first)), count)[now]] = now
    up, down = _steps(value, demand, burden, cost, first, count)
    return Genes(
        row=row,
        value=value,
        demand=demand,
        burden=burden,
        cost=cost,
        prices=prices,
        capacity=np.maximum(capacity, 1e-12),
        first=first,
        count=count,
        column=column,
        up=up,
        down=down,
        held=held,
        group=np.arange(len(first)) * NEIGHBOURHOODS // max(1, len(first)),
        **rest,
    )


def _burden(limits: Limits) -> Floats:
    """Return (R, K) demands in which each GPU bears its share of keeping nodes awake.

    A node's power is a step in the GPUs of all options; one option gets the steps' mean slope.
    """
    burden = limits.demand.copy()
    for p, node_w in enumerate(limits.node_w):
        each_w = node_w[-1] / max(1, len(node_w) - 1)
        burden[len(limits.node_w) :] += each_w * limits.demand[p]
    return burden


def _units(prices: Floats, capacity: Floats) -> Floats:
    """Return (R,) what a unit costs when moves are ranked: never nothing.

    One per cent of even prices is added to given ones, for what the dual holds to be free.
    """
    even = 1.0 / np.maximum(capacity, 1e-12)
    total = float(prices @ np.maximum(capacity, 0.0))
    return np.asarray(prices / total + 0.01 * even) if total > 0 else even


def _steps(
    value: Floats,
    demand: Floats,
    burden: Floats,
    cost: Floats,
    first: Rows,
    count: Rows,
) -> tuple[Rows, Rows]:
    """Return the `up` (k,) and `down` (R, k) tables of `Genes`.

    Compares every row with the t-th row of its job, t by t: time k x the longest job, memory k.
    """
    start, length = np.repeat(first, count), np.repeat(count, count)
    up = np.arange(len(value))
    down = np.repeat(start[None, :], len(demand), axis=0)
    gained = np.zeros(len(value))
    lost = value / np.maximum(burden, 1e-300)
    for t in range(int(count.max(initial=0))):
        target = start + np.minimum(t, length - 1)
        gain, added = value[target] - value, np.maximum(cost[target] - cost, 1e-12)
        better = (gain > 0) & (gain / added > gained)
        up[better], gained[better] = target[better], (gain / added)[better]
        shrinks = (demand >= demand[:, target]).all(axis=0)
        freed = burden - burden[:, target]
        for r in range(len(demand)):
            loss = -gain / np.maximum(freed[r], 1e-300)
            milder = shrinks & (freed[r] > 0) & (loss < lost[r])
            down[r, milder], lost[r, milder] = target[milder], loss[milder]
    return up, down
