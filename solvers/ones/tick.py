"""One generation of ONES: what the operators need to know, and how they follow one another."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ronda.formulations.ones.genome import (
    IDLE,
    best,
    counts,
    crossover,
    mutate,
    pad,
    refresh,
    scores,
)
from ronda.formulations.ones.reorder import reorder
from ronda.instances.arrays import Floats, Ints, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """What a generation is made with. J jobs, C GPUs.

    Attributes
    ----------
    deployed
        (C,) the genome that runs.
    ones_max, train_max
        (J,) GPUs that a job may keep, and R; at least `start` for jobs that may run at all.
    start
        (J,) GPUs that a job starts with: 1 in ONES.
    sizes
        (J, C + 1) the largest size of each job up to each number of GPUs, 0 for none.
    new, executed
        Numbers of the new jobs, first come first; of those with a prediction, least remaining
        time first.
    protected
        (J,) whether mutation spares the job.
    weights
        (J, C + 1) GPU-seconds to come of each job on each number of GPUs; 0 without prediction.
    """

    deployed: Ints
    ones_max: Ints
    train_max: Ints
    start: Ints
    sizes: Ints
    new: Ints
    executed: Ints
    protected: Mask
    weights: Floats


def first_population(tick: Tick, size: int, rng: Generator) -> Ints:
    """Return the first population: what runs, and new jobs in random order on the GPUs left.

    Each new job gets `start` GPUs. At the start of a run nothing is deployed, and this is the
    artifact's rule: a random permutation of the new jobs at genes 0, 1, 2, ...
    """
    population = np.repeat(tick.deployed[None], size, axis=0)
    idle = np.flatnonzero(tick.deployed == IDLE)
    for genome in population:
        order = rng.permutation(tick.new)
        taken = np.cumsum(tick.start[order])
        packed = np.repeat(order[taken <= len(idle)], tick.start[order[taken <= len(idle)]])
        genome[idle[: len(packed)]] = packed
    return population


def generation(
    population: Ints, tick: Tick, rng: Generator, *, crossed: float, mutated: float
) -> tuple[Ints, Floats]:
    """Return the next population, best first, and its scores (less is better).

    Refresh, uniform crossover of K/2 random pairs, mutation of every genome; pad all 3K; keep the
    K best. A score does not depend on the order of genes, so only those that are kept are put in
    order: the result is the same.

    Parameters
    ----------
    population
        (K, C) genomes of live jobs.
    tick
        The state of the jobs.
    rng
        Random state.
    crossed, mutated
        Probabilities that a gene is exchanged, and that a job is taken out.
    """
    size, jobs = len(population), len(tick.ones_max)
    kept = refresh(population, tick.ones_max)
    pairs = rng.random((size // 2, size)).argsort(axis=1)[:, :2]
    swap = rng.random((size // 2, population.shape[1])) < crossed
    children = crossover(kept[pairs[:, 0]], kept[pairs[:, 1]], swap, tick.ones_max)
    removed = (rng.random((size, jobs)) < mutated) & ~tick.protected
    candidates = np.concatenate((kept, children, mutate(kept, removed)))
    allocations = _possible(counts(candidates, jobs), tick)
    allocations = pad(
        allocations,
        population.shape[1],
        tick.new,
        tick.executed,
        tick.ones_max,
        tick.train_max,
        tick.start,
    )
    allocations = _possible(allocations, tick)
    score = scores(allocations, tick.weights)
    chosen = best(score, size)
    return reorder(allocations[chosen], tick.deployed), score[chosen]


def _possible(allocations: Ints, tick: Tick) -> Ints:
    """Return allocations cut down to sizes that the jobs may have."""
    return np.asarray(tick.sizes[np.arange(allocations.shape[1]), allocations])
