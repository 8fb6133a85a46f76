"""Evolutionary search over each job's batch, GPUs and clock: DEAP's (mu + lambda) algorithm.

DEAP draws from Python's global `random`. A search saves its state, seeds it and restores it
afterwards. The plan is repeatable only if no other thread draws from it during the search.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from deap import algorithms, base, creator, tools

from ronda.formulations.genes.genome import Genes
from ronda.instances.base import Rows
from ronda.instances.clock import Deadline, OutOfTimeError
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.genetic import operators
from ronda.solvers.stopping import Criterion, SearchStatus

creator.create("Worth", base.Fitness, weights=(1.0,))
creator.create("Individual", list, fitness=creator.Worth)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionSettings:
    """Parameters of the evolution."""

    population: int = 24  # individuals, and also children, per generation; at least 4
    crossover: float = 0.5  # probability that a child has two parents
    mutation: float = 0.5  # probability that a child is a mutant of one parent
    improved: int = 6  # number of best children per generation that are filled
    exchanges: int = 0  # most exchanges of two jobs tried per filled child
    kept: int = 1  # number of best individuals returned
    priced: bool = False  # whether most of the first generation responds to prices

    def __post_init__(self) -> None:
        """Refuse impossible parameters."""
        check_settings("settings", self)


def check_settings(place: str, given: Any) -> None:
    """Refuse impossible parameters of an evolution; `given` has them as attributes."""
    leasts = {"population": 4, "improved": 0, "exchanges": 0, "kept": 1}
    for name, least in leasts.items():
        value = getattr(given, name, least)
        if value < least:
            raise InputError(f"{place}: {name}", f"{value}", f"at least {least}")
    for name in ("crossover", "mutation"):
        if not 0 <= getattr(given, name, 0.0) <= 1:
            raise InputError(f"{place}: {name}", f"{getattr(given, name):g}", "a number in 0..1")
    both = getattr(given, "crossover", 0.0) + getattr(given, "mutation", 0.0)
    if not both <= 1:
        raise InputError(f"{place}: crossover + mutation", f"{both:g}", "at most 1")


@dataclass(frozen=True, slots=True)
class Evolved:
    """The result of a search."""

    best: Rows  # (N, J) best genomes, best first
    objective: float  # net value of the first genome (values minus the loss of moves)
    generations: int
    evaluations: int
    stop: StopReason
    incumbents: tuple[tuple[float, float], ...]  # (seconds since entry, objective)
    logbook: tools.Logbook  # generation, evaluations, best, mean


def toolbox(genes: Genes, settings: EvolutionSettings) -> base.Toolbox:
    """Return the operators of the search; `map` passes all individuals to `evaluate` together."""
    box, free = base.Toolbox(), genes.free.tolist()
    box.register("draw", operators.random_genome, genes, free)
    box.register("respond", operators.respond, genes)
    box.register("clone", _copy)
    box.register("mate", operators.mate, genes)
    box.register("mutate", operators.mutate, genes, free=free)
    box.register(
        "evaluate",
        operators.evaluate,
        genes,
        improved=settings.improved,
        exchanges=settings.exchanges,
    )
    box.register("map", lambda evaluate, individuals: evaluate(list(individuals)))
    box.register("select", operators.best_different)
    return box


def _copy(individual: Any) -> Any:
    copy = creator.Individual(individual)
    copy.fitness.wvalues = individual.fitness.wvalues
    return copy


@contextmanager
def own_random(seed: int) -> Iterator[None]:
    """Seed the global `random`, and restore its state afterwards."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def evolve(
    genes: Genes,
    starts: Sequence[Rows],
    settings: EvolutionSettings,
    stop: Criterion,
    *,
    seed: int,
    deadline: Deadline,
) -> Evolved:
    """Search for the genome of greatest net value within all limits.

    At least one job must have a choice. The same arguments give the same trajectory, unless `stop`
    reads the clock.

    Parameters
    ----------
    starts
        Repaired genomes to start from. The result is never worse than any of them.
    deadline
        Deadline whose clock gives the times of incumbents. `stop` ends the search in time.
    """
    with own_random(seed):
        box, size = toolbox(genes, settings), settings.population
        first = [operators.repair(genes, start) for start in starts]
        others = range(size - len(first))
        first += [box.respond() if settings.priced and i % 8 else box.draw() for i in others]
        population = [creator.Individual(genome.tolist()) for genome in first]
        fame, diary, generations = tools.HallOfFame(settings.kept), _Diary(deadline), 0
        while True:
            try:
                population, log = algorithms.eaMuPlusLambda(
                    population,
                    box,
                    size,
                    size,
                    settings.crossover,
                    settings.mutation,
                    generations,  # none at first, then one at a time, to read the clock
                    stats=diary.stats,
                    halloffame=fame,
                    verbose=False,
                )
            except OutOfTimeError:
                if not len(fame):
                    raise
                reason = StopReason.TIME_LIMIT
                break
            generations = 1
            diary.note(log, fame)
            progress, reason = stop(diary.status)
            if progress >= 1.0:
                break
    return Evolved(
        best=np.array(list(fame)),
        objective=float(fame[0].fitness.values[0]),
        generations=diary.status.generations,
        evaluations=diary.evaluations,
        stop=reason,
        incumbents=tuple(diary.incumbents),
        logbook=diary.logbook,
    )


class _Diary:
    """The record of an evolution, generation by generation."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline, self.logbook, self.evaluations = deadline, tools.Logbook(), 0
        self.stats = tools.Statistics(lambda individual: individual.fitness.values[0])
        self.stats.register("mean", np.mean)
        self.incumbents: list[tuple[float, float]] = []
        self.stagnant = 0
        self.ended_s, self.generation_s = deadline.elapsed(), 0.0

    @property
    def status(self) -> SearchStatus:
        """The progress of the search."""
        return SearchStatus(
            generations=len(self.logbook) - 1,
            stagnant=self.stagnant,
            best=self.incumbents[-1][1],
            generation_s=self.generation_s,
        )

    def note(self, log: tools.Logbook, fame: tools.HallOfFame) -> None:
        """Record the last generation, and the incumbent if it is better."""
        now, best = self.deadline.elapsed(), float(fame[0].fitness.values[0])
        self.generation_s, self.ended_s = now - self.ended_s, now
        if not self.incumbents or best > self.incumbents[-1][1]:
            self.incumbents.append((now, best))
            self.stagnant = 0
        else:
            self.stagnant += 1
        self.evaluations += log[-1]["nevals"]
        self.logbook.record(
            generation=len(self.logbook),
            evaluations=self.evaluations,
            best=best,
            mean=float(log[-1]["mean"]),
        )
