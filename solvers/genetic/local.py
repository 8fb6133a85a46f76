"""Local search for whole populations: exchanges of two jobs, guided by reduced cost.

The *loss* of a row at given prices is its job's greatest value less price, minus the row's own.
Rows of little loss make up the core; a plan near the bound uses hardly any other. An exchange
opens with a core row for one job, whether or not it fits, and closes with the row of another job
that restores the limits at the greatest gain; a push lets as many others shrink as it takes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ronda.formulations.genes.genome import Genes, Population
from ronda.solvers.genetic.repair import fill, repair

ROWS_PER_JOB = 4  # rows in the core for each job, on average
SPARED = 0.3  # share of jobs that a push leaves alone, so that another try shrinks others
WORTHWHILE = 1e-12  # gains below this share of the greatest value are rounding


@dataclass(frozen=True, slots=True)
class Core:
    """The rows that exchanges use."""

    row: Population  # (C,) rows of least loss, ascending
    job: Population  # (C,) the gene that each belongs to
    favourite: Population  # (n,) each gene's row without loss: its best response to the prices


def core(genes: Genes) -> Core:
    """Return the core of the genes at their prices."""
    reduced = genes.surplus
    favourite = genes.favourites(reduced)
    best = np.repeat(reduced[favourite], genes.count)
    size = min(len(reduced), ROWS_PER_JOB * len(genes))
    row = np.argsort(best - reduced, kind="stable")[:size]
    job = np.repeat(np.arange(len(genes)), genes.count)
    return Core(row, job[row], favourite)


def exchange(genes: Genes, of: Core, population: Population, rng: Generator) -> Population:
    """Return the feasible population after the best exchange for one opening of each individual.

    An individual that no second job lets gain stays as it is.
    """
    lines = np.arange(len(population))
    opening, opened = _open(of, population, rng)
    gained = genes.value.take(opened).sum(axis=1) - genes.value.take(population).sum(axis=1)
    now = opened.take(of.job, axis=1)
    gain = genes.value.take(of.row) - genes.value.take(now) + gained[:, None]
    sums = [
        total[:, None] + (column.take(of.row) - column.take(now))
        for total, column in zip(genes.sums(opened), genes.demand, strict=True)
    ]
    fits = of.job[None, :] != of.job[opening][:, None]
    fits &= genes.inside(sums)
    gain = np.where(fits, gain, -np.inf)
    closing = gain.argmax(axis=1)
    good = gain[lines, closing] > WORTHWHILE * float(genes.value.max())
    result = population.copy()
    chosen, line = closing[good], lines[good]
    result[line] = opened[line]
    result[line, of.job[chosen]] = of.row[chosen]
    return result


def push(genes: Genes, of: Core, population: Population, rng: Generator) -> Population:
    """Return the feasible population after one push of each individual, where that gains.

    A push opens like an exchange and lets as many other jobs shrink as it takes, those of least
    value per unit first; what is left over is filled. It finds what exchanges of two cannot: one
    large job in place of several small ones, and the reverse.
    """
    opening, opened = _open(of, population, rng)
    keep = rng.random(population.shape) < SPARED
    keep[np.arange(len(population)), of.job[opening]] = True
    pushed = repair(genes, opened, keep=keep)
    for _ in range(2):
        pushed = fill(genes, pushed, genes.up.take(pushed))
    gained = genes.value.take(pushed).sum(axis=1) - genes.value.take(population).sum(axis=1)
    good = gained > WORTHWHILE * float(genes.value.max())
    return np.where(good[:, None], pushed, population)


def _open(of: Core, population: Population, rng: Generator) -> tuple[Population, Population]:
    """Return (P,) a core row drawn for each individual, and the population with them put in.

    Rows that the individual has already are passed over; of the others little losses are drawn
    much more often: with u even in 0..1, the one at the share u^3 of the list.
    """
    other = of.row[None, :] != population.take(of.job, axis=1)
    place = other.cumsum(axis=1)
    drawn = np.ceil(place[:, -1] * rng.random(len(population)) ** 3)
    opening = (place >= np.maximum(drawn, 1)[:, None]).argmax(axis=1)
    opened = population.copy()
    opened[np.arange(len(population)), of.job[opening]] = of.row[opening]
    return opening, opened
