"""Making whole populations feasible, and filling what capacity they leave.

Both work in rounds of *moves*: every job of every individual proposes one row to go to, the
proposals of an individual are ranked by value per unit of resource, and the longest prefix that
serves its purpose is taken. No Python loop runs over individuals or jobs.
"""

import numpy as np

from ronda.formulations.genes.genome import Genes, Population
from ronda.instances.arrays import Floats, Mask, Rows


def repair(genes: Genes, population: Population, keep: Mask | None = None) -> Population:
    """Return the population with every individual within all limits.

    An individual that over-uses resources shrinks options along `Genes.down` of the one that is
    over-used the most, least value lost per unit freed first, until the excess is gone. No step
    uses more of any resource, and every job's steps end at "waits", so this ends.

    Genes to `keep` (P, n) shrink only once all others of the individual wait: what one job lost for
    another to grow is often worth less per unit than the growth, which would be taken back.
    """
    population = population.copy()
    over = np.arange(len(population))
    while len(over):
        loads = np.array(genes.loads(genes.sums(population[over]))).T
        excess = loads - genes.limit
        still = (excess > 0).any(axis=1)
        over, excess = over[still], excess[still]
        if len(over):
            worst = (excess / genes.capacity).argmax(axis=1)
            population[over] = _shrink(
                genes,
                population[over],
                worst,
                excess[np.arange(len(over)), worst],
                None if keep is None else keep[over],
            )
    return population


def _shrink(
    genes: Genes, chosen: Population, resource: Rows, excess: Floats, keep: Mask | None
) -> Population:
    """Take each individual's mildest steps down until `excess` of its `resource` is freed."""
    which = resource[:, None]
    target = genes.down[which, chosen]
    freed = genes.burden[which, chosen] - genes.burden[which, target]
    if keep is not None:
        others = np.where(keep, 0.0, freed)
        freed = np.where(others.any(axis=1, keepdims=True), others, freed)
    loss = genes.value.take(chosen) - genes.value.take(target)
    steps = freed > 0
    order = ranking(np.where(steps, loss / np.maximum(freed, 1e-300), np.inf))
    ranked = freed.take(order)
    take = np.empty(chosen.shape, dtype=bool)
    take.put(order, (ranked.cumsum(axis=1) - ranked < excess[:, None]) & steps.take(order))
    return np.where(take, target, chosen)


def fill(genes: Genes, population: Population, target: Population) -> Population:
    """Move genes to `target` where that gains value and fits; `population` must be feasible.

    Proposals that fit by themselves are ranked by value per added cost and taken as far as they
    fit together.
    """
    gain = genes.value.take(target) - genes.value.take(population)
    extra = [np.maximum(d.take(target) - d.take(population), 0.0) for d in genes.demand]
    sums = genes.sums(population)
    fits = (gain > 0) & _within(genes, sums, extra)
    some = np.flatnonzero(fits.any(axis=1))
    if not len(some):
        return population
    fits, gain, before, after = fits[some], gain[some], population[some], target[some]
    added = np.maximum(genes.cost.take(after) - genes.cost.take(before), 1e-12)
    order = ranking(np.where(fits, -gain / added, np.inf))
    together = [np.where(fits, more[some], 0.0).take(order).cumsum(axis=1) for more in extra]
    take = np.empty(fits.shape, dtype=bool)
    take.put(order, fits.take(order) & _within(genes, [s[some] for s in sums], together))
    result = population.copy()
    result[some] = np.where(take, after, before)
    return result


def _within(genes: Genes, sums: list[Floats], extra: list[Floats]) -> Mask:
    """Tell (P, n) whether each individual could bear each of its (P, n) extra demands."""
    return genes.inside([s[:, None] + more for s, more in zip(sums, extra, strict=True)])


def ranking(keys: Floats) -> Rows:
    """Return (P, n) flat indices that sort each row of `keys`, for `take` and `put`."""
    rows, n = keys.shape
    return np.asarray(keys.argsort(axis=1, kind="stable") + np.arange(0, rows * n, n)[:, None])
