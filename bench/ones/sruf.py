"""Searches for a schedule of least SRUF score, against the optimum.

*Smallest remaining utilisation first* (Bian et al., SC'21; authors' artifact, src/scheduler.py)
scores a schedule by the GPU-seconds to come of the jobs that hold GPUs; less is better:

    w[j, c] = c left_j / X_j(c),   left_j = Y_j (1/rho_j - 1)
    min  sum_jc w[j, c] x[j, c]
    s.t. sum_c x[j, c] <= 1,   c = 1..R_j            for each job j
         sum_jc c x[j, c] = min(C, sum_j R_j)        as many of the C GPUs as limits allow

with Y_j samples done, rho_j the share of the work that they are, X_j(c) samples per second on c
GPUs, and limits R_j. Idle GPUs would score best, so using all belongs to the problem (the
artifact's *pad*). That ONES's search has this exact form, a multiple-choice knapsack, is our
reading, not the paper's.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ronda.bench.study.harness import Folder, limit, markdown, seeds, study, words
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.clock import Deadline
from ronda.formulations.genes import genes_of
from ronda.formulations.ones.genome import IDLE, counts
from ronda.instances.arrays import Floats, Ints
from ronda.solvers import stopping
from ronda.solvers.genetic.engine import Settings, evolve
from ronda.solvers.ones.tick import Tick, generation
from ronda.solvers.prices import Search
from ronda.solvers.prices.dual import Jobs
from ronda.solvers.prices.engine import solve_separable

SIZES = ((64, 40), (64, 80), (256, 300))
"""(GPUs, jobs) of the snapshots."""

LIMITS = (1, 2, 4, 8, 16)
"""GPU limits of jobs, as ONES doubles them."""

POPULATION, CROSSED, MUTATED, GENERATIONS = 16, 0.5, 0.3, 60
"""ONES's constants (artifact, src/config.py), and generations: its best score no longer changes by
then."""


@dataclass(frozen=True, slots=True, eq=False)
class SrufSnapshot:
    """One decision of ONES without placement.

    (J, Rmax) `weights` are GPU-seconds to come on 1..Rmax GPUs, inf above the job's limit.
    """

    weights: Floats
    capacity: int

    @property
    def limits(self) -> Ints:
        """(J,) most GPUs of each job."""
        return np.asarray((self.weights < np.inf).sum(axis=1))

    @property
    def used(self) -> int:
        """GPUs that every schedule uses: all, or as many as the limits allow."""
        return min(self.capacity, int(self.limits.sum()))

    def score(self, gpus: ArrayLike) -> float:
        """Return the score of (J,) GPUs within the limits; 0 GPUs score 0."""
        each = np.pad(self.weights, ((0, 0), (1, 0)))
        return float(each[np.arange(len(each)), np.asarray(gpus)].sum())

    def full(self, gpus: ArrayLike) -> bool:
        """Tell whether (J,) GPUs keep the limits and use all that they should."""
        held = np.asarray(gpus)
        return bool(((held >= 0) & (held <= self.limits)).all() and held.sum() == self.used)

    def separable(self) -> Separable:
        """Return the knapsack to be maximised: c GPUs are worth ``L c - w[j, c]`` to a job.

        L is above every step of w, so the fullest schedule is worth most, and among the full ones
        that of least score. Option c of a job is the c-th of its rows.
        """
        allowed = self.weights < np.inf
        gpus = np.broadcast_to(np.arange(1.0, self.weights.shape[1] + 1), allowed.shape)
        costs = np.where(allowed, self.weights, 0.0)
        steepest = 1.0 + float(np.diff(costs, axis=1, prepend=0.0).max(initial=0.0))
        start = np.concatenate([[0], np.cumsum(self.limits)])
        value, use = (steepest * gpus - costs)[allowed], gpus[allowed][None]
        capacity = np.array([float(self.used)])
        return Separable.without_blocks(start, value, use, capacity, ("gpus",))


def snapshot(left: ArrayLike, speed: ArrayLike, capacity: int) -> SrufSnapshot:
    """Return the problem of (J,) samples to come and (J, Rmax) samples/s; 0 above the limit."""
    rate = np.asarray(speed, dtype=float)
    gpu_samples = np.arange(1, rate.shape[1] + 1) * np.asarray(left)[:, None]
    weights = np.full(rate.shape, np.inf)
    np.divide(gpu_samples, rate, out=weights, where=rate > 0)
    return SrufSnapshot(weights, capacity)


def generate(gpus: int, jobs: int, seed: int) -> SrufSnapshot:
    """Return a synthetic snapshot.

    Speed-up c^p with p from U(0.55, 0.95); samples per second on one GPU and samples done
    lognormal (median 1; sigma of the logarithm 0.5 and 1.5); progress from Beta(3, 3); limits from
    `LIMITS`. The sigmas are ours: filling by SRPT then ends about as far from the optimum as in an
    earlier experiment on this family (32 to 46 %; here 36 to 49 % at `SIZES`, seeds 0-19).
    """
    rng = np.random.default_rng([seed, gpus, jobs])
    power = rng.uniform(0.55, 0.95, (jobs, 1))
    done = rng.lognormal(0.0, 1.5, jobs)
    rho = rng.beta(3.0, 3.0, jobs)
    limits = rng.choice(LIMITS, (jobs, 1))
    alone = rng.lognormal(0.0, 0.5, (jobs, 1))
    count = np.arange(1, max(LIMITS) + 1)
    speed = np.where(count <= limits, alone * count**power, 0.0)
    return snapshot(done * (1.0 / rho - 1.0), speed, gpus)


def optimum(problem: SrufSnapshot) -> Ints:
    """Return (J,) GPUs of a schedule of least score, by dynamic programming.

    ``f_j[u] = min_c f_{j-1}[u - c] + w[j, c]`` over c = 0..R_j is the least score of the first j
    jobs on exactly u GPUs: O(J C R) time, all u of a job together. Of equal scores the later job
    gets fewer GPUs.
    """
    limits = np.minimum(problem.limits, problem.used).tolist()
    least = np.full((len(limits) + 1, problem.used + 1), np.inf)
    least[0, 0] = 0.0
    for j, most in enumerate(limits):
        least[j + 1] = least[j]
        for c in range(1, most + 1):
            ending = least[j + 1, c:]
            np.minimum(ending, least[j, :-c] + problem.weights[j, c - 1], out=ending)
    gpus, left = np.zeros(len(limits), dtype=np.int64), problem.used
    for j in range(len(limits) - 1, -1, -1):
        costs = np.concatenate([[0.0], problem.weights[j, : min(limits[j], left)]])
        gpus[j] = int(np.argmin(least[j, left - np.arange(len(costs))] + costs))
        left -= int(gpus[j])
    return gpus


def shortest_first(problem: SrufSnapshot) -> Ints:
    """Return (J,) GPUs by SRPT: what ONES's *pad* makes of an empty schedule."""
    gpus = np.zeros(len(problem.weights), dtype=np.int64)
    order = np.argsort(problem.weights[:, 0], kind="stable")
    before = np.concatenate([[0], np.cumsum(problem.limits[order])[:-1]])
    gpus[order] = np.clip(problem.used - before, 0, problem.limits[order])
    return gpus


def by_ones(problem: SrufSnapshot, seed: int, deadline: Deadline) -> Ints:
    """Search with ONES's operators, all jobs predicted and each with its one limit R.

    Starts from random orders of the jobs, one GPU each; the best schedule of a generation is the
    one that runs in the next. Makes `GENERATIONS` whatever the deadline: ONES has none.
    """
    del deadline
    rng = np.random.default_rng(seed)
    capacity, limits, weights = problem.capacity, problem.limits, problem.weights
    jobs, widest = weights.shape
    beyond = (1, max(0, capacity - widest))  # columns of no GPU, and of more than any limit
    weights = np.pad(weights, ((0, 0), beyond), constant_values=((0, 0), (0.0, np.inf)))
    population = np.full((POPULATION, capacity), IDLE)
    for genome in population:
        order = rng.permutation(np.flatnonzero(limits))[:capacity]
        genome[: len(order)] = order
    for _ in range(GENERATIONS):
        tick = Tick(
            deployed=population[0],
            ones_max=limits,
            train_max=limits,
            start=np.ones(jobs, dtype=np.int64),
            sizes=np.minimum(np.arange(capacity + 1), limits[:, None]),
            new=np.empty(0, dtype=np.int64),
            executed=np.argsort(problem.weights[:, 0], kind="stable"),
            protected=np.zeros(jobs, dtype=bool),
            weights=weights,
        )
        population, _ = generation(population, tick, rng, crossed=CROSSED, mutated=MUTATED)
    return np.asarray(counts(population[:1], jobs)[0])


def by_evolve(problem: SrufSnapshot, seed: int, deadline: Deadline) -> Ints:
    """Search with the engine of the `evolve` policy.

    Starts from SRPT and from the jobs' best answers to the price of a GPU.
    """
    knapsack = problem.separable()
    prices = solve_separable(knapsack, Search(gap=0.5)).dual.prices
    liked = Jobs(knapsack).losses(prices, np.inf, 0).best
    srpt = shortest_first(problem)
    served = np.where(srpt > 0, knapsack.start[:-1] + srpt - 1, -1)
    kind = Settings(population=64, improved=2, exchanges=2)
    stop = stopping.first_of(stopping.stagnation(60), stopping.deadline(deadline))
    pool = genes_of(knapsack, prices)
    found = evolve(pool, [served, liked], kind, stop, seed=seed, deadline=deadline)
    return _gpus(knapsack, found.best[0])


def by_prices(problem: SrufSnapshot, seed: int, deadline: Deadline) -> Ints:
    """Solve by the price engine."""
    knapsack = problem.separable()
    found = solve_separable(knapsack, Search(gap=1e-9, deadline=deadline, seed=seed))
    return shortest_first(problem) if found.chosen is None else _gpus(knapsack, found.chosen)


def _gpus(knapsack: Separable, chosen: Ints) -> Ints:
    """Return (J,) GPUs of chosen rows, -1 for none."""
    return np.where(chosen >= 0, chosen - knapsack.start[:-1] + 1, 0)


SEARCHES: dict[str, Callable[[SrufSnapshot, int, Deadline], Ints]] = {
    "srpt": lambda problem, seed, deadline: shortest_first(problem),
    "ones": by_ones,
    "evolve": by_evolve,
    "prices": by_prices,
    "dp": lambda problem, seed, deadline: optimum(problem),
}


def measure(gpus: int, jobs: int, seed: int, search: str, limit_s: float) -> dict[str, Any]:
    """Return the score that a search of a snapshot ends with, its gap and its seconds.

    A schedule that breaks a limit or leaves GPUs idle is a RuntimeError.
    """
    problem = generate(gpus, jobs, seed)
    began = time.perf_counter()
    held = SEARCHES[search](problem, seed, Deadline(limit_s))
    wall_s = time.perf_counter() - began
    if not problem.full(held):
        raise RuntimeError(f"{search}: a schedule that is not full, or beyond a limit")
    score = problem.score(held)
    gap = score / problem.score(optimum(problem)) - 1.0
    return {"score": score, "gap": gap, "wall_s": wall_s}


def table(runs: pd.DataFrame) -> str:
    """Return gaps and times by size and search, in Markdown."""
    rows = []
    for (gpus, jobs, search), own in runs.groupby(["gpus", "jobs", "search"], sort=False):
        percent = 100 * own.gap
        gaps = [f"{each:.2f}" for each in (percent.mean(), percent.median(), percent.max())]
        rows.append(
            [f"{gpus}, {jobs}", f"{search}", f"{len(own)}", *gaps, f"{own.wall_s.mean():.3g}"]
        )
    header = ["GPUs, jobs", "search", "seeds", "mean gap (%)", "median", "worst", "mean time (s)"]
    return markdown(header, rows, words=2)


def compare(folder: Folder, seeds: Sequence[int], searches: Sequence[str], limit_s: float) -> None:
    """Search the snapshots of all sizes and seeds."""
    cases = [
        {"gpus": gpus, "jobs": jobs, "seed": seed, "search": search, "limit_s": limit_s}
        for (gpus, jobs), search, seed in product(SIZES, searches, seeds)
    ]
    folder.write(table(folder.measure(cases, measure)))


command = study(
    "sruf",
    __doc__,
    compare,
    [
        seeds("0-19"),
        words("--searches", tuple(SEARCHES), "Separated by commas."),
        limit(2.0, "Seconds for each search."),
    ],
)
