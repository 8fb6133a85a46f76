"""One generation of ONES: what the operators need to know, and how they follow one another."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ronda.formulations.clock import checkpoint
from ronda.formulations.ones.genome import (
    IDLE,
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

    `deployed` (C,) runs now. By job: `ones_max` and `train_max`, the GPUs that it may keep, and R
    (at least `start` for jobs that may run at all); `start`, what it begins with, 1 in ONES;
    `sizes` (J, C + 1), the largest size up to each number of GPUs, 0 for none; `protected` from
    mutation; `weights` (J, C + 1), GPU-seconds to come on each number of GPUs, 0 without
    prediction. `new` are numbers of jobs, first come first; `executed` those with a prediction,
    least remaining time first.
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

    With nothing deployed this is the artifact's rule: a random permutation of the new jobs.
    """
    population = np.repeat(tick.deployed[None], size, axis=0)
    idle = np.flatnonzero(tick.deployed == IDLE)
    for genome in population:
        checkpoint()
        order = rng.permutation(tick.new)
        taken = np.cumsum(tick.start[order])
        packed = np.repeat(order[taken <= len(idle)], tick.start[order[taken <= len(idle)]])
        genome[idle[: len(packed)]] = packed
    return population


def generation(
    population: Ints, tick: Tick, rng: Generator, *, crossed: float, mutated: float
) -> tuple[Ints, Floats]:
    """Return the next population (K, C), best first, and its scores (less is better).

    Refresh, uniform crossover of K/2 random pairs (a gene is exchanged with probability `crossed`),
    mutation of every genome (a job is taken out with `mutated`); pad all 3K; keep the K best. A
    score does not depend on the order of genes, so only those that are kept are put in order.
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
    chosen = np.argsort(score, kind="stable")[:size]
    return reorder(allocations[chosen], tick.deployed), score[chosen]


def _possible(allocations: Ints, tick: Tick) -> Ints:
    """Return allocations cut down to sizes that the jobs may have."""
    return np.asarray(tick.sizes[np.arange(allocations.shape[1]), allocations])
