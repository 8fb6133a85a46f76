"""An independent look at the price engine's answers: the bound recomputed from the prices alone.

Nothing of the engine is needed. Any p >= 0 gives a true bound, so that wrong prices can only make
it weaker::

    D(p) = sum_r p_r c_r + sum_j max(0, max_k (v_jk - p.a_jk)) + sum_b n_b max(0, v_b - p.a_b)

without the 0 for a job that must run.
"""

import math
from typing import NamedTuple

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.base import Floats, Rows

ROUNDING, EXCESS = 1e-9, 1e-7
"""Relative differences that are rounding: between two sums, and over a capacity."""


class Claim(NamedTuple):
    """What an engine says: its answer, what that is worth, its prices and what they prove.

    (J,) `chosen` rows, -1 for none, (B,) `blocks` and (R,) `prices`.
    """

    chosen: Rows
    blocks: Floats
    objective: float
    prices: Floats
    dual_bound: float


class Certificate(NamedTuple):
    """The bound D(p) and the gap to it, both recomputed, and what is wrong with the claim."""

    bound: float
    gap: float
    faults: tuple[str, ...]


def bound_of_prices(problem: Separable, prices: Floats) -> float:
    """Return D(p) of (R,) prices >= 0, added exactly."""
    left = problem.value - np.einsum("r,rk->k", prices, problem.use.dense())
    most = np.where(problem.must, -np.inf, 0.0)
    np.maximum.at(most, np.repeat(np.arange(problem.jobs), np.diff(problem.start)), left)
    block = problem.block_value - np.einsum("r,rb->b", prices, problem.block_use)
    parts = [prices * problem.capacity, most, np.maximum(block, 0.0) * problem.block_count]
    return math.fsum(np.concatenate(parts).tolist())


def certify(problem: Separable, claim: Claim, gap: float) -> Certificate:
    """Check a claim against the problem, and whether its prices alone prove the relative gap."""
    chosen, blocks, objective, prices, dual_bound = claim
    bound = bound_of_prices(problem, np.maximum(np.nan_to_num(prices), 0.0))
    jobs = np.flatnonzero(chosen >= 0)
    rows = chosen[jobs]
    if ((rows < problem.start[jobs]) | (rows >= problem.start[jobs + 1])).any():
        return Certificate(bound, math.inf, ("a job has an option that is not its own",))
    worth = math.fsum([*problem.value[rows].tolist(), *(problem.block_value * blocks)])
    found = (bound - worth) / max(abs(bound), 1e-300)
    whole = ~problem.block_integer | (blocks == np.rint(blocks))
    used = problem.use.dense(rows).sum(axis=1) + problem.block_use @ blocks
    scale = np.maximum(
        np.abs(problem.capacity), np.abs(problem.use.dense()).max(axis=1, initial=0.0)
    )
    over = np.flatnonzero(used > problem.capacity + EXCESS * scale).tolist()
    rules = (
        (np.isfinite(prices).all() and (prices >= 0).all(), "a price is negative or not finite"),
        (_same(bound, dual_bound), f"the prices prove {bound:.12g}, not {dual_bound:.12g}"),
        (not (problem.must & (chosen < 0)).any(), "a job that must run has no option"),
        (
            ((blocks >= 0) & (blocks <= problem.block_count) & whole).all(),
            "a block is taken more often than there is, or in part",
        ),
        *((False, f"more {problem.names[r]} is used than there is") for r in over),
        (_same(worth, objective), f"the answer is worth {worth:.12g}, not {objective:.12g}"),
        (
            found <= gap * (1 + ROUNDING),
            f"the prices alone prove a gap of {found:.2g}, not of {gap:g}",
        ),
    )
    return Certificate(bound, found, tuple(fault for holds, fault in rules if not holds))


def _same(mine: float, told: float) -> bool:
    """Return whether two ways to compute a sum agree; NaN agrees with nothing."""
    return abs(mine - told) <= ROUNDING * abs(mine)
