"""Ways to search for a schedule of least SRUF score, for `ronda.bench.study.sruf` to compare.

A search gets the snapshot, a seed and seconds, and returns the GPUs of each job and how many
schedules it evaluated. A new one is a function here and an entry of `SEARCHES`.
"""

import time
from collections.abc import Callable, Mapping

import numpy as np

from ronda.bench.study.sruf_milp import by_milp
from ronda.bench.study.sruf_snapshot import Counts, SrufSnapshot, optimum, shortest_first
from ronda.formulations.genes import genes_of
from ronda.formulations.ones import IDLE, counts
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic.engine import evolve
from ronda.solvers.genetic.evolution import Settings
from ronda.solvers.ones import Tick, generation

Search = Callable[[SrufSnapshot, int, float], tuple[Counts, int]]

POPULATION, CROSSED, MUTATED, GENERATIONS = 16, 0.5, 0.3, 60
"""ONES's constants (artifact, src/config.py), and generations until it is asked: it makes one per
scheduler tick, and its best score no longer changes by then."""


def by_ones(problem: SrufSnapshot, seed: int, seconds: float) -> tuple[Counts, int]:
    """Search with ONES's operators, all jobs predicted and each with its one limit R.

    Starts from random orders of the jobs, one GPU each, and takes the best schedule of each
    generation as the one that runs when the next is put in order. Makes `GENERATIONS`, however
    long that takes: ONES has no time limit.
    """
    rng = np.random.default_rng(seed)
    capacity, jobs, limits = problem.capacity, problem.jobs, problem.limits
    weights = np.full((jobs, max(capacity, problem.weights.shape[1]) + 1), np.inf)
    weights[:, 0] = 0.0
    weights[:, 1 : problem.weights.shape[1] + 1] = problem.weights
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
    return counts(population[:1], jobs)[0], 3 * POPULATION * GENERATIONS


def by_evolve(problem: SrufSnapshot, seed: int, seconds: float) -> tuple[Counts, int]:
    """Search with the engine of the `evolve` policy, cast as a knapsack to be maximised.

    ``L c - w`` is what c GPUs are worth to a job: with L above every step of w a schedule is worth
    more the fuller it is, so the best one is full and of least score. Moves are guided by the
    price of a GPU, where the jobs' own best answers to it take about all GPUs.
    """
    deadline = Deadline(seconds)
    allowed = problem.weights < np.inf
    gpus = np.broadcast_to(np.arange(1.0, problem.weights.shape[1] + 1), allowed.shape)
    worth = np.where(allowed, steepest(problem) * gpus - np.where(allowed, problem.weights, 0), 0)
    price = steepest(problem) - marginal(problem)
    pool = genes_of(
        np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]),
        worth[allowed],
        gpus[allowed][None],
        np.array([float(problem.used)]),
        np.array([price]),
    )
    column = np.concatenate([np.arange(1, most + 1) for most in problem.limits])
    first = np.concatenate([[0], np.cumsum(problem.limits)[:-1]])
    srpt = shortest_first(problem)
    filled = pool.genome(np.where(srpt > 0, first + srpt - 1, -1))
    stop = stopping.first_of(stopping.stagnation(100), stopping.deadline(deadline))
    found = evolve(
        pool,
        np.unique([filled, pool.favourites(pool.surplus)], axis=0),
        Settings(population=100, exchanges=2, adaptive=True),
        stop,
        seed=seed,
        deadline=deadline,
    )
    rows = pool.rows(found.genome)
    return np.where(rows >= 0, column[rows], 0), found.evaluations


def steepest(problem: SrufSnapshot) -> float:
    """Return more than any job's score rises for one more GPU, or per GPU."""
    weights = np.where(problem.weights < np.inf, problem.weights, 0.0)
    rises = np.diff(weights, axis=1, prepend=0.0)
    return 1.0 + float(max(rises.max(initial=0.0), weights[:, 0].max(initial=0.0)))


def marginal(problem: SrufSnapshot) -> float:
    """Return the score per GPU at which jobs that choose for themselves take all GPUs, or just not.

    Bisection on the dual of work conservation: each job takes the c that minimises ``w - price c``.
    """
    gpus = np.arange(problem.weights.shape[1] + 1.0)
    costs = np.concatenate([np.zeros((problem.jobs, 1)), problem.weights], axis=1)
    low, high = 0.0, steepest(problem)
    for _ in range(50):
        price = 0.5 * (low + high)
        taken = int(gpus[np.argmin(costs - price * gpus, axis=1)].sum())
        low, high = (price, high) if taken < problem.used else (low, price)
    return high


def by_shortest_first(problem: SrufSnapshot, seed: int, seconds: float) -> tuple[Counts, int]:
    """Fill by SRPT: what ONES's *pad* makes of nothing."""
    return shortest_first(problem), 1


def by_dynamic_programming(problem: SrufSnapshot, seed: int, seconds: float) -> tuple[Counts, int]:
    """Solve exactly by dynamic programming."""
    return optimum(problem), 0


def by_mixed_integer_programming(
    problem: SrufSnapshot, seed: int, seconds: float
) -> tuple[Counts, int]:
    """Solve by MILP; SRPT's schedule if the time is over before there is a solution."""
    gpus, outcome = by_milp(problem, deadline=Deadline(seconds), seed=seed)
    return (shortest_first(problem) if gpus is None else gpus), outcome.nodes


SEARCHES: Mapping[str, Search] = {
    "srpt": by_shortest_first,
    "ones": by_ones,
    "evolve": by_evolve,
    "milp": by_mixed_integer_programming,
    "dp": by_dynamic_programming,
}
"""All searches by name."""


def timed(
    search: Search, problem: SrufSnapshot, seed: int, seconds: float
) -> tuple[float, float, int]:
    """Return the score that a search ends with, the seconds it took, and its evaluations.

    Raises
    ------
    RuntimeError
        If its schedule breaks a limit or leaves GPUs idle.
    """
    began = time.perf_counter()
    gpus, evaluations = search(problem, seed, seconds)
    took_s = time.perf_counter() - began
    if not problem.full(gpus):
        raise RuntimeError(f"{search.__name__}: a schedule that is not full, or beyond a limit")
    return float(problem.score(gpus)), took_s, evaluations
