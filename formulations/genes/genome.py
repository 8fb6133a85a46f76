"""Genes, which are the choices of a round's jobs as rows of the round's separable problem.

A genome (J,) gives each job one of its rows, or -1 for none. A row is a batch, a number of GPUs and
a clock; a change of one of these leads to the row that is nearest in the others. Populations are
arrays of shape (P, J).
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.genes.move_cost import PoolMoves
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.violation import ROUNDING


@dataclass(frozen=True)
class Genes:
    """The choices of the jobs of a separable problem.

    * `prices` (R,) are the prices per unit of each resource; they guide repair and fill.
    * `how` (A, K) are the attributes in which a job's rows differ, each on a scale of its own.
    * `moving` has, per pool, the costs of moving jobs that keep their option; empty for no costs.
    """

    problem: Separable
    prices: Floats
    how: Floats
    moving: tuple[PoolMoves, ...] = ()
    known: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)  # others()

    @cached_property
    def value(self) -> Floats:
        """The value of each row, shape (K + 1,); the last entry stands for no row and is 0."""
        return np.append(self.problem.value, 0.0)

    @cached_property
    def use(self) -> Floats:
        """The use of each resource by each row, shape (R, K + 1); the last column is 0."""
        return np.pad(self.problem.use.dense(), ((0, 0), (0, 1)))

    @cached_property
    def scale(self) -> Floats:
        """The unit of excesses, the capacity or the greatest use if that is more, shape (R,)."""
        use = np.abs(self.use).max(axis=1)
        return np.asarray(np.maximum(np.maximum(np.abs(self.problem.capacity), use), 1e-300))

    @cached_property
    def down(self) -> Rows:
        """The row to which a job shrinks from each row to free each resource, shape (R, K + 1).

        The smaller row uses less of that resource and no more of any other, and loses the least
        value per freed unit; -1 is no row. A row from which its job cannot shrink leads to itself.
        """
        return _down(self)

    @property
    def free(self) -> Rows:
        """The jobs that have a choice, shape (F,)."""
        choices = np.diff(self.problem.start) + ~self.problem.must
        return np.flatnonzero(choices > 1)

    def others(self, job: int, row: int, attribute: int) -> tuple[int, ...]:
        """Return the rows that a job of `free` reaches by a change of one attribute.

        For each other value of the attribute, it reaches the row that is nearest in all other
        attributes; it also reaches no row (-1) if it may wait. A job that waits, or has only one
        value, reaches all its rows.
        """
        key = job, row, attribute
        if key not in self.known:
            self.known[key] = self._others(*key)
        return self.known[key]

    def _others(self, job: int, row: int, attribute: int) -> tuple[int, ...]:
        own = np.arange(self.problem.start[job], self.problem.start[job + 1])
        if row < 0:
            return tuple(own.tolist())
        wait = () if self.problem.must[job] else (-1,)
        rows = own[self.how[attribute, own] != self.how[attribute, row]]
        if not len(rows):
            return (*own[own != row].tolist(), *wait)
        away = np.abs(self.how[:, rows] - self.how[:, [row]])
        far = np.delete(away, attribute, axis=0).sum(axis=0)
        order = np.lexsort((rows, far))
        _, first = np.unique(self.how[attribute, rows[order]], return_index=True)
        return (*rows[order[first]].tolist(), *wait)

    def worth(self, population: Rows) -> Floats:
        """Return the value of each individual less the cost of its moves, shape (P,)."""
        worth = self.value[population].sum(axis=1)
        if self.moving:
            awake = self.awake(population)
            worth -= sum(pool.cost(population, awake.get(pool.pool)) for pool in self.moving)
        return np.asarray(worth)

    def awake(self, population: Rows) -> dict[int, Floats]:
        """Return the number of nodes that may be awake under power limits (P,), per pool.

        Only pools whose nodes may sleep have an entry. The number covers the nodes that the GPUs
        need, and as many more as the remaining watts allow.
        """
        pools = [pool for pool in self.moving if len(pool.awake_w)]
        if not pools:
            return {}
        gpus = {p.pool: p.gpus[population].sum(axis=1) for p in pools}
        nodes = {p.pool: np.ceil(gpus[p.pool] / p.gpus_per_node) for p in pools}
        left = pools[0].cap[:, None] - pools[0].extra[:, population].sum(axis=2)
        left -= sum(nodes[p.pool] * p.awake_w[:, None] for p in pools)
        more = {p.pool: np.full(len(population), np.inf) for p in pools}
        for p in pools:
            for r in np.flatnonzero(p.awake_w > 0).tolist():
                of_row = np.floor(left[r] / p.awake_w[r] + ROUNDING)
                more[p.pool] = np.minimum(more[p.pool], of_row)
        return {pool: nodes[pool] + more[pool] for pool in nodes}

    def making_room(self, genome: Rows) -> Rows:
        """Return the running jobs that a genome moves to make room for others."""
        awake = self.awake(genome[None])
        moved = [pool.job[pool.yielding(genome, awake.get(pool.pool))] for pool in self.moving]
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *moved]))


def _down(genes: Genes) -> Rows:
    start, must, rows = genes.problem.start, genes.problem.must, len(genes.problem.value)
    count = np.diff(start)
    job = np.repeat(np.arange(len(count)), count)
    first, last = start[job], count[job] - 1
    down = np.tile(np.append(np.arange(rows), -1), (len(genes.use), 1))
    lost = np.full((len(genes.use), rows), np.inf)
    use, value = genes.use[:, :-1], genes.value[:-1]
    ways = [first + np.minimum(t, last) for t in range(int(count.max(initial=0)))]
    for target in (*ways, np.where(must[job], np.arange(rows), -1)):
        checkpoint()
        freed = use - genes.use[:, target]
        shrinks = (freed >= 0).all(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = (value - genes.value[target]) / freed
        milder = shrinks & (freed > 0) & (loss < lost)
        down[:, :-1] = np.where(milder, target, down[:, :-1])
        lost = np.where(milder, loss, lost)
    return down


def genes(case: Case, problem: Separable, prices: Floats) -> Genes:
    """Return the genes of a round, with the batch, GPUs, clock and place of each option."""
    table, rows = case.table, case.rows
    place = 3.0 * table.pool[rows] + table.span[rows]
    how = [np.log2(table.batch[rows]), np.log2(table.gpus[rows]), table.clock[rows], place]
    return Genes(problem, prices, np.array(how))


def genome_of(case: Case, rows: Rows) -> Rows:
    """Return the genome (J,) for table `rows` (J,), with -1 where the case lacks the row."""
    if not len(case.rows):
        return np.full(len(rows), -1)
    at = np.minimum(np.searchsorted(case.rows, rows), len(case.rows) - 1)
    return np.where((rows >= 0) & (case.rows[at] == rows), at, -1)


def table_rows(case: Case, genome: Rows) -> Rows:
    """Return the table rows (J,) of a `genome` (J,)."""
    return np.where(genome >= 0, np.append(case.rows, -1)[genome], -1)
