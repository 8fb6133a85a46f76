"""Small cores without a MILP: all answers within a shortfall of the dual bound, label by label.

At prices p an answer falls short of the dual bound by the losses of its choices plus what is left
of each resource at its price (`ronda.solvers.prices.core`). To find the best answer with a
shortfall of at most e only choices whose losses add up to e or less matter. Job after job, each
label (a choice of the jobs so far) is extended by every option of the next job. A label goes if

* its losses, and the price of what cannot be used any more, exceed e;
* it cannot become feasible, whatever the other jobs take;
* another label uses as much of all resources but one, no more of that one, and is worth as much.

This is the dynamic programme of the multiple-choice knapsack (Kellerer, Pferschy and Pisinger,
*Knapsack Problems*, 2004, section 11.5), held down by reduced costs. In rounds of some ten jobs it
takes a millisecond where a MILP solver takes ten; with many jobs the labels become too many.
"""

from dataclasses import dataclass

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Ints
from ronda.solvers.prices.dual import Losses

MOST_LABELS = 60_000
"""Labels in all after which the search is given up: about 30 ms."""

MOST_BLOCKS = 200
"""Blocks of a kind above which each count is not tried."""

ROUNDING = 1e-9
"""Excess over a capacity that is taken for rounding."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of deciding the open jobs together.

    No answer among those weighed falls short of the dual bound by less than `least` (infinite if
    there is none); `proven` if all of them were weighed, or the target reached.
    """

    chosen: Ints | None  # (J,) option of every job; None without an answer
    blocks: Floats | None  # (B,) count of every block; None without an answer
    least: float
    proven: bool
    columns: int  # options that were open
    nodes: int  # search-tree nodes or labels


@dataclass(frozen=True, slots=True)
class _Stage:
    """A free job or a kind of block: the loss, use and name of each thing it may take."""

    loss: Floats  # (n,)
    use: Floats  # (R, n)
    what: Ints  # (n,) row of the problem (-1 for none), or count of blocks


def best_within(
    problem: Separable, prices: Floats, losses: Losses, shortfall: float
) -> Decided | None:
    """Return the best answer with at most some shortfall; None if there are too many labels.

    `prices` (R,) are those of the dual bound, `losses` all options that lose no more than the
    shortfall of the dual bound at these prices.
    """
    if not problem.block_integer.all() or (problem.block_count > MOST_BLOCKS).any():
        return None
    jobs, stages = _job_stages(problem, losses)
    stages = [*stages, *_block_stages(problem, prices, shortfall)]
    fixed = losses.best.copy()
    fixed[jobs] = -1
    room = problem.capacity - problem.use[:, fixed[fixed >= 0]].sum(axis=1)
    excess = ROUNDING * np.maximum(np.abs(problem.capacity), 1.0)
    found = _sweep(stages, room, excess, prices, shortfall)
    if found is None:
        return None
    taken, labels = found
    columns = len(losses.loss) + len(jobs)
    if taken is None:
        return Decided(None, None, np.inf, True, columns, labels)
    chosen = losses.best.copy()
    chosen[jobs] = taken[: len(jobs)]
    blocks = np.array(taken[len(jobs) :], dtype=float)
    return Decided(chosen, blocks, np.inf, True, columns, labels)


def _job_stages(problem: Separable, losses: Losses) -> tuple[Ints, list[_Stage]]:
    """Return the free jobs, those of most options last, and what they may take."""
    order = np.argsort(losses.job, kind="stable")
    jobs, first = np.unique(losses.job[order], return_index=True)
    rows, loss = losses.row[order], losses.loss[order]
    ends = np.append(first[1:], len(order))
    rank = np.argsort(ends - first, kind="stable")
    stages = []
    for i in rank.tolist():
        own = slice(first[i], ends[i])
        what = np.append(losses.best[jobs[i]], rows[own])
        use = np.where(what >= 0, problem.use[:, what], 0.0)
        stages.append(_Stage(np.append(0.0, loss[own]), use, what))
    return jobs[rank], stages


def _block_stages(problem: Separable, prices: Floats, shortfall: float) -> list[_Stage]:
    """Return the counts of each kind of block that lose no more than the shortfall."""
    stages = []
    gain = problem.block_value - prices @ problem.block_use
    for b, most in enumerate(problem.block_count.tolist()):
        counts = np.arange(int(most) + 1)
        loss = max(gain[b], 0.0) * most - gain[b] * counts
        near = loss <= max(shortfall, 0.0)  # below 0 by rounding, if there is a proof already
        use = problem.block_use[:, b : b + 1] * counts[near]
        stages.append(_Stage(loss[near], use, counts[near]))
    return stages


def _sweep(
    stages: list[_Stage], room: Floats, excess: Floats, prices: Floats, shortfall: float
) -> tuple[list[int] | None, int] | None:
    """Return what each stage takes in the best answer (None: no answer), and how many labels."""
    least, most = _ahead(stages, len(room))
    limit = room + excess
    loss, use = np.zeros(1), np.zeros((len(room), 1))
    if (least[0] > limit).any() or prices @ np.maximum(room - most[0], 0.0) > shortfall:
        return None, 0
    last = _finest(stages)
    steps: list[tuple[Ints, Ints]] = []
    labels = 0
    for s, stage in enumerate(stages):
        options = len(stage.loss)
        labels += len(loss) * options
        if labels > MOST_LABELS:
            return None
        parent = np.repeat(np.arange(len(loss)), options)
        taken = np.tile(np.arange(options), len(loss))
        loss = (loss[:, None] + stage.loss).ravel()
        use = (use[:, :, None] + stage.use[:, None, :]).reshape(len(room), -1)
        unused = np.maximum(room[:, None] - use - most[s + 1][:, None], 0.0)
        kept = loss + prices @ unused <= shortfall
        kept &= (use + least[s + 1][:, None] <= limit[:, None]).all(axis=0)
        at = np.flatnonzero(kept)
        at = at[_unbeaten(loss[at], use[:, at], prices, last)]
        loss, use = loss[at], use[:, at]
        steps.append((parent[at], taken[at]))
    if not len(loss):
        return None, labels
    return _back(stages, steps, int(np.argmin(loss - prices @ use))), labels


def _ahead(stages: list[_Stage], resources: int) -> tuple[list[Floats], list[Floats]]:
    """Return the least and the most that the stages from each on can use."""
    least, most = [np.zeros(resources)], [np.zeros(resources)]
    for stage in reversed(stages):
        least.append(least[-1] + stage.use.min(axis=1))
        most.append(most[-1] + stage.use.max(axis=1))
    return least[::-1], most[::-1]


def _finest(stages: list[_Stage]) -> int:
    """Return the resource with the most different uses."""
    if not stages or len(stages[0].use) < 2:
        return 0
    uses = np.concatenate([stage.use for stage in stages], axis=1)
    return int(np.argmax([len(np.unique(row)) for row in uses]))


def _unbeaten(loss: Floats, use: Floats, prices: Floats, last: int) -> Ints:
    """Return the labels that no other one beats with the same use of all resources but `last`."""
    worth = prices @ use - loss
    others = [row for r, row in enumerate(use) if r != last]
    order = np.lexsort((-worth, use[last], *others))
    group = np.zeros(len(order))
    if others:
        group[1:] = np.cumsum(np.any([np.diff(row[order]) != 0 for row in others], axis=0))
    span = float(np.ptp(worth)) + 1.0 if len(worth) else 1.0
    level = worth[order] + group * (2.0 * span)  # every group lies above all those before
    above = np.maximum.accumulate(level)
    kept = np.ones(len(order), dtype=bool)
    kept[1:] = level[1:] > above[:-1]
    return np.asarray(order[kept])


def _back(stages: list[_Stage], steps: list[tuple[Ints, Ints]], at: int) -> list[int]:
    """Return what each stage takes on the way to a label."""
    taken = []
    for stage, (parent, option) in zip(reversed(stages), reversed(steps), strict=True):
        taken.append(int(stage.what[option[at]]))
        at = int(parent[at])
    return taken[::-1]
