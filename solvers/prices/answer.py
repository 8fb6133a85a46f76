"""What the price engine answers to a problem, and to one whose parts were answered apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.allocation.parts import Part
from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Ints
from ronda.instances.plan import StopReason
from ronda.solvers.prices.core import ALONE, CORES, LABELS
from ronda.solvers.prices.dual import Dual

DUAL_GAP = "dual_gap"
"""Key, in a plan's details, of the gap that prices alone prove: the next round begins there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a separable problem."""

    chosen: Ints | None  # (J,) row of each job's option, -1 for none; None without an answer
    blocks: Floats | None  # (B,) how many of each block
    objective: float | None
    bound: float  # no answer is worth more
    dual: Dual  # the prices and the bound that they alone prove
    stop: StopReason
    search: str = ALONE  # what decided the jobs that prices leave open
    cores: int = 0  # how many were decided
    columns: int = 0  # options in the largest core
    nodes: int = 0  # search-tree nodes in all
    parts: int = 1  # that were answered apart

    @property
    def gap(self) -> float | None:
        """``(bound - objective) / |bound|``."""
        return None if self.objective is None else _relative(self.bound, self.objective)

    @property
    def dual_gap(self) -> float | None:
        """``(dual bound - objective) / |dual bound|``: the gap that prices alone prove."""
        return None if self.objective is None else _relative(self.dual.bound, self.objective)


def _relative(bound: float, objective: float) -> float:
    return max(0.0, bound - objective) / max(abs(bound), 1e-300)


STOPS = (StopReason.INFEASIBLE, StopReason.TIME_LIMIT, StopReason.GAP, StopReason.COMPLETE)
SEARCHES = (ALONE, LABELS, CORES)
"""Of the parts' reasons to stop the first counts for all; of what decided them the last one."""


def together(problem: Separable, parts: Sequence[Part], answers: Sequence[Answer]) -> Answer:
    """Return the answer to a problem from those to its parts; none if a part has none."""
    chosen = np.full(problem.jobs, -1, dtype=np.int64)
    blocks, asked = np.zeros(len(problem.block_value)), np.zeros(len(problem.block_value))
    prices, complete = np.zeros(len(problem.names)), True
    for part, answer in zip(parts, answers, strict=True):
        prices[part.resources], asked[part.blocks] = answer.dual.prices, answer.dual.blocks
        if answer.chosen is None or answer.blocks is None:
            complete = False
            continue
        runs = answer.chosen >= 0
        chosen[part.jobs[runs]] = part.options[answer.chosen[runs]]
        blocks[part.blocks] = answer.blocks
    objective = problem.objective(chosen, blocks) if complete else None
    bound = sum(answer.bound for answer in answers)
    dual = Dual(
        prices=prices,
        bound=sum(answer.dual.bound for answer in answers),
        evaluations=sum(answer.dual.evaluations for answer in answers),
        blocks=asked,
    )
    return Answer(
        chosen=chosen if complete else None,
        blocks=blocks if complete else None,
        objective=objective,
        bound=bound if objective is None else max(bound, objective),
        dual=dual,
        stop=min((answer.stop for answer in answers), key=STOPS.index),
        search=max((answer.search for answer in answers), key=SEARCHES.index),
        cores=sum(answer.cores for answer in answers),
        columns=max(answer.columns for answer in answers),
        nodes=sum(answer.nodes for answer in answers),
        parts=len(parts),
    )
