"""A tick of ONES: the expected speed and work of every job, and one generation of the search.

The speed of a job is known only on the numbers of GPUs on which it has run. Other speeds are
interpolated linearly between these points and ``X(0) = 0``, so a job that has run on one number of
GPUs is expected to scale linearly. The score of a schedule, SRUF, is the sum of the remaining
GPU-seconds of the jobs that it runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ronda.instances.base import Floats, Ints, Mask
from ronda.instances.clock import checkpoint
from ronda.systems.ones.genome import IDLE, counts, crossover, mutate, pad, refresh, scores
from ronda.systems.ones.limits import Candidate
from ronda.systems.ones.memory import OnesMemory, seen
from ronda.systems.ones.progress import ProgressPredictor
from ronda.systems.ones.reorder import reorder
from ronda.systems.ones.subproblem import Subproblem


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """The inputs of a generation, for J jobs and C GPUs.

    `deployed` (C,) is the running genome. These are per job: `ones_max` is the GPUs that it may
    keep, `train_max` its limit R (at least `start`), and `start` its GPUs at the start, 1 in ONES.
    `sizes` (J, C + 1) is the largest possible size up to each number of GPUs, 0 for none.
    `protected` jobs are safe from mutation. `weights` (J, C + 1) is the remaining GPU-seconds on
    each number of GPUs, 0 without a prediction. `new` has the numbers of new jobs in order of
    arrival, and `executed` those of jobs with a prediction, least remaining time first.
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


def tick_of(
    problem: Subproblem,
    found: list[Candidate],
    memory: OnesMemory,
    predictor: ProgressPredictor,
    rng: Generator,
) -> Tick:
    """Return the inputs of a generation, with one sample of each executed job's progress."""
    capacity, gpus = len(problem.node), np.arange(len(problem.node) + 1)
    executed = [j for j, each in enumerate(found) if each.executed]
    weights = np.zeros((len(found), capacity + 1))
    remaining_s = np.zeros(len(executed))
    if executed:
        rows = [seen(found[j].job, found[j].known.samples) for j in executed]
        to_come = predictor.predict(rows).work_left(rng)
        for k, j in enumerate(executed):
            checkpoint()
            job, on = found[j].job, found[j].job.gpus or found[j].start
            # A job from before ONES took over is measured on its present or its first GPUs.
            known = memory.speeds.get(job.id) or {on: [job.samples_per_s(on)]}
            speed = speeds(known, capacity)
            samples = found[j].known.samples * to_come[k]
            weights[j, 1:] = samples * gpus[1:] / speed[1:]
            remaining_s[k] = samples / speed[1]
    start = _integers(each.start for each in found)
    return Tick(
        deployed=problem.deployed,
        ones_max=_integers(min(each.target, each.most) for each in found),
        train_max=np.maximum(_integers(min(each.known.limit, each.most) for each in found), start),
        start=start,
        sizes=np.array([job.sizes[np.minimum(gpus, len(job.sizes) - 1)] for job in problem.jobs]),
        new=_integers(j for j, s in enumerate(found) if s.new and s.start <= capacity),
        executed=_integers(executed)[np.argsort(remaining_s, kind="stable")],
        protected=np.array([not each.executed for each in found]),
        weights=weights,
    )


def _integers(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


def speeds(measured: Mapping[int, Sequence[float]], most: int) -> Floats:
    """Return the expected samples per second on 0, 1, ... `most` GPUs, shape (most + 1,).

    `measured` has at least one speed, from the latest epochs on each number of GPUs.
    """
    size = np.array([0, *sorted(measured)], dtype=float)
    mean = np.array([0.0, *(np.mean(measured[c]) for c in sorted(measured))])
    gpus = np.arange(most + 1, dtype=float)
    found: Floats = np.interp(gpus, size, mean)
    slope = (mean[-1] - mean[-2]) / (size[-1] - size[-2])
    found = np.where(gpus > size[-1], mean[-1] + slope * (gpus - size[-1]), found)
    # Falling lines end at a thousandth of the slowest measurement.
    found[1:] = np.maximum(found[1:], 1e-3 * mean[1:].min())
    return found


def first_population(tick: Tick, size: int, rng: Generator) -> Ints:
    """Return the first population: running jobs, and new jobs in random order on idle GPUs.

    Without running jobs this is the artifact's rule, a random permutation of the new jobs.
    """
    population = np.repeat(tick.deployed[None], size, axis=0)
    idle = np.flatnonzero(tick.deployed == IDLE)
    for genome in population:
        checkpoint()
        order = rng.permutation(tick.new)
        order = order[np.cumsum(tick.start[order]) <= len(idle)]
        packed = np.repeat(order, tick.start[order])
        genome[idle[: len(packed)]] = packed
    return population


def generation(
    population: Ints, tick: Tick, rng: Generator, *, crossed: float, mutated: float
) -> tuple[Ints, Floats]:
    """Return the next population (K, C), best first, and its scores (lower is better).

    A generation refreshes genomes, crosses K/2 random pairs (a gene is exchanged with probability
    `crossed`), mutates every genome (a job is removed with probability `mutated`), pads all 3K
    genomes and keeps the K best. A score does not depend on the order of genes, so only the kept
    genomes are put in order.
    """
    size, jobs = len(population), len(tick.ones_max)
    kept = refresh(population, tick.ones_max)
    pairs = rng.random((size // 2, size)).argsort(axis=1)[:, :2]
    swap = rng.random((size // 2, population.shape[1])) < crossed
    children = crossover(kept[pairs[:, 0]], kept[pairs[:, 1]], swap, tick.ones_max)
    removed = (rng.random((size, jobs)) < mutated) & ~tick.protected
    candidates = np.concatenate((kept, children, mutate(kept, removed)))
    allocations = _possible(counts(candidates, jobs), tick)
    limits = (tick.ones_max, tick.train_max, tick.start)
    allocations = pad(allocations, population.shape[1], tick.new, tick.executed, *limits)
    allocations = _possible(allocations, tick)
    score = scores(allocations, tick.weights)
    chosen = np.argsort(score, kind="stable")[:size]
    return reorder(allocations[chosen], tick.deployed), score[chosen]


def _possible(allocations: Ints, tick: Tick) -> Ints:
    return np.asarray(tick.sizes[np.arange(allocations.shape[1]), allocations])
