"""Genomes to start a search from that need no search themselves."""

import numpy as np

from ronda.formulations.genes.genome import Genes
from ronda.instances.arrays import Floats, Rows
from ronda.solvers.genetic.local import core
from ronda.solvers.genetic.operators import favourites


def shortest_first(genes: Genes, left_s: Floats) -> Rows:
    """Return (n,) the genome that serves jobs of the shortest remaining time first (SRPT).

    The longest prefix of jobs that fits gets its cheapest row; of these, again the longest prefix
    that fits gets its most valuable one.

    Parameters
    ----------
    left_s
        (n,) expected seconds until completion of each gene's job at its best.
    """
    order = np.argsort(left_s, kind="stable")
    dearest = favourites(genes, genes.value)
    genome = genes.first.copy()
    for target in (genes.first + np.minimum(1, genes.count - 1), dearest):
        change = [d.take(target) - d.take(genome) for d in genes.demand]
        now = genes.sums(genome[None])
        along = [s[0] + c.take(order).cumsum() for s, c in zip(now, change, strict=True)]
        inside = np.logical_and.reduce(
            [load <= top for load, top in zip(genes.loads(along), genes.limit, strict=True)]
        )
        count = len(order) if inside.all() else int(inside.argmin())
        genome[order[:count]] = target[order[:count]]
    return genome


def priced(genes: Genes) -> Rows:
    """Return (n,) every job's best response to the prices; it may break limits."""
    return core(genes).favourite
