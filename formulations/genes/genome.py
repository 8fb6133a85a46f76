"""A round's options as genes: whole populations of assignments as integer arrays.

A genome has one gene per free job (one that has a choice): a row of the `Genes` table. Every job's
first row is "waits": value 0, no demand. Populations are (P, n) arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.allocation.limits import Limits
from ronda.formulations.genes.moving import PoolMoves
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Mask, Rows

Population = Rows

ROUNDING = 1e-9
"""Relative rounding allowed against a limit: sums of watts depend on their order."""


@dataclass(frozen=True, slots=True)
class Genes:
    """The choices of the free jobs of a round.

    The rows of free job i are ``first[i]:first[i] + count[i]``, cheapest first, "waits" before all
    others.

    * `row` (k,): row of the `OptionTable`, -1 for "waits"; `value` (k,): what it is worth.
    * `demand` (R, k): what it takes of each resource: GPUs of each pool, then watts if limited.
    * `burden` (R, k): the same, but with its share of keeping nodes awake among the watts, if
      others may sleep. Moves are ranked by it; `demand` and `step_w` count.
    * `cost` (k,): its burden at the `prices` (R,), plus a little so that nothing is free.
    * `capacity`, `limit` (R,): what is left for free jobs; the same and what rounding may add.
    * `column` (n,): index in the table's jobs of each free job.
    * `fixed` (J,): rows of the jobs without a choice, -1 elsewhere, worth `fixed_value` together.
    * `up` (k,): the better row of the job with the most value per added cost, else itself.
    * `down` (R, k): the row of the job that uses less of the resource, no more of any other, and
      loses the least value per unit freed; "waits" leads to itself.
    * `step_w`: for each pool (gpus + 1,) the watts of the nodes that 0, 1, ... GPUs of free jobs,
      beside those of fixed jobs, keep awake; empty if no node may sleep.
    * `held` (n,): the row that each job runs on now; "waits" if there is none.
    * `group` (n,): jobs of one neighbourhood (rack or node) that are inherited together.
    * `moving`: by pool, what it costs to move jobs that keep their option; empty: nothing.
    """

    row: Rows
    value: Floats
    demand: Floats
    burden: Floats
    cost: Floats
    prices: Floats
    capacity: Floats
    limit: Floats
    first: Rows
    count: Rows
    column: Rows
    fixed: Rows
    fixed_value: float
    up: Rows
    down: Rows
    step_w: tuple[Floats, ...]
    held: Rows
    group: Rows
    moving: tuple[PoolMoves, ...] = ()

    def __len__(self) -> int:
        """Return the number of genes (free jobs)."""
        return len(self.first)

    def values(self, population: Population) -> Floats:
        """Return the (P,) value of each individual's options, fixed jobs included."""
        return gathered(self.value, population) + self.fixed_value

    def worth(self, population: Population) -> Floats:
        """Return the (P,) objective of each individual: its values less what its moves cost."""
        values = self.values(population)
        if not self.moving:
            return values
        awake = self.awake(population)
        return values - sum(pool.cost(population, awake.get(pool.pool)) for pool in self.moving)

    def awake(self, population: Population) -> dict[int, Floats]:
        """Return, for pools whose nodes may sleep, (P,) how many of them power lets be awake.

        Those that the GPUs need, and as many more as the watts that are left can bear.
        """
        pools = [pool for pool in self.moving if pool.awake_w > 0]
        if not pools or not self.step_w:
            return {}
        sums = self.sums(population)
        tops = list(zip(self.limit, self.loads(sums), strict=True))[len(self.step_w) :]
        left_w = np.minimum.reduce([limit - load for limit, load in tops])
        found = {}
        for pool in pools:
            used_w = self.step_w[pool.pool].take(sums[pool.pool].astype(np.int64), mode="clip")
            found[pool.pool] = np.floor((left_w + used_w) / pool.awake_w + ROUNDING)
        return found

    def making_room(self, genome: Rows) -> Rows:
        """Return the genes of the running jobs that an individual moves to make room for others."""
        awake = self.awake(genome[None])
        moved = [pool.gene[pool.yielding(genome, awake.get(pool.pool))] for pool in self.moving]
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *moved]))

    def sums(self, population: Population) -> list[Floats]:
        """Return for each resource the (P,) demand of each individual's free jobs."""
        return [gathered(d, population) for d in self.demand]

    def loads(self, sums: Sequence[Floats]) -> list[Floats]:
        """Return what `sums` of demands load the resources with, node steps included."""
        return charged(sums, self.step_w)

    def inside(self, sums: Sequence[Floats]) -> Mask:
        """Tell where `sums` of demands, of any shape, respect every limit."""
        loads = self.loads(sums)
        inside = [load <= top for load, top in zip(loads, self.limit, strict=True)]
        return np.asarray(np.logical_and.reduce(inside))

    def feasible(self, population: Population) -> Mask:
        """Tell (P,) which individuals respect every limit."""
        return self.inside(self.sums(population))

    @property
    def surplus(self) -> Floats:
        """Return (k,) the value of every row less its price."""
        return np.asarray(self.value - self.prices @ self.burden)

    def favourites(self, worth: Floats) -> Population:
        """Return (..., n) the first of each gene's rows of the greatest worth (..., k).

        With worth = surplus these are the best responses to the prices.
        """
        return _favourites(worth, self.first, self.count)

    def rows(self, genome: Rows) -> Rows:
        """Return the (J,) table row of every job, -1 where it waits."""
        rows = self.fixed.copy()
        rows[self.column] = self.row[genome]
        return rows

    def genome(self, rows: Rows) -> Rows:
        """Return the (n,) genome of a (J,) assignment; rows that are not genes become "waits"."""
        gene = np.full(max(int(rows.max(initial=-1)), int(self.row.max(initial=-1))) + 1, -1)
        options = np.flatnonzero(self.row >= 0)
        gene[self.row[options]] = options
        wanted = rows[self.column]
        found = np.where(wanted >= 0, gene[wanted], -1)
        return np.where(found >= 0, found, self.first)


def gathered(column: Floats, population: Population) -> Floats:
    """Return the (P,) sum of a (k,) column over each individual's rows.

    Clipping only spares the check of the indices, which are rows: a fifth of the time.
    """
    return np.asarray(column.take(population, mode="clip").sum(axis=1))


def charged(sums: Sequence[Floats], step_w: Sequence[Floats]) -> list[Floats]:
    """Return the sums with the steps of all pools (the first sums) added to watts (the others)."""
    loads = list(sums)
    for gpus, steps in zip(sums, step_w, strict=False):
        node_w = steps.take(gpus.astype(np.int64), mode="clip")
        for r in range(len(step_w), len(loads)):
            loads[r] = loads[r] + node_w
    return loads


def favourites(table: OptionTable, values: Floats) -> Rows:
    """Return (J,) each job's most valuable row above 0, or its only one if it must run; else -1."""
    worth = np.where(table.must_run[table.job], np.inf, np.where(values > 0, values, -np.inf))
    count = np.diff(table.start)
    some = np.flatnonzero(count)
    rows = np.full(len(table.jobs), -1)
    if len(some):
        best = _favourites(worth, table.start[some], count[some])
        rows[some] = np.where(worth[best] > 0, best, -1)
    return rows


def _favourites(worth: Floats, first: Rows, count: Rows) -> Rows:
    """Return (..., n) the first row of the greatest worth (..., k) of each segment of rows."""
    best = np.repeat(np.maximum.reduceat(worth, first, axis=-1), count, axis=-1)
    index = np.where(worth == best, np.arange(worth.shape[-1]), worth.shape[-1])
    return np.asarray(np.minimum.reduceat(index, first, axis=-1))


def within(table: OptionTable, rows: Rows, limits: Limits) -> bool:
    """Tell whether a (J,) assignment respects the limits, but for rounding."""
    sums = list(limits.demand[:, rows[rows >= 0]].sum(axis=1))
    loads = np.array(charged(sums, limits.node_w))
    return bool((loads <= limits.capacity + rounding(limits.capacity)).all())


def rounding(capacity: Floats) -> Floats:
    """Return (R,) what rounding may add to the use of each resource."""
    return np.asarray(ROUNDING * np.maximum(1.0, np.abs(capacity)))
