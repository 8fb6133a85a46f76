"""A round's options as genes: whole populations of assignments as integer arrays.

A genome has one gene per free job (one that has a choice); its value is a row of the `Genes`
table. Every job's first row is "waits": value 0, no demand. Populations are (P, n) arrays; all
functions work on all individuals at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.limits import Floats, Limits
from ronda.formulations.options import OptionTable

Population = NDArray[np.int64]

ROUNDING = 1e-9
"""Relative rounding allowed against a limit: sums of watts depend on their order."""


@dataclass(frozen=True, slots=True)
class Genes:
    """The choices of the free jobs of a round.

    The rows of free job i are ``first[i]:first[i] + count[i]``, cheapest first, "waits" before
    all others.

    Attributes
    ----------
    row
        (k,) row of the `OptionTable`, -1 for "waits".
    value
        (k,) what the row is worth.
    demand
        (R, k) what it takes of each resource: GPUs of each pool, then watts if they are limited.
    burden
        (R, k) the same, but with its share of keeping nodes awake among the watts, if others may
        sleep. Moves are ranked by it; `demand` and `step_w` count.
    cost
        (k,) its burden at the prices, plus a little so that nothing is free.
    prices
        (R,) value of a unit of each resource.
    capacity, limit
        (R,) what is left for the free jobs; the same and what rounding may add.
    first, count
        (n,) where each free job's rows begin and how many it has.
    column
        (n,) index in the table's jobs of each free job.
    fixed
        (J,) rows of the jobs without a choice (must-run jobs), -1 elsewhere.
    fixed_value
        What the fixed jobs are worth together.
    up
        (k,) the better row of the same job with the most value per added cost, else itself.
    down
        (R, k) the row of the same job that uses less of the resource, no more of any other, and
        loses the least value per unit freed; "waits" leads to itself.
    step_w
        For each pool (gpus + 1,) the watts of the nodes that so many GPUs of free jobs, beside
        those of fixed jobs, keep awake; empty if no node may sleep.
    """

    row: NDArray[np.int64]
    value: Floats
    demand: Floats
    burden: Floats
    cost: Floats
    prices: Floats
    capacity: Floats
    limit: Floats
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    column: NDArray[np.int64]
    fixed: NDArray[np.int64]
    fixed_value: float
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    step_w: tuple[Floats, ...]

    def __len__(self) -> int:
        """Return the number of genes (free jobs)."""
        return len(self.first)

    def values(self, population: Population) -> Floats:
        """Return the (P,) objective of each individual, fixed jobs included."""
        return np.asarray(self.value.take(population).sum(axis=1) + self.fixed_value)

    def sums(self, population: Population) -> list[Floats]:
        """Return for each resource the (P,) demand of each individual's free jobs."""
        return [d.take(population).sum(axis=1) for d in self.demand]

    def loads(self, sums: Sequence[Floats]) -> list[Floats]:
        """Return what `sums` of demands load the resources with, node steps included."""
        return charged(sums, self.step_w)

    def feasible(self, population: Population) -> NDArray[np.bool_]:
        """Tell (P,) which individuals respect every limit."""
        loads = np.array(self.loads(self.sums(population)))
        return np.asarray((loads <= self.limit[:, None]).all(axis=0))

    def rows(self, genome: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the (J,) table row of every job, -1 where it waits."""
        rows = self.fixed.copy()
        rows[self.column] = self.row[genome]
        return rows

    def genome(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the (n,) genome of a (J,) assignment; rows that are not genes become "waits"."""
        gene = np.full(max(int(rows.max(initial=-1)), int(self.row.max(initial=-1))) + 1, -1)
        options = np.flatnonzero(self.row >= 0)
        gene[self.row[options]] = options
        wanted = rows[self.column]
        found = np.where(wanted >= 0, gene[wanted], -1)
        return np.where(found >= 0, found, self.first)


def charged(sums: Sequence[Floats], step_w: Sequence[Floats]) -> list[Floats]:
    """Return the sums with the steps of all pools (the first sums) added to watts (the last)."""
    loads = list(sums)
    for gpus, steps in zip(sums, step_w, strict=False):
        loads[-1] = loads[-1] + steps.take(gpus.astype(np.int64), mode="clip")
    return loads


def favourites(table: OptionTable, values: Floats) -> NDArray[np.int64]:
    """Return (J,) the row that each job would take were there no limits, -1 for none.

    That is the most valuable one above 0, the first of equal ones; for jobs that must run, their
    only one.
    """
    worth = np.where(table.must_run[table.job], np.inf, np.where(values > 0, values, -np.inf))
    order = np.lexsort((np.arange(len(worth)), -worth, table.job))
    jobs, first = np.unique(table.job[order], return_index=True)
    rows = np.full(len(table.jobs), -1)
    rows[jobs] = np.where(worth[order[first]] > 0, order[first], -1)
    return rows


def within(table: OptionTable, rows: NDArray[np.int64], limits: Limits) -> bool:
    """Tell whether a (J,) assignment respects the limits, but for rounding."""
    sums = list(limits.demand[:, rows[rows >= 0]].sum(axis=1))
    loads = np.array(charged(sums, limits.node_w))
    return bool((loads <= limits.capacity + rounding(limits)).all())


def rounding(limits: Limits) -> Floats:
    """Return (R,) what rounding may add to the use of each resource."""
    return np.asarray(ROUNDING * np.maximum(1.0, np.abs(limits.capacity)))


def genes(
    table: OptionTable,
    values: Floats,
    limits: Limits,
    prices: Mapping[str, float] | None = None,
) -> Genes:
    """Cast a round's options as genes.

    Rows that can be in no best plan are left out: worth nothing, or more than the capacity that
    the must-run jobs leave. A job without any row left has no gene.

    Parameters
    ----------
    table
        The options.
    values
        (K,) what each is worth; not running is worth 0.
    limits
        What all together may use.
    prices
        Value of a unit of each resource, by name (from a dual bound). They only guide moves;
        without them all resources are taken as equally scarce, a unit at 1 / capacity.
    """
    must = table.must_run[table.job]
    fixed = np.full(len(table.jobs), -1)
    fixed[table.job[must]] = np.flatnonzero(must)
    demand, burden = limits.demand, _burden(limits)
    held = demand[: len(limits.node_w), must].sum(axis=1).astype(np.int64).tolist()
    step_w = [w[g:] if g < len(w) else w[-1:] for w, g in zip(limits.node_w, held, strict=True)]
    capacity = limits.capacity - demand[:, must].sum(axis=1)
    limit = capacity + rounding(limits)
    alone = np.array(charged(list(demand), step_w))
    fits = (alone <= limit[:, None]).all(axis=0)
    keep = np.flatnonzero(~must & fits & np.isfinite(values) & (values > 0))
    column, count = np.unique(table.job[keep], return_counts=True)

    unit = np.array([max(0.0, (prices or {}).get(name, 0.0)) for name in limits.names])
    row = np.concatenate([np.full(len(column), -1), keep])
    job = np.concatenate([column, table.job[keep]])
    value = np.concatenate([np.zeros(len(column)), values[keep]])
    nothing = np.zeros((len(capacity), len(column)))
    demand = np.hstack([nothing, demand[:, keep]])
    burden = np.hstack([nothing, burden[:, keep]])
    cost = _units(unit, capacity) @ burden
    order = np.lexsort((value, cost, row >= 0, job))
    row, value, cost = row[order], value[order], cost[order]
    demand, burden = np.ascontiguousarray(demand[:, order]), np.ascontiguousarray(burden[:, order])
    count = count + 1
    first = np.cumsum(count) - count
    up, down = _steps(value, demand, burden, cost, first, count)
    return Genes(
        row=row,
        value=value,
        demand=demand,
        burden=burden,
        cost=cost,
        prices=unit,
        capacity=np.maximum(capacity, 1e-12),
        limit=limit,
        first=first,
        count=count,
        column=column,
        fixed=fixed,
        fixed_value=float(values[must].sum()),
        up=up,
        down=down,
        step_w=tuple(step_w),
    )


def _burden(limits: Limits) -> Floats:
    """Return (R, K) demands in which each GPU bears its share of keeping nodes awake.

    A node's power is a step in the GPUs that all options together use; a single option gets the
    mean slope of the steps.
    """
    burden = limits.demand.copy()
    for p, node_w in enumerate(limits.node_w):
        burden[-1] += node_w[-1] / max(1, len(node_w) - 1) * limits.demand[p]
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
    first: NDArray[np.int64],
    count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
