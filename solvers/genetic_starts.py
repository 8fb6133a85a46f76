"""Genomes to start a search from that need no search themselves."""

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.genome import Genes, Population
from ronda.instances.errors import InputError
from ronda.solvers.genetic_local import core
from ronda.solvers.genetic_operators import favourites

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


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


def named(genes: Genes, jobs: tuple[str, ...], rows: dict[str, int]) -> Population:
    """Return the (1, n) genome that gives jobs rows of the option table; all others wait.

    Parameters
    ----------
    jobs
        Ids of the table's jobs, in its order.
    rows
        By job id.

    Raises
    ------
    InputError
        For a job that is not live (it may have finished), or a row that is none of its choices.
    """
    genome = genes.first.copy()
    gene = {jobs[j]: i for i, j in enumerate(genes.column.tolist())}
    live = set(jobs)
    for job, row in rows.items():
        if job not in live:
            raise InputError("genome", f"job {job!r}", "jobs that are live: it may have finished")
        if job not in gene:
            raise InputError("genome", f"job {job!r}", "jobs that have a choice")
        first, count = int(genes.first[gene[job]]), int(genes.count[gene[job]])
        own = np.flatnonzero(genes.row[first : first + count] == row)
        if row < 0 or not len(own):
            raise InputError(f"genome: job {job!r}", f"row {row}", "one of its own options")
        genome[gene[job]] = first + int(own[0])
    return genome[None]
