"""Operators over jobs for whole populations; what they return may need repair."""

import numpy as np
from numpy.random import Generator

from ronda.formulations.genes.genome import Genes, Population
from ronda.instances.arrays import Floats, Rows

GENES_HIT = 2.0  # genes of a mutated individual redrawn on average, and as many stepped
REVERTED = 4.0  # genes that are reverted on average
BLOCK = 1 << 22  # numbers that one block of priced draws may hold


def tournament(size: int, contestants: int, rng: Generator) -> Rows:
    """Return (size,) lines of a population that is sorted best first: winners of tournaments.

    DEAP's own selection draws from the global `random`, where other threads may draw as well:
    a search would not be repeatable.
    """
    return np.asarray(rng.integers(size, size=(size, contestants)).min(axis=1))


def draw(genes: Genes, size: int, rng: Generator) -> Population:
    """Return (size, n) genomes with every gene drawn evenly from its job's rows."""
    share = rng.random((size, len(genes)))
    return np.asarray(genes.first + (share * genes.count).astype(np.int64))


def draw_priced(genes: Genes, size: int, spread: float, rng: Generator) -> Population:
    """Return (size, n) genomes that are best responses to disturbed prices.

    In each individual every job takes the row of the most value beyond its cost; prices and the
    jobs' values are multiplied by lognormal factors of standard deviation `spread`. Without a
    disturbance that is the solution of the Lagrangian relaxation, which uses the priced
    resources almost fully.
    """
    block = max(1, BLOCK // len(genes.row))
    parts = [
        _best_response(genes, min(block, size - done), spread, rng)
        for done in range(0, size, block)
    ]
    return np.concatenate(parts) if parts else np.empty((0, len(genes)), dtype=np.int64)


def _best_response(genes: Genes, size: int, spread: float, rng: Generator) -> Population:
    prices = genes.prices * np.exp(spread * rng.standard_normal((size, len(genes.prices))))
    favour = np.exp(spread * rng.standard_normal((size, len(genes))))
    surplus = genes.value * np.repeat(favour, genes.count, axis=1) - prices @ genes.burden
    return genes.favourites(surplus)


def crossover(
    mothers: Population, fathers: Population, probability: float, rng: Generator
) -> Population:
    """Return children that take each gene from either parent; a pair not crossed, its mother's."""
    size, n = mothers.shape
    crossed = rng.random((size, 1)) < probability
    return np.where(crossed & (rng.random((size, n), dtype=np.float32) < 0.5), fathers, mothers)


def crossover_groups(
    genes: Genes, mothers: Population, fathers: Population, rng: Generator
) -> Population:
    """Return children that take each neighbourhood of jobs (`Genes.group`) from either parent.

    Jobs of one rack or node compete for the same GPUs: who stays there and who is pushed out is
    inherited together.
    """
    groups = int(genes.group.max(initial=0)) + 1
    fathers_groups = rng.random((len(mothers), groups)) < 0.5
    return np.where(fathers_groups.take(genes.group, axis=1), fathers, mothers)


def revert(genes: Genes, population: Population, to: Population, rng: Generator) -> Population:
    """Return the population with some jobs of each individual back on the rows `to` (n,).

    These are what jobs run on now, or what they would choose at the prices.
    """
    rate = min(0.5, REVERTED / len(genes))
    return np.where(rng.random(population.shape) < rate, to, population)


def mutate(genes: Genes, population: Population, probability: float, rng: Generator) -> Population:
    """Return the population with a share `probability` of its individuals changed.

    On average, two genes of such an individual are redrawn and two step to the next cheaper
    or dearer row of their job; then two of its jobs swap what they use.
    """
    hit = np.flatnonzero(rng.random(len(population)) < probability)
    changed = population[hit]
    rate = min(0.5, GENES_HIT / len(genes))
    lot = rng.random(changed.shape)
    changed = np.where(lot < rate, draw(genes, len(hit), rng), changed)
    step = (lot > 1.0 - rate / 2).astype(np.int64) - ((lot > 1.0 - rate) & (lot <= 1.0 - rate / 2))
    changed = np.clip(changed + step, genes.first, genes.first + genes.count - 1)
    result = population.copy()
    result[hit] = swap(genes, changed, rng)
    return result


def swap(genes: Genes, population: Population, rng: Generator) -> Population:
    """Return the population with two jobs of each individual having swapped what they use.

    Each of the two takes its own row whose demand is the nearest to the other's.
    """
    size, n = population.shape
    lines = np.arange(size)
    one = rng.integers(n, size=(size,))
    other = (one + rng.integers(1, max(2, n), size=(size,))) % n
    result = population.copy()
    result[lines, one] = _nearest(genes, one, population[lines, other])
    result[lines, other] = _nearest(genes, other, population[lines, one])
    return result


def _nearest(genes: Genes, job: Rows, row: Rows) -> Rows:
    """Return (P,) the row of each `job` whose demand is the nearest to that of each `row`."""
    offset = np.minimum(np.arange(genes.count.max())[None, :], genes.count[job][:, None] - 1)
    rows = genes.first[job][:, None] + offset
    distance = np.zeros(rows.shape)
    for capacity, demand in zip(genes.capacity, genes.demand, strict=True):
        distance += np.abs(demand.take(rows) - demand.take(row)[:, None]) / capacity
    return np.asarray(rows[np.arange(len(rows)), distance.argmin(axis=1)])


def survivors(population: Population, worth: Floats, keys: Rows, size: int) -> Rows:
    """Return the indices of the `size` best individuals, best first, equal ones counted once.

    Equal ones follow only where there are too few different ones. So the best is never lost.
    `keys` (k,) is a random number for each row: two genomes are taken as equal if the numbers of
    their rows have the same sum (Zobrist hashing; 64 bits, so a mistake is next to impossible).
    """
    order = np.argsort(-worth, kind="stable")
    _, first = np.unique(keys.take(population[order]).sum(axis=1), return_index=True)
    again = np.ones(len(order), dtype=bool)
    again[first] = False
    return np.concatenate([order[~again], order[again]])[:size]
