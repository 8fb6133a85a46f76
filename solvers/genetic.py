"""Evolutionary search over each job's option: DEAP's machinery around vectorised operators.

A generation: parents are selected by tournament, children take each gene from either parent, some
mutate, all are repaired and what capacity they leave is filled; the best different ones of
parents and children survive. DEAP supplies the toolbox (where any operator can be registered
anew), fitness, selection and logbook.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from deap import base, tools
from numpy.random import Generator
from numpy.typing import NDArray

from ronda.formulations.genome import Genes, Population
from ronda.formulations.limits import Floats
from ronda.instances.plan import StopReason
from ronda.solvers import genetic_operators as operators
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic_repair import fill, repair
from ronda.solvers.stopping import Criterion, Status

SPREAD = 0.2
"""Standard deviation of the lognormal disturbance of prices in the first generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Parameters of the evolution.

    Attributes
    ----------
    population
        Individuals in each generation, and children of it.
    crossover, mutation
        Probability of a child to have two parents, and to mutate.
    tournament
        Individuals among which the best becomes a parent.
    """

    population: int = 64
    crossover: float = 0.9
    mutation: float = 0.6
    tournament: int = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found.

    Attributes
    ----------
    genome, objective
        (n,) the best individual, within all limits, and its value.
    generations, evaluations
        How long it searched.
    stop
        Why it stopped.
    incumbents
        Pairs (seconds since entry, objective), each better than the one before.
    logbook
        One record per generation: ``generation, evaluations, best, mean, distinct``.
    """

    genome: NDArray[np.int64]
    objective: float
    generations: int
    evaluations: int
    stop: StopReason
    incumbents: tuple[tuple[float, float], ...]
    logbook: tools.Logbook


class Worth(base.Fitness):  # type: ignore[misc]
    """The value of a plan, to be maximised."""

    weights = (1.0,)


class Individual:
    """A line of the population as DEAP's selection sees it."""

    __slots__ = ("fitness", "line")

    def __init__(self, line: int, worth: float) -> None:
        self.line = line
        self.fitness = Worth((worth,))


@contextmanager
def owned_randomness(seed: int) -> Iterator[Generator]:
    """Seed the global `random`, which DEAP draws from, and give it back as it was found.

    Yields the NumPy generator for everything else. Two searches in two threads of one process
    would draw from each other's `random`; ronda runs them in processes.
    """
    state = random.getstate()
    random.seed(seed)
    try:
        yield np.random.default_rng(seed)
    finally:
        random.setstate(state)


def toolbox(genes: Genes, settings: Settings, rng: Generator) -> base.Toolbox:
    """Return the operators of the search; all but `select` work on (P, n) populations."""
    box = base.Toolbox()
    box.register("select", tools.selTournament, tournsize=settings.tournament)
    box.register("mate", operators.crossover, probability=settings.crossover, rng=rng)
    box.register("mutate", operators.mutate, genes, probability=settings.mutation, rng=rng)
    box.register("repair", repair, genes)
    box.register("improve", improve, genes, rng=rng)
    box.register("evaluate", genes.values)
    keys = rng.integers(1 << 62, size=len(genes.row))
    box.register("survive", operators.survivors, keys=keys, size=settings.population)
    return box


def improve(genes: Genes, population: Population, *, rng: Generator) -> Population:
    """Return the feasible population with left capacity filled.

    Twice with each job's best step up, then with rows drawn at random, which also finds steps
    that fit where the best one does not.
    """
    for _ in range(2):
        population = fill(genes, population, genes.up.take(population))
    return fill(genes, population, operators.draw(genes, len(population), rng))


def first_generation(genes: Genes, seeds: Population, size: int, rng: Generator) -> Population:
    """Return individuals to begin with: all seeds, and others up to `size`.

    With prices, most others are best responses to disturbed prices; otherwise, and for the last
    eighth in any case, they are draws at random, every other one crossed with a seed.
    """
    rest = max(0, size - len(seeds))
    priced = rest - rest // 8 if (genes.prices > 0).any() else 0
    guided = operators.draw_priced(genes, priced, SPREAD, rng)
    others = operators.draw(genes, rest - priced, rng)
    if len(seeds):
        mates = seeds[np.arange(len(others[::2])) % len(seeds)]
        others[::2] = operators.crossover(others[::2], mates, 1.0, rng)
    return np.concatenate([seeds, guided, others])


def evolve(
    genes: Genes,
    seeds: Population,
    settings: Settings,
    stop: Criterion,
    *,
    seed: int,
    deadline: Deadline,
) -> Outcome:
    """Search for the genome of the most value within all limits.

    The same arguments give the same trajectory, unless `stop` looks at the clock. The caller's
    global `random` is as it was afterwards.

    Parameters
    ----------
    genes
        What is searched; at least one gene.
    seeds
        (S, n) genomes to start from; they are repaired. The result is never worse than any.
    settings, stop
        How to search, and for how long.
    seed
        Of all randomness.
    deadline
        Only for the times of `Outcome.incumbents`; to stop in time is the matter of `stop`.
    """
    with owned_randomness(seed) as rng:
        search = _Search(genes, settings, toolbox(genes, settings, rng), deadline)
        search.begin(first_generation(genes, seeds, settings.population, rng))
        while (told := stop(search.status))[0] < 1.0:
            search.step()
        return search.outcome(told[1])


class _Search:
    """The state of a search between generations; individuals are kept best first."""

    def __init__(
        self, genes: Genes, settings: Settings, box: base.Toolbox, deadline: Deadline
    ) -> None:
        self.genes, self.settings, self.box, self.deadline = genes, settings, box, deadline
        self.logbook = tools.Logbook()
        self.incumbents: list[tuple[float, float]] = []
        self.population: Population = np.empty((0, len(genes)), dtype=np.int64)
        self.worth: Floats = np.empty(0)
        self.evaluations = self.stagnant = 0
        self.ended_s = deadline.elapsed()
        self.generation_s = 0.0

    @property
    def status(self) -> Status:
        """How far the search is."""
        return Status(
            generations=len(self.logbook) - 1,
            evaluations=self.evaluations,
            stagnant=self.stagnant,
            best=float(self.worth[0]),
            generation_s=self.generation_s,
        )

    def begin(self, population: Population) -> None:
        """Make the first generation."""
        self._admit(self.box.repair(population))

    def step(self) -> None:
        """Make one more generation."""
        mothers = self.population
        lines = [Individual(i, worth) for i, worth in enumerate(self.worth.tolist())]
        chosen: list[Any] = self.box.select(lines, len(lines))
        children = self.box.mate(mothers, mothers[[father.line for father in chosen]])
        mutants = self.box.mutate(children)
        self._admit(self.box.repair(mutants, keep=mutants != children))

    def _admit(self, children: Population) -> None:
        """Let repaired children grow and compete with the living."""
        children = self.box.improve(children)
        population = np.concatenate([self.population, children])
        worth = np.concatenate([self.worth, self.box.evaluate(children)])
        alive = self.box.survive(population, worth)
        self.population, self.worth = population[alive], worth[alive]
        self.evaluations += len(children)
        self._record()

    def _record(self) -> None:
        """Note the generation in the logbook, and the incumbent if it is a better one."""
        now = self.deadline.elapsed()
        self.generation_s, self.ended_s = now - self.ended_s, now
        best = float(self.worth[0])
        if not self.incumbents or best > self.incumbents[-1][1]:
            self.incumbents.append((now, best))
            self.stagnant = 0
        else:
            self.stagnant += 1
        self.logbook.record(
            generation=len(self.logbook),
            evaluations=self.evaluations,
            best=best,
            mean=float(self.worth.mean()),
            distinct=len(np.unique(self.worth)),
        )

    def outcome(self, stop: StopReason) -> Outcome:
        """Return the best individual and the history."""
        return Outcome(
            genome=self.population[0],
            objective=float(self.worth[0]),
            generations=len(self.logbook) - 1,
            evaluations=self.evaluations,
            stop=stop,
            incumbents=tuple(self.incumbents),
            logbook=self.logbook,
        )
