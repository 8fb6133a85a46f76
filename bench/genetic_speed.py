"""How much vectorising the evolutionary search gains over plain DEAP, on generated rounds.

``python -m ronda.bench.genetic_speed --jobs 40,512`` prints one JSON object a line. *Plain* is
DEAP as its tutorials show it: an individual is a list, its evaluation is a Python function, and
an infeasible one is punished rather than repaired.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import msgspec
import numpy as np
from deap import algorithms, base, tools

from ronda.formulations.genome import Genes, genes
from ronda.formulations.greedy_fill import dual_bound
from ronda.formulations.limits import limits
from ronda.formulations.objectives import values
from ronda.formulations.options import build
from ronda.instances import generate
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic import Settings, Worth, evolve, owned_randomness
from ronda.solvers.genetic_operators import draw


@dataclass(frozen=True, slots=True)
class Speed:
    """Evaluations per second, and what the searches found.

    Attributes
    ----------
    case, jobs, gpus, options
        The round.
    evaluate_per_s, plain_evaluate_per_s
        Individuals whose objective and feasibility are found per second, and nothing else.
    search_per_s, plain_search_per_s
        Individuals per second of a whole search: with selection and variation, ours with repair
        and filling as well.
    total_s, plain_total_s
        Seconds of the searches.
    gap, plain_gap
        How far the best plan is from the dual bound, relative to the bound.
    """

    case: str
    jobs: int
    gpus: int
    options: int
    evaluate_per_s: float
    plain_evaluate_per_s: float
    search_per_s: float
    plain_search_per_s: float
    total_s: float
    plain_total_s: float
    gap: float
    plain_gap: float


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

    The first generation is every job waiting, with one job drawn anew in each individual: random
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
    with owned_randomness(seed):
        start = [Listed(first) for _ in range(population)]
        for individual in start:
            j = random.randrange(len(first))
            individual[j] = first[j] + random.randrange(count[j])
        best = tools.HallOfFame(1)
        _, logbook = algorithms.eaSimple(
            start, box, cxpb=0.9, mutpb=0.6, ngen=generations, halloffame=best, verbose=False
        )
    return best[0].fitness.values[0] + pool.fixed_value, sum(logbook.select("nevals"))


def compare(
    jobs: int = 40, gpus: int = 64, *, population: int = 100, generations: int = 100, seed: int = 0
) -> Speed:
    """Measure both on one generated round, with equal population and generations."""
    round_ = generate.round(jobs=jobs, gpus=gpus, severity="tight", seed=seed)
    table = build(round_)
    worth = values(round_, table)
    bounds = limits(round_, table)
    bound, prices = dual_bound(round_, table, worth, sleeping=bool(bounds.node_w))
    pool = genes(table, worth, bounds, prices)

    individuals = draw(pool, population, np.random.default_rng(seed))
    lists = [genome.tolist() for genome in individuals]
    evaluate = plain_evaluation(pool)
    ours_s = _least_seconds(lambda: (pool.values(individuals), pool.feasible(individuals)))
    plain_s = _least_seconds(lambda: [evaluate(genome) for genome in lists])

    started = time.perf_counter()
    found = evolve(
        pool,
        pool.first[None],
        Settings(population=population),
        stopping.generations(generations),
        seed=seed,
        deadline=Deadline(),
    )
    total_s = time.perf_counter() - started
    started = time.perf_counter()
    plain_best, plain_evaluations = plain_search(pool, population, generations, seed)
    plain_total_s = time.perf_counter() - started
    return Speed(
        case="genetic",
        jobs=jobs,
        gpus=gpus,
        options=len(table),
        evaluate_per_s=population / ours_s,
        plain_evaluate_per_s=population / plain_s,
        search_per_s=found.evaluations / total_s,
        plain_search_per_s=plain_evaluations / plain_total_s,
        total_s=total_s,
        plain_total_s=plain_total_s,
        gap=(bound - found.objective) / bound,
        plain_gap=(bound - plain_best) / bound,
    )


def _least_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the least time of some repetitions: what disturbs only ever adds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the sizes that were asked for, one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="40,512", help="numbers of live jobs, as in 40,512")
    parser.add_argument("--population", type=int, default=100)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    for jobs in (int(part) for part in asked.jobs.split(",")):
        gpus = 64 * max(1, round(jobs / 64))
        speed = compare(
            jobs, gpus, population=asked.population, generations=asked.generations, seed=asked.seed
        )
        sys.stdout.write(msgspec.json.encode(asdict(speed)).decode() + "\n")


if __name__ == "__main__":
    main()
