"""The operators on individuals that DEAP calls: repair, fill, crossover, mutation.

Repair and fill follow the price engine (`ronda.solvers.prices.fill`).
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from deap import tools

from ronda.formulations.genes.genome import Genes
from ronda.instances.base import Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.violation import ROUNDING
from ronda.solvers.prices.dual import Jobs
from ronda.solvers.prices.fill import (
    needed_blocks,
    spend,
)

CHANGED = 2
"""The number of jobs that a mutation changes."""

SPREAD = 0.2
"""The standard deviation of the lognormal disturbance of prices in the first generation."""


def repair(genes: Genes, genome: Rows, kept: Sequence[int] = ()) -> Rows:
    """Return a genome shrunk to fit within all limits, if that is possible.

    Jobs shrink along `Genes.down` of the most over-used resource. The step with the least loss per
    freed unit comes first. The jobs in `kept` shrink only where no other job can. Otherwise repair
    would often undo their growth, because one job's loss per unit is less than another's gain.
    """
    problem, rows = genes.problem, genome
    spared = np.zeros(problem.jobs, dtype=bool)
    spared[list(kept)] = True
    slack = ROUNDING * np.maximum(np.abs(problem.capacity), 1.0)
    while True:
        checkpoint()
        excess = problem.excess(rows, needed_blocks(problem, genes.prices, rows))
        over = excess > slack
        if not over.any():
            return rows
        most = int(np.where(over, excess / genes.scale, 0.0).argmax())
        fewer = _shrink(genes, rows, most, float(excess[most]), spared)
        if (fewer == rows).all():
            return rows
        rows = fewer


def _shrink(genes: Genes, rows: Rows, resource: int, excess: float, spared: Mask) -> Rows:
    """Take the steps down of least loss until the excess of a resource is freed."""
    target = genes.down[resource, rows]
    freed = genes.use[resource, rows] - genes.use[resource, target]
    if (freed[~spared] > 0).any():
        freed[spared] = 0.0
    steps = np.flatnonzero(freed > 0)
    lost = (genes.value[rows] - genes.value[target])[steps] / freed[steps]
    steps = steps[np.argsort(lost, kind="stable")]
    before = np.cumsum(freed[steps]) - freed[steps]
    hit = steps[before < excess]
    result = rows.copy()
    result[hit] = target[hit]
    return result


def fill_genome(genes: Genes, genome: Rows, exchanges: int) -> Rows:
    """Spend the free capacity of a feasible genome by steps and by exchanges of two jobs."""
    blocks = needed_blocks(genes.problem, genes.prices, genome)
    return spend(genes.problem, genes.prices, genome, blocks, exchanges)


def random_genome(genes: Genes, free: Sequence[int]) -> Rows:
    """Return a genome in which every job has a random row, or none, as far as the rows fit."""
    genome = np.full(genes.problem.jobs, -1)
    starts, must = genes.problem.start, genes.problem.must
    forced = np.flatnonzero(must)
    genome[forced] = starts[forced]
    for j in free:
        genome[j] = random.randrange(starts[j], starts[j + 1] + (not must[j]))
        genome[j] = -1 if genome[j] == starts[j + 1] else genome[j]
    return repair(genes, genome)


def respond(genes: Genes) -> Rows:
    """Return the jobs' best responses to disturbed prices, as far as the responses fit.

    Prices and the jobs' values are multiplied by lognormal factors of standard deviation `SPREAD`.
    """
    problem = genes.problem
    noise = [random.lognormvariate(0.0, SPREAD) for _ in range(problem.jobs + len(genes.prices))]
    favour = np.repeat(noise[: problem.jobs], np.diff(problem.start))
    liked = Jobs(replace(problem, value=problem.value * favour))
    return repair(genes, liked.losses(genes.prices * noise[problem.jobs :], np.inf, 0).best)


def mate(genes: Genes, one: Any, other: Any) -> tuple[Any, Any]:
    """Let two individuals swap each job's row with probability 1/2, and repair the first.

    The second child is not used by DEAP's (mu + lambda) algorithm.
    """
    tools.cxUniform(one, other, indpb=0.5)
    one[:] = repair(genes, np.array(one)).tolist()
    return one, other


def mutate(genes: Genes, individual: Any, *, free: Sequence[int]) -> tuple[Any]:
    """Change the batch, GPUs, clock or place of some jobs, then repair the genome."""
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
    """Return the fitness of individuals, after filling the best few in place.

    An individual that repair cannot make feasible gets a lower fitness than an empty plan.
    """
    if not individuals:
        return []
    population = np.array(individuals)
    worth = genes.worth(population)
    for i in np.argsort(-worth, kind="stable")[:improved].tolist():
        better = fill_genome(genes, population[i], exchanges)
        gained = float(genes.worth(better[None])[0])
        if gained > worth[i]:
            worth[i], individuals[i][:] = gained, better.tolist()
    return [(value,) for value in worth.tolist()]


def best_different(individuals: list[Any], size: int) -> list[Any]:
    """Return the best individuals without duplicates, unless there are too few different ones."""
    different = list({tuple(individual): individual for individual in individuals}.values())
    chosen: list[Any] = tools.selBest(different, size)
    return chosen + [random.choice(chosen) for _ in range(2 - len(chosen))]
