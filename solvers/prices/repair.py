"""A feasible answer at once: take options away until no resource is over-used."""

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Ints


def without_excess(problem: Separable, chosen: Ints, blocks: Floats) -> Ints:
    """Return the choice without the jobs that give least value for what is over-used.

    Each job counts by its share of the resources that are over-used; jobs with the least value a
    share go first, only as many as are needed, and jobs that must run stay. The answer may still
    be infeasible (jobs that must run, resources of which a least amount must be used).

    Parameters
    ----------
    problem
        The problem.
    chosen, blocks
        The option of each job (-1: none), and the count of each block.
    """
    result = chosen.copy()
    for _ in range(len(problem.capacity)):
        excess = problem.excess(result, blocks)
        over = excess > 1e-9 * np.abs(problem.capacity)
        movable = np.flatnonzero((result >= 0) & ~problem.must)
        if not over.any() or not len(movable):
            break
        rows = result[movable]
        share = (problem.use[over][:, rows] / excess[over][:, None]).sum(axis=0)
        helps = share > 0
        movable, rows, share = movable[helps], rows[helps], share[helps]
        order = np.argsort(problem.value[rows] / share, kind="stable")
        freed = np.cumsum(problem.use[over][:, rows[order]], axis=1)
        enough = (freed >= excess[over][:, None]).all(axis=0)
        count = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        result[movable[order[:count]]] = -1
    return result
