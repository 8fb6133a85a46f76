"""How much vectorising the evolutionary search gains over plain DEAP, on generated rounds.

*Plain* is DEAP as its tutorials show it: an individual is a list, its evaluation is a Python
function, and an infeasible one is punished rather than repaired.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from deap import algorithms, base, tools

from ronda.bench.runs.runner import peak_rss_mib
from ronda.bench.speed.cases import timed
from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.genome import Genes
from ronda.instances import generate
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.question import Question
from ronda.solvers.genetic.engine import evolve
from ronda.solvers.genetic.operators import draw
from ronda.solvers.policies.optimising.evolve import Evolve


class Worth(base.Fitness):  # type: ignore[misc]
    """The value of a plan, to be maximised."""

    weights = (1.0,)


class Listed(list[int]):
    """An individual of plain DEAP: a list with a fitness."""

    def __init__(self, items: Sequence[int]) -> None:
        super().__init__(items)
        self.fitness = Worth()


def plain_evaluation(pool: Genes) -> Callable[[Sequence[int]], tuple[float]]:
    """Return the objective of one individual, in Python; minus its excess if it is infeasible."""
    value, limit = pool.value.tolist(), pool.limit.tolist()
    demand = pool.demand.tolist()
    steps = [watts.tolist() for watts in pool.step_w]

    def evaluate(individual: Sequence[int]) -> tuple[float]:
        loads = [sum(d[row] for row in individual) for d in demand]
        for gpus, watts in zip(loads[: len(steps)], steps, strict=True):
            loads[-1] += watts[min(int(gpus), len(watts) - 1)]
        excess = sum(
            max(0.0, load - top) / max(top, 1.0) for load, top in zip(loads, limit, strict=True)
        )
        return (-excess if excess > 0 else sum(value[row] for row in individual),)

    return evaluate


def plain_search(pool: Genes, population: int, generations: int, seed: int) -> tuple[float, int]:
    """Run DEAP's simple evolution; return the best value (fixed jobs included) and evaluations.

    In the first generation every job waits but one, drawn at random, in each individual: random
    plans would all be infeasible.
    """
    first, count = pool.first.tolist(), pool.count.tolist()

    def mutate(individual: Listed) -> tuple[Listed]:
        for j in range(len(individual)):
            if random.random() < 2 / len(individual):
                individual[j] = first[j] + random.randrange(count[j])
        return (individual,)

    box = base.Toolbox()
    box.register("evaluate", plain_evaluation(pool))
    box.register("mate", tools.cxUniform, indpb=0.5)
    box.register("mutate", mutate)
    box.register("select", tools.selTournament, tournsize=3)
    state = random.getstate()
    random.seed(seed)  # DEAP draws from the global generator
    start = [Listed(first) for _ in range(population)]
    for individual in start:
        j = random.randrange(len(first))
        individual[j] = first[j] + random.randrange(count[j])
    best = tools.HallOfFame(1)
    _, logbook = algorithms.eaSimple(
        start, box, cxpb=0.9, mutpb=0.6, ngen=generations, halloffame=best, verbose=False
    )
    random.setstate(state)
    return best[0].fitness.values[0] + pool.fixed_value, sum(logbook.select("nevals"))


def measure_genetic(
    jobs: int, *, population: int = 100, generations: int = 100, seed: int = 0
) -> dict[str, Any]:
    """Time both on one generated round, with equal population and generations.

    `evaluate_per_s` are individuals whose objective and feasibility are found per second, and
    nothing else; `search_per_s` those of a search, ours with repair, filling and everything else
    that the policy `evolve` does. Gaps are to the dual bound, and ``peak_rss_mib`` is read before
    plain DEAP begins.
    """
    gpus = 64 * max(1, round(jobs / 64))
    round_ = generate.round(jobs=jobs, gpus=gpus, severity="tight", seed=seed)
    question, policy = Question.of(round_, "rank"), Evolve(population=population)
    bounds = limits(round_, question.table)
    case = policy.case(question, bounds, unlimited=False)
    bound, pool = case.bound, case.pool

    individuals = draw(pool, population, np.random.default_rng(seed))
    lists = [genome.tolist() for genome in individuals]
    evaluate = plain_evaluation(pool)
    ours_s = _least_seconds(lambda: (pool.values(individuals), pool.feasible(individuals)))
    plain_s = _least_seconds(lambda: [evaluate(genome) for genome in lists])

    stop = stopping.generations(generations)
    start, clock = pool.first[None], Deadline()
    found, total_s, cpu_s = timed(
        lambda: evolve(pool, start, policy.settings, stop, seed=seed, deadline=clock)
    )
    held_mib = peak_rss_mib()
    (plain_best, plain_evaluations), plain_total_s, _ = timed(
        lambda: plain_search(pool, population, generations, seed)
    )
    return {
        "gpus": gpus,
        "options": len(question.table),
        "evaluate_per_s": population / ours_s,
        "evaluate_ratio": plain_s / ours_s,
        "plain_evaluate_per_s": population / plain_s,
        "search_per_s": found.evaluations / total_s,
        "plain_search_per_s": plain_evaluations / plain_total_s,
        "total_s": total_s,
        "cpu_s": cpu_s,
        "plain_total_s": plain_total_s,
        "peak_rss_mib": round(held_mib, 1),
        "gap": (bound - found.objective) / bound,
        "plain_gap": (bound - plain_best) / bound,
    }


def _least_seconds(work: Callable[[], object], repeats: int = 50) -> float:
    """Return the least processor time of some repetitions: what disturbs only ever adds."""
    return min(timed(work)[2] for _ in range(repeats))
