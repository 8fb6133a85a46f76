"""A population and its evolution: DEAP's toolbox around vectorised operators.

A generation: parents are selected by tournament, children take genes from either parent, some
mutate, all are repaired and what capacity they leave is filled; the best different ones of
parents and children survive.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from deap import base
from numpy.random import Generator

from ronda.formulations.genes.genome import Genes, Population
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.errors import InputError
from ronda.solvers.genetic import operators
from ronda.solvers.genetic.local import core, exchange, push
from ronda.solvers.genetic.repair import fill, repair

SPREAD = 0.2
"""Standard deviation of the lognormal disturbance of prices in the first generation."""

LEARNING = 0.2
"""Weight of the last generation in an operator's credit."""

FLOOR = 0.1
"""Least share of the cases in which an operator is used, so that it is not forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Parameters of the evolution."""

    population: int = 64  # individuals in each generation, and children of it; at least 4
    crossover: float = 0.9  # probability of a child to have two parents
    mutation: float = 0.6  # probability of a child to mutate
    tournament: int = 2  # individuals among which the best becomes a parent
    exchanges: int = 0  # of two jobs, tried for each child; before one push if there are any
    adaptive: bool = False  # whether kinds of crossover and mutation compete by their success

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        check_settings("settings", self)


def check_settings(place: str, given: Any) -> None:
    """Refuse parameters of an evolution that make no sense; `given` has them as attributes."""
    leasts = {"population": 4, "tournament": 1, "exchanges": 0}
    for name, least in leasts.items():
        value = getattr(given, name, least)
        if value < least:
            raise InputError(f"{place}: {name}", f"{value}", f"at least {least}")
    for name in ("crossover", "mutation"):
        if not 0 <= getattr(given, name) <= 1:
            raise InputError(f"{place}: {name}", f"{getattr(given, name):g}", "a number in 0..1")


def toolbox(genes: Genes, settings: Settings, rng: Generator) -> base.Toolbox:
    """Return the operators of the search; all but `select` work on (P, n) populations."""
    box = base.Toolbox()
    box.register("select", operators.tournament, settings.population, settings.tournament, rng=rng)
    box.register("repair", repair, genes)
    box.register("improve", improve, genes, rng=rng)
    box.register("evaluate", genes.worth)
    keys = rng.integers(1 << 62, size=len(genes.row))
    box.register("survive", operators.survivors, keys=keys, size=settings.population)
    box.register("mate_jobs", operators.crossover, probability=settings.crossover, rng=rng)
    box.register("mutate_rows", operators.mutate, genes, probability=settings.mutation, rng=rng)
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


def shortest_first(genes: Genes, left_s: Floats) -> Rows:
    """Return (n,) the genome that serves jobs of the shortest remaining time first (SRPT).

    The longest prefix of jobs that fits gets its cheapest row; of these, again the longest prefix
    that fits gets its most valuable one. `left_s` (n,) are the expected seconds until completion
    of each gene's job at its best.
    """
    order = np.argsort(left_s, kind="stable")
    genome = genes.first.copy()
    cheapest = genes.first + np.minimum(1, genes.count - 1)
    for target in (cheapest, genes.favourites(genes.value)):
        change = [d.take(target) - d.take(genome) for d in genes.demand]
        now = genes.sums(genome[None])
        along = [s[0] + c.take(order).cumsum() for s, c in zip(now, change, strict=True)]
        inside = genes.inside(along)
        count = len(order) if inside.all() else int(inside.argmin())
        genome[order[:count]] = target[order[:count]]
    return genome


class Rates:
    """How often each of several operators is used: probability matching (Goldberg 1990).

    Operators begin with equal credit, their share of successes of late.
    """

    def __init__(self, kinds: int) -> None:
        self.credit: Floats = np.full(kinds, 0.5)

    @property
    def probability(self) -> Floats:
        """Return (K,) how often each operator is used, none below `FLOOR`."""
        total, kinds = float(self.credit.sum()), len(self.credit)
        share = self.credit / total if total > 0 else np.full(kinds, 1.0 / kinds)
        return FLOOR + (1.0 - FLOOR * kinds) * share

    def draw(self, size: int, rng: Generator) -> Rows:
        """Return (size,) operators to use."""
        edges = np.cumsum(self.probability)[:-1]
        return np.searchsorted(edges, rng.random(size), side="right")

    def learn(self, kinds: Rows, success: Mask) -> None:
        """Take (P,) uses and whether each succeeded into account; -1 is no use."""
        for kind in range(len(self.credit)):
            used = kinds == kind
            if used.any():
                share = float(success[used].mean())
                self.credit[kind] += LEARNING * (share - self.credit[kind])


class Evolution:
    """A population (P, n) between generations; individuals are kept best first."""

    def __init__(self, genes: Genes, settings: Settings, seed: int) -> None:
        self.genes, self.settings = genes, settings
        self.rng = np.random.default_rng(seed)
        self.box = toolbox(genes, settings, self.rng)
        self.core = core(genes)
        self.mating, self.mutating = Rates(2), Rates(3)
        self.population: Population = np.empty((0, len(genes)), dtype=np.int64)
        self.worth: Floats = np.empty(0)
        self.evaluations = 0

    def begin(self, seeds: Population) -> None:
        """Make the first generation, with these genomes among others."""
        first = first_generation(self.genes, seeds, self.settings.population, self.rng)
        self._admit(self.box.repair(first))

    def step(self) -> None:
        """Make one more generation."""
        mothers, before = self.population, self.worth
        fathers = mothers[self.box.select()]
        if not self.settings.adaptive:
            children = self.box.mate_jobs(mothers, fathers)
            mutants = self.box.mutate_rows(children)
            self._admit(self.box.repair(mutants, keep=mutants != children))
            return
        children, mated = self._mate(mothers, fathers)
        mutants, mutated = self._mutate(children)
        success = self._admit(self.box.repair(mutants, keep=mutants != children)) > before
        self.mating.learn(mated, success)
        self.mutating.learn(mutated, success)

    def _mate(self, mothers: Population, fathers: Population) -> tuple[Population, Rows]:
        """Cross parents, each pair by one kind of crossover; also return the kinds (-1: none)."""
        kinds = self._kinds(self.mating, self.settings.crossover, len(mothers))
        children = mothers.copy()
        jobs, groups = kinds == 0, kinds == 1
        children[jobs] = operators.crossover(mothers[jobs], fathers[jobs], 1.0, self.rng)
        children[groups] = operators.crossover_groups(
            self.genes, mothers[groups], fathers[groups], self.rng
        )
        return children, kinds

    def _mutate(self, children: Population) -> tuple[Population, Rows]:
        """Mutate children, each by one kind of mutation; also return the kinds (-1: none)."""
        kinds = self._kinds(self.mutating, self.settings.mutation, len(children))
        mutants = children.copy()
        redrawn = kinds == 0
        mutants[redrawn] = operators.mutate(self.genes, children[redrawn], 1.0, self.rng)
        for kind, to in ((1, self.core.favourite), (2, self.genes.held)):
            hit = kinds == kind
            mutants[hit] = operators.revert(self.genes, children[hit], to, self.rng)
        return mutants, kinds

    def _kinds(self, rates: Rates, probability: float, size: int) -> Rows:
        """Return (size,) kinds of an operator that is used at all with some probability."""
        kinds = rates.draw(size, self.rng)
        return np.where(self.rng.random(size) < probability, kinds, -1)

    def _admit(self, children: Population) -> Floats:
        """Let repaired children grow and compete with the living; return what they are worth."""
        children = self.box.improve(children)
        for _ in range(self.settings.exchanges):
            children = exchange(self.genes, self.core, children, self.rng)
        if self.settings.exchanges:
            children = push(self.genes, self.core, children, self.rng)
        worth: Floats = self.box.evaluate(children)
        population = np.concatenate([self.population, children])
        worths = np.concatenate([self.worth, worth])
        alive = self.box.survive(population, worths)
        self.population, self.worth = population[alive], worths[alive]
        self.evaluations += len(children)
        return worth
