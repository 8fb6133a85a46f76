"""Capacities rounded down, since 13 GPUs hold 3 jobs of 4 GPUs, and not 3.25.

Where all amounts of a resource are whole numbers, each answer satisfies for every size d ::

    sum_k floor(use_k / d) x_k <= floor(capacity / d)

(Gomory, 1958; Chvatal, 1973). Such a row is new where d does not divide the capacity. It lowers the
bound of the relaxation at once, whereas a search would lower it job by job. Where sizes divide each
other, no further rows are needed.
"""

from dataclasses import replace

import numpy as np

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.instances.base import Floats, Ints, Mask

LARGEST = 64
"""The largest size that gets a row."""


def with_floors(problem: Separable) -> tuple[Separable, Ints, Ints]:
    """Return a normalised problem with rounded capacities as additional resources.

    Also return the rounded resource and the size of each of them.
    """
    use = problem.use.by_kinds()
    sizes = _sizes(problem, use)
    whole = np.arange(sizes.shape[1])
    uneven = np.mod(problem.capacity[:, None], np.maximum(whole, 1)) != 0
    of, size = np.nonzero(sizes & uneven & (whole > 1))
    number = np.full(sizes.shape, -1, dtype=np.int32)
    number[of, size] = len(problem.names) + np.arange(len(of))
    resource, amount = [use.resource], [use.amount]
    for d in np.unique(size).tolist():
        new = number[use.resource, d]
        resource.append(np.maximum(new, 0))
        amount.append(np.where(new >= 0, np.floor(use.amount / d), 0.0))
    tight = replace(
        problem,
        use=Uses(len(problem.names) + len(of), np.vstack(resource), np.vstack(amount), use.kind),
        capacity=np.append(problem.capacity, np.floor(problem.capacity[of] / size)),
        names=(*problem.names, *(f"{problem.names[r]}/{d}" for r, d in zip(of, size, strict=True))),
        block_use=np.vstack([problem.block_use, np.zeros((len(of), len(problem.block_value)))]),
    )
    return tight, of, size


def folded(prices: Floats, of: Ints, size: Ints) -> Floats:
    """Return the prices per unit with those of rounded capacities added, shape (R,)."""
    plain = prices[: len(prices) - len(of)].copy()
    np.add.at(plain, of, prices[len(plain) :] / size)
    return plain


def _sizes(problem: Separable, use: Uses) -> Mask:
    """Return whether options use each resource in each size, shape (R, LARGEST + 1).

    Resources with fractional or negative amounts or capacities, and resources that blocks use or
    provide, are left out.
    """
    width = LARGEST + 1
    odd = (use.amount < 0) | (use.amount != np.rint(use.amount))
    apart = (use.reduced(np.maximum, odd.astype(float), 0.0) > 0) | problem.block_use.any(axis=1)
    apart |= (problem.capacity < 0) | (problem.capacity != np.rint(problem.capacity))
    small = np.where(use.amount <= LARGEST, use.amount, 0).astype(np.int64)
    found = np.zeros(use.resources * width, dtype=bool)
    for resource, amount in zip(use.resource, small, strict=True):
        found[resource * width + amount] = True
    return found.reshape(-1, width) & ~apart[:, None]
