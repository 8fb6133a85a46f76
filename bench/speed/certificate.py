"""An independent look at the price engine's answers: the bound recomputed from the prices alone.

Nothing of the engine is needed. Any p >= 0 gives a true bound, so that wrong prices can only make
it weaker::

    D(p) = sum_r p_r c_r + sum_j max(0, max_k (v_jk - p.a_jk)) + sum_b n_b max(0, v_b - p.a_b)

without the 0 for a job that must run.
"""

import math
from dataclasses import dataclass

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Rows

ROUNDING = 1e-9
"""Relative difference between two ways to compute the same sum."""

EXCESS = 1e-7
"""Excess over a capacity that is rounding: a share of it, or of the largest use."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an engine says: its answer, what that is worth, its prices and what they prove.

    (J,) `chosen` rows, -1 for none, (B,) `blocks` and (R,) `prices`.
    """

    chosen: Rows
    blocks: Floats
    objective: float
    prices: Floats
    dual_bound: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """The bound D(p) and the gap to it, both recomputed, and what is wrong with the claim."""

    bound: float
    gap: float
    faults: tuple[str, ...]


def bound_of_prices(problem: Separable, prices: Floats) -> float:
    """Return D(p) of (R,) prices >= 0, added exactly."""
    left = problem.value - np.einsum("r,rk->k", prices, problem.use.dense())
    most = np.where(problem.must, -np.inf, 0.0)
    job = np.repeat(np.arange(problem.jobs), np.diff(problem.start))
    np.maximum.at(most, job, left)
    block = problem.block_value - np.einsum("r,rb->b", prices, problem.block_use)
    parts = [prices * problem.capacity, most, np.maximum(block, 0.0) * problem.block_count]
    return math.fsum(np.concatenate(parts).tolist())


def certify(problem: Separable, claim: Claim, gap: float) -> Certificate:
    """Check a claim against the problem, and whether its prices alone prove the relative gap."""
    faults = []
    if not (np.isfinite(claim.prices).all() and (claim.prices >= 0).all()):
        faults.append("a price is negative or not finite")
    bound = bound_of_prices(problem, np.maximum(np.nan_to_num(claim.prices), 0.0))
    if not abs(bound - claim.dual_bound) <= ROUNDING * abs(bound):
        faults.append(f"the prices prove {bound:.12g}, not {claim.dual_bound:.12g}")
    taken = np.flatnonzero(claim.chosen >= 0)
    rows = claim.chosen[taken]
    if ((rows < problem.start[taken]) | (rows >= problem.start[taken + 1])).any():
        return Certificate(bound, math.inf, (*faults, "a job has an option that is not its own"))
    faults += _broken(problem, claim)
    worth = math.fsum([*problem.value[rows].tolist(), *(problem.block_value * claim.blocks)])
    if not abs(worth - claim.objective) <= ROUNDING * abs(worth):
        faults.append(f"the answer is worth {worth:.12g}, not {claim.objective:.12g}")
    found = (bound - worth) / max(abs(bound), 1e-300)
    if found > gap * (1 + ROUNDING):
        faults.append(f"the prices alone prove a gap of {found:.2g}, not of {gap:g}")
    return Certificate(bound, found, tuple(faults))


def _broken(problem: Separable, claim: Claim) -> list[str]:
    """Return which rules of the problem the answer breaks; options are their jobs' own."""
    faults = []
    chosen, blocks = claim.chosen, claim.blocks
    if (problem.must & (chosen < 0)).any():
        faults.append("a job that must run has no option")
    counts = (blocks >= 0) & (blocks <= problem.block_count)
    if not (counts & (~problem.block_integer | (blocks == np.rint(blocks)))).all():
        faults.append("a block is taken more often than there is, or in part")
    used = problem.use.dense(chosen[chosen >= 0]).sum(axis=1) + problem.block_use @ blocks
    largest = np.abs(problem.use.dense()).max(axis=1, initial=0.0)
    room = problem.capacity + EXCESS * np.maximum(np.abs(problem.capacity), largest)
    over = [problem.names[r] for r in np.flatnonzero(used > room).tolist()]
    return [*faults, *(f"more {name} is used than there is" for name in over)]
