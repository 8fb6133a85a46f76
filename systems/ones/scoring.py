"""A tick of ONES: the expected speed and work of every job, and one generation of the search.

Speed is known only for the numbers of GPUs that a job has run on. Others are read off straight
lines through these points and ``X(0) = 0``: a job that has run on one size is expected to scale
linearly. The score of a schedule, SRUF, sums the GPU-seconds to come of the jobs that it runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ronda.instances.arrays import Floats, Ints, Mask
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


def tick_of(
    problem: Subproblem,
    found: list[Candidate],
    memory: OnesMemory,
    predictor: ProgressPredictor,
    rng: Generator,
) -> Tick:
    """Return the inputs of a generation; the progress of each executed job is sampled once."""
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
            # One that ran before ONES took over is measured on what it has, or would start on.
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
    """Return (most + 1,) the samples per second expected on 0, 1, ... `most` GPUs.

    `measured` has the speeds of the last epochs on each number of GPUs, at least one.
    """
    size = np.array([0, *sorted(measured)], dtype=float)
    mean = np.array([0.0, *(np.mean(measured[c]) for c in sorted(measured))])
    gpus = np.arange(most + 1, dtype=float)
    found: Floats = np.interp(gpus, size, mean)
    slope = (mean[-1] - mean[-2]) / (size[-1] - size[-2])
    found = np.where(gpus > size[-1], mean[-1] + slope * (gpus - size[-1]), found)
    # Lines that fall end at a thousandth of the slowest measurement.
    found[1:] = np.maximum(found[1:], 1e-3 * mean[1:].min())
    return found


def first_population(tick: Tick, size: int, rng: Generator) -> Ints:
    """Return the first population: running jobs, and new ones in random order on the GPUs left.

    With nothing deployed this is the artifact's rule: a random permutation of the new jobs.
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
    limits = (tick.ones_max, tick.train_max, tick.start)
    allocations = pad(allocations, population.shape[1], tick.new, tick.executed, *limits)
    allocations = _possible(allocations, tick)
    score = scores(allocations, tick.weights)
    chosen = np.argsort(score, kind="stable")[:size]
    return reorder(allocations[chosen], tick.deployed), score[chosen]


def _possible(allocations: Ints, tick: Tick) -> Ints:
    return np.asarray(tick.sizes[np.arange(allocations.shape[1]), allocations])
