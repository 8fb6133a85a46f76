"""A separable problem in parts that share no resource, each a problem of its own.

Jobs and blocks are linked by what they both use. A resource that everybody could take the most of
at once never binds: it links nothing, and no part has a row for it. What is linked by a resource
that can bind, directly or through others, are the connected components of this graph: as it has
only as many vertices as there are resources, its transitive closure by repeated squaring finds them
in less time than a library for graphs takes to load, which a decision with a deadline would pay.

The best answer is the best answers of all parts together, and the sum of their bounds bounds it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Mask, Rows

FREE = -1
"""The component of jobs and blocks that use nothing which can bind."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a problem, and where its jobs, options, resources and blocks stand in the whole."""

    problem: Separable
    jobs: Rows
    options: Rows
    resources: Rows
    blocks: Rows


def independent(problem: Separable) -> list[Part]:
    """Return the parts of a problem; none if all of it hangs together."""
    if len(problem.names) < 2:
        return []
    filled = np.flatnonzero(np.diff(problem.start))
    at = problem.start[filled]
    binds = _may_bind(problem, at)
    uses = _linked_by(problem, at)[binds]
    component = _components(uses)
    owner = np.where(uses.any(axis=0), component[uses.argmax(axis=0)] if len(uses) else FREE, FREE)
    kinds = sorted({*component.tolist(), *owner.tolist()})
    if len(kinds) < 2:
        return []
    rows, job, block = np.flatnonzero(binds), owner[: len(filled)], owner[len(filled) :]
    return [
        _cut(problem, filled[job == kind], rows[component == kind], np.flatnonzero(block == kind))
        for kind in kinds
    ]


def _may_bind(problem: Separable, at: Rows) -> Mask:
    """Tell (R,) of which resources there is less than all jobs and blocks could take at most."""
    most = (np.maximum(problem.block_use, 0.0) * problem.block_count).sum(axis=1)
    if len(at):
        each = np.maximum.reduceat(problem.use, at, axis=1)
        most += np.maximum(each, 0.0).sum(axis=1)
    return np.asarray(most > problem.capacity)


def _linked_by(problem: Separable, at: Rows) -> Mask:
    """Tell (R, F + B) which resources the jobs that have options, and the blocks, use."""
    uses: NDArray[np.bool_] = problem.use != 0
    if len(at):
        uses = np.logical_or.reduceat(uses, at, axis=1)
    return np.concatenate([uses, problem.block_use != 0], axis=1)


def _components(uses: Mask) -> Rows:
    """Return the component of each resource: the first one that it is linked with."""
    of_one: Floats = uses.astype(float)
    linked = (of_one @ of_one.T > 0) | np.eye(len(uses), dtype=bool)
    while np.count_nonzero(wider := linked @ linked) > np.count_nonzero(linked):
        linked = wider
    return linked.argmax(axis=1) if len(linked) else np.zeros(0, dtype=np.int64)


def _cut(problem: Separable, jobs: Rows, resources: Rows, blocks: Rows) -> Part:
    counts = np.diff(problem.start)[jobs]
    start = np.concatenate([[0], np.cumsum(counts)])
    options = np.arange(start[-1]) + (problem.start[jobs] - start[:-1]).repeat(counts)
    own = Separable(
        start=start,
        value=problem.value[options],
        use=problem.use[np.ix_(resources, options)],
        capacity=problem.capacity[resources],
        names=tuple(problem.names[r] for r in resources.tolist()),
        must=problem.must[jobs],
        block_value=problem.block_value[blocks],
        block_use=problem.block_use[np.ix_(resources, blocks)],
        block_count=problem.block_count[blocks],
        block_integer=problem.block_integer[blocks],
    )
    return Part(own, jobs, options, resources, blocks)
