"""Several objectives at once: NSGA-II over the same genomes and operators.

What is kept is not the best individual but those that no other beats in everything: DEAP's
selection by non-dominated sorting and crowding distance (Deb et al., IEEE TEC 6(2), 2002).
"""

from dataclasses import dataclass

import numpy as np
from deap import base, tools
from numpy.typing import NDArray

from ronda.formulations.genes.genome import Genes, Population
from ronda.instances.arrays import Floats
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic import operators
from ronda.solvers.genetic.island import Settings, improve
from ronda.solvers.genetic.local import surplus
from ronda.solvers.genetic.repair import repair
from ronda.solvers.stopping import Criterion, Status

WEIGHTS = 16
"""Weights of watts for which the first generation has best responses."""


class Scores(base.Fitness):  # type: ignore[misc]
    """Value to be maximised, power and changes to be minimised."""

    weights = (1.0, -1.0, -1.0)


class Individual:
    """A line of the population as DEAP's selection sees it."""

    __slots__ = ("fitness", "line")

    def __init__(self, line: int, fitness: Scores) -> None:
        self.line = line
        self.fitness = fitness


@dataclass(frozen=True, slots=True)
class Measures:
    """What individuals are judged by.

    Attributes
    ----------
    genes
        What is searched.
    power_w
        (k,) watts of each row.
    moves
        (k,) 1 for rows of running jobs that are not what the job runs on, "waits" included.
    fixed_w
        Watts of the jobs without a choice.
    """

    genes: Genes
    power_w: Floats
    moves: Floats
    fixed_w: float

    @classmethod
    def of(cls, genes: Genes, power_w: Floats, fixed_w: float) -> "Measures":
        """Return the measures of genes whose jobs' held rows are known."""
        held = np.repeat(genes.held, genes.count)
        runs = genes.row[held] >= 0
        moves = runs & (np.arange(len(genes.row)) != held)
        return cls(genes, power_w, moves.astype(float), fixed_w)

    def scores(self, population: Population) -> Floats:
        """Return (P, 3) worth, watts of the jobs, and running jobs that change or stop."""
        watts = self.power_w.take(population).sum(axis=1) + self.fixed_w
        changes = self.moves.take(population).sum(axis=1)
        return np.stack([self.genes.worth(population), watts, changes], axis=1)


@dataclass(frozen=True, slots=True)
class Front:
    """Individuals of which none beats another in everything.

    Attributes
    ----------
    genomes, scores
        (F, n) and (F, 3), by falling worth; see `Measures.scores`.
    generations, evaluations
        How long it was searched.
    """

    genomes: Population
    scores: Floats
    generations: int
    evaluations: int


def non_dominated(scores: Floats) -> NDArray[np.bool_]:
    """Tell (P,) which of (P, 3) scores no other one beats; of equal ones the first counts."""
    gains = scores * Scores.weights
    at_least = (gains[:, None, :] >= gains[None, :, :]).all(axis=2)
    better = at_least & (gains[:, None, :] > gains[None, :, :]).any(axis=2)
    same = at_least & at_least.T
    earlier = np.tri(len(scores), k=-1, dtype=bool).T
    return np.asarray(~(better | (same & earlier)).any(axis=0))


def front(
    measures: Measures,
    seeds: Population,
    settings: Settings,
    stop: Criterion,
    *,
    seed: int,
    deadline: Deadline,
) -> Front:
    """Search for plans that trade worth against power and changes.

    Parameters
    ----------
    measures
        The genes and what they are judged by.
    seeds
        (S, n) genomes to start from.
    settings, stop
        How to search, and for how long; `stop` sees the best worth. Islands and exchanges are not
        used.
    seed, deadline
        As of `ronda.solvers.genetic.engine.evolve`.
    """
    genes, size = measures.genes, settings.population
    rng = np.random.default_rng(seed)
    first = np.concatenate([seeds, _trades(measures), operators.draw(genes, size // 4, rng)])
    population = repair(genes, first)
    scores = measures.scores(population)
    population, scores = _survive(population, scores, size)
    evaluations, generations, stagnant, generation_s = len(first), 0, 0, 0.0
    best = float(scores[:, 0].max())
    while True:
        status = Status(generations, evaluations, stagnant, best, generation_s)
        if stop(status)[0] >= 1.0:
            break
        began = deadline.elapsed()
        fathers = population[rng.permutation(len(population))]
        children = operators.crossover(population, fathers, settings.crossover, rng)
        mutants = operators.mutate(genes, children, settings.mutation, rng)
        mutants = repair(genes, mutants, keep=mutants != children)
        grows = rng.random(len(mutants)) < 0.5  # the others keep the power that they save
        mutants[grows] = improve(genes, mutants[grows], rng=rng)
        population = np.concatenate([population, mutants])
        scores = np.concatenate([scores, measures.scores(mutants)])
        population, scores = _survive(population, scores, size)
        generations, evaluations = generations + 1, evaluations + len(mutants)
        top = float(scores[:, 0].max())
        stagnant, best = (0, top) if top > best else (stagnant + 1, best)
        generation_s = deadline.elapsed() - began
    on = non_dominated(scores)
    order = np.flatnonzero(on)[np.argsort(-scores[on, 0], kind="stable")]
    return Front(population[order], scores[order], generations, evaluations)


def _trades(measures: Measures) -> Population:
    """Return best responses at the prices to ever dearer watts, and the plan that changes nothing.

    They lie on or near the convex part of the front.
    """
    genes = measures.genes
    worth = surplus(genes, genes.prices)
    scale = float(genes.value.max()) / max(float(measures.power_w.max()), 1e-12)
    weights = np.concatenate([[0.0], scale * np.geomspace(1e-3, 10.0, WEIGHTS - 1)])
    merit = worth - weights[:, None] * measures.power_w
    return np.concatenate([genes.held[None], operators.favourites(genes, merit)])


def _survive(population: Population, scores: Floats, size: int) -> tuple[Population, Floats]:
    """Return `size` different individuals by NSGA-II's selection."""
    _, different = np.unique(population, axis=0, return_index=True)
    lines = [Individual(i, Scores(tuple(scores[i].tolist()))) for i in np.sort(different).tolist()]
    chosen = tools.selNSGA2(lines, min(size, len(lines)), nd="log")
    kept = [individual.line for individual in chosen]
    return population[kept], scores[kept]
