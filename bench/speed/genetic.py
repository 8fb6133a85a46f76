"""How much vectorising the evolutionary search gains over plain DEAP, on generated rounds.

``python -m ronda.bench.speed.genetic --jobs 40,512`` prints one JSON object a line. *Plain* is
DEAP as its tutorials show it: an individual is a list, its evaluation is a Python function, and
an infeasible one is punished rather than repaired.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import msgspec
import numpy as np
from deap import algorithms, base, tools

from ronda.bench.runs.runner import peak_rss_mib
from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.building import genes
from ronda.formulations.genes.genome import Genes
from ronda.formulations.genes.neighbourhood import move_losses, settle
from ronda.instances import generate
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.by_prices import allocate_by_fill, unit_prices
from ronda.solvers.decision.question import Question
from ronda.solvers.genetic.engine import evolve
from ronda.solvers.genetic.operators import draw
from ronda.solvers.policies.optimising.evolve import Evolve


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
    evaluate_ratio
        The first over the second.
    total_s, cpu_s, plain_total_s
        Seconds of the searches, and ours in seconds of processor time. Ours is that of the
        `evolve` policy, with everything on.
    peak_rss_mib
        Most memory of the process before plain DEAP began, in MiB; that of the largest case so far.
    gap, plain_gap
        How far the best plan is from the dual bound, relative to the bound.
    """

    case: str
    jobs: int
    gpus: int
    options: int
    evaluate_per_s: float
    plain_evaluate_per_s: float
    evaluate_ratio: float
    search_per_s: float
    plain_search_per_s: float
    total_s: float
    cpu_s: float
    plain_total_s: float
    peak_rss_mib: float
    gap: float
    plain_gap: float


class Worth(base.Fitness):  # type: ignore[misc]
    """The value of a plan, to be maximised."""

    weights = (1.0,)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global `random`, which DEAP draws from, and give it back as it was found."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


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
    with _seeded(seed):
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
    question = Question.of(round_, "rank")
    table, worth = question.table, question.values
    bounds = limits(round_, table)
    greedy = allocate_by_fill(round_, table, worth)
    bound, prices = greedy.bound, unit_prices(round_, greedy.prices)
    losses = move_losses(round_, table, worth)
    pool = settle(genes(table, worth, bounds, prices), round_, table, losses)

    individuals = draw(pool, population, np.random.default_rng(seed))
    lists = [genome.tolist() for genome in individuals]
    evaluate = plain_evaluation(pool)
    ours_s = _least_seconds(lambda: (pool.values(individuals), pool.feasible(individuals)))
    plain_s = _least_seconds(lambda: [evaluate(genome) for genome in lists])

    started, cpu_started_s = time.perf_counter(), time.process_time()
    found = evolve(
        pool,
        pool.first[None],
        Evolve(population=population).settings,
        stopping.generations(generations),
        seed=seed,
        deadline=Deadline(),
    )
    total_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started_s
    held_mib = peak_rss_mib()
    started = time.perf_counter()
    plain_best, plain_evaluations = plain_search(pool, population, generations, seed)
    plain_total_s = time.perf_counter() - started
    return Speed(
        case="genetic",
        jobs=jobs,
        gpus=gpus,
        options=len(table),
        evaluate_per_s=population / ours_s,
        evaluate_ratio=plain_s / ours_s,
        plain_evaluate_per_s=population / plain_s,
        search_per_s=found.evaluations / total_s,
        plain_search_per_s=plain_evaluations / plain_total_s,
        total_s=total_s,
        cpu_s=cpu_s,
        plain_total_s=plain_total_s,
        peak_rss_mib=held_mib,
        gap=(bound - found.objective) / bound,
        plain_gap=(bound - plain_best) / bound,
    )


def _least_seconds(work: Callable[[], object], repeats: int = 50) -> float:
    """Return the least processor time of some repetitions: what disturbs only ever adds."""
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
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
