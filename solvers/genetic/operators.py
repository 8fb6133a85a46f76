"""What the search does to an individual: repair, fill, crossover, mutation; DEAP calls these.

Repair and fill are those of the price engine (`ronda.solvers.prices.fill`).
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from deap import tools

from ronda.formulations.genes.genome import Genes
from ronda.instances.arrays import Rows
from ronda.solvers.prices.fill import is_feasible, needed_blocks, spend, without_excess

CHANGED = 2
"""Jobs that a mutation changes."""


def repair(genes: Genes, genome: Rows, kept: Sequence[int] = ()) -> Rows:
    """Return the genome without the jobs that give least value for what is over-used.

    The jobs `kept` go only where the others do not suffice: what one job lost for another to grow
    is often worth less per unit than the growth, which would be taken back.
    """
    problem, prices = genes.problem, genes.prices
    blocks = needed_blocks(problem, prices, genome)
    if is_feasible(problem, genome, blocks):
        return genome
    must = problem.must.copy()
    must[list(kept)] = True
    for firm in (replace(problem, must=must), problem) if kept else (problem,):
        rows = without_excess(firm, genome, blocks)
        if is_feasible(problem, rows, needed_blocks(problem, prices, rows)):
            break
    return rows


def fill(genes: Genes, genome: Rows, exchanges: int) -> Rows:
    """Return the feasible genome with left capacity spent, and up to some exchanges of two jobs."""
    blocks = needed_blocks(genes.problem, genes.prices, genome)
    return spend(genes.problem, genes.prices, genome, blocks, exchanges)


def draw(genes: Genes, free: Sequence[int]) -> Rows:
    """Return a genome in which every job has a row at random, or none, as far as they fit."""
    genome = np.full(genes.problem.jobs, -1)
    starts, must = genes.problem.start, genes.problem.must
    forced = np.flatnonzero(must)
    genome[forced] = starts[forced]
    for j in free:
        genome[j] = random.randrange(starts[j], starts[j + 1] + (not must[j]))
        genome[j] = -1 if genome[j] == starts[j + 1] else genome[j]
    return repair(genes, genome)


def mate(genes: Genes, one: Any, other: Any) -> tuple[Any, Any]:
    """Let two individuals swap each job's row with probability 1/2, and repair the first.

    The second child is not used by DEAP's (mu + lambda) algorithm.
    """
    tools.cxUniform(one, other, indpb=0.5)
    one[:] = repair(genes, np.array(one)).tolist()
    return one, other


def mutate(genes: Genes, individual: Any, *, free: Sequence[int]) -> tuple[Any]:
    """Give some jobs another batch, other GPUs, another clock or place; what else follows."""
    genome = np.array(individual)
    hit = [random.choice(free) for _ in range(CHANGED)]
    for j in hit:
        attribute = random.randrange(len(genes.how))
        genome[j] = random.choice(genes.others(j, int(genome[j]), attribute))
    individual[:] = repair(genes, genome, hit).tolist()
    return (individual,)


def evaluate(
    genes: Genes, individuals: list[Any], *, improved: int, exchanges: int
) -> list[tuple[float]]:
    """Return what individuals are worth; the best few are filled first, and changed by that.

    One that no repair makes feasible is worth less than nobody running.
    """
    if not individuals:
        return []
    population = np.array(individuals)
    worth = genes.worth(population)
    for i in np.argsort(-worth, kind="stable")[:improved].tolist():
        better = fill(genes, population[i], exchanges)
        gained = float(genes.worth(better[None])[0])
        if gained > worth[i]:
            worth[i], individuals[i][:] = gained, better.tolist()
    return [(value,) for value in worth.tolist()]


def best_different(individuals: list[Any], size: int) -> list[Any]:
    """Return the best individuals, equal ones once; again only where there are too few."""
    different = list({tuple(individual): individual for individual in individuals}.values())
    chosen: list[Any] = tools.selBest(different, size)
    return chosen + [random.choice(chosen) for _ in range(2 - len(chosen))]
