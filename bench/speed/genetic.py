"""The evolutionary search against DEAP as its tutorials show it, on generated rounds.

Both are DEAP's (mu + lambda) algorithm with as many individuals and generations, from nothing. The
*plain* one knows nothing of rounds: an individual is a list, a mutation draws rows at random, and
an infeasible individual is punished by its excess rather than repaired.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from deap import algorithms, base, creator, tools

from ronda.bench.runs.runner import peak_rss_mib
from ronda.bench.speed.cases import timed
from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.clock import Deadline
from ronda.formulations.genes import genes
from ronda.instances import generate
from ronda.instances.plan import gap_between
from ronda.solvers import stopping
from ronda.solvers.decision.plan import Question
from ronda.solvers.genetic.engine import evolve, own_random
from ronda.solvers.policies.optimising.genetic import Genetic, even_prices
from ronda.solvers.prices.engine import first_answer


def plain_evaluation(problem: Separable) -> Callable[[Sequence[int]], tuple[float]]:
    """Return the objective of one individual, in Python; minus its excess if it is infeasible.

    Each kind of block (nodes awake) is taken as often as what is lacking asks for.
    """
    value, use, top = problem.value.tolist(), problem.use.tolist(), problem.capacity.tolist()
    blocks = list(zip(problem.block_use.T.tolist(), problem.block_count.tolist(), strict=True))

    def evaluate(individual: Sequence[int]) -> tuple[float]:
        rows = [row for row in individual if row >= 0]
        excess = [sum(u[row] for row in rows) - c for u, c in zip(use, top, strict=True)]
        for taken, most in blocks:
            lacks = (e / -t for e, t in zip(excess, taken, strict=True) if t < 0)
            count = min(most, math.ceil(max(0.0, *lacks, 0.0) - 1e-9))
            excess = [e + t * count for e, t in zip(excess, taken, strict=True)]
        over = sum(
            e / max(abs(c), 1.0) for e, c in zip(excess, top, strict=True) if e > 1e-9 * abs(c)
        )
        return (-over if over > 0 else sum(value[row] for row in rows),)

    return evaluate


def plain_search(
    problem: Separable, population: int, generations: int, seed: int
) -> tuple[float, int]:
    """Run plain DEAP; return the best value and the evaluations.

    In the first generation every job waits but one, drawn at random, in each individual: random
    plans would all be infeasible. Jobs that must run are not known here.
    """
    ways = [
        [-1, *range(a, b)]
        for a, b in zip(problem.start.tolist(), problem.start[1:].tolist(), strict=False)
    ]

    def mutate(individual: list[int]) -> tuple[list[int]]:
        for j, own in enumerate(ways):
            if random.random() < 2 / len(individual):
                individual[j] = random.choice(own)
        return (individual,)

    def single() -> Any:
        individual = creator.Individual([-1] * len(ways))
        j = random.randrange(len(ways))
        individual[j] = random.choice(ways[j])
        return individual

    box = base.Toolbox()
    box.register("evaluate", plain_evaluation(problem))
    box.register("mate", tools.cxUniform, indpb=0.5)
    box.register("mutate", mutate)
    box.register("select", tools.selTournament, tournsize=3)
    best, size = tools.HallOfFame(1), population
    with own_random(seed):
        _, logbook = algorithms.eaMuPlusLambda(
            [single() for _ in range(size)],
            box,
            size,
            size,
            0.5,
            0.5,
            generations,
            halloffame=best,
            verbose=False,
        )
    return best[0].fitness.values[0], sum(logbook.select("nevals"))


def measure_genetic(
    jobs: int, *, population: int = 32, generations: int = 50, seed: int = 0
) -> dict[str, Any]:
    """Time whole searches, ours (`genetic(seeded=false)`) and plain DEAP's, on one round.

    `search_per_s` are individuals evaluated per second of processor time of the whole search.
    `as_long_gap` is that of plain DEAP with as many generations as the processor time of ours
    allows. Gaps are to the dual bound.
    """
    gpus = 64 * max(1, round(jobs / 64))
    question = Question.of(
        generate.round(jobs=jobs, gpus=gpus, severity="tight", seed=seed), "rank"
    )
    case = make_case(question.round, question.table, question.values)
    problem, policy = separable(case), Genetic(population=population, seeded=False)
    bound, pool = first_answer(problem).bound, genes(case, problem, even_prices(problem))
    stop, clock = stopping.generations(generations), Deadline()
    start = [np.full(problem.jobs, -1)]
    found, total_s, cpu_s = timed(
        lambda: evolve(pool, start, policy.settings, stop, seed=seed, deadline=clock)
    )
    held_mib = peak_rss_mib()

    def plain(count: int) -> tuple[tuple[float, int], float, float]:
        return timed(lambda: plain_search(problem, population, count, seed))

    (plain_best, plain_evaluations), plain_s, plain_cpu_s = plain(generations)
    (longer_best, _), longer_s, _ = plain(max(1, round(generations * cpu_s / plain_cpu_s)))
    return {
        "gpus": gpus,
        "options": len(question.table),
        "search_per_s": found.evaluations / cpu_s,
        "plain_search_per_s": plain_evaluations / plain_cpu_s,
        "total_s": total_s,
        "cpu_s": cpu_s,
        "plain_total_s": plain_s,
        "as_long_s": longer_s,
        "peak_rss_mib": round(held_mib, 1),
        "gap": gap_between(bound, found.objective),
        "plain_gap": gap_between(bound, plain_best),
        "as_long_gap": gap_between(bound, longer_best),
    }
