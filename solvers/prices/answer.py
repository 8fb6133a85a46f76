"""The answer to a separable problem, however the price engine found it."""

from dataclasses import dataclass

from ronda.instances.arrays import Floats, Ints
from ronda.instances.plan import StopReason
from ronda.solvers.prices.dual import Dual

ALONE, LABELS, CORES = "prices alone", "labels", "cores"
"""What may decide the jobs that prices leave open (`Answer.search`)."""

DUAL_GAP = "dual_gap"
"""Key, in a plan's details, of the gap that prices alone prove: the next round begins there."""


def relative_gap(bound: float, objective: float) -> float:
    """Return ``(bound - objective) / |bound|``."""
    return max(0.0, bound - objective) / max(abs(bound), 1e-300)


@dataclass(frozen=True, slots=True)
class Found:
    """A feasible answer: (J,) row of each job's option, -1 for none; (B,) count of each block."""

    chosen: Ints
    blocks: Floats


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a separable problem.

    Attributes
    ----------
    chosen
        (J,) row of each job's option, -1 for none; None if no feasible answer was found.
    blocks
        (B,) how many of each block.
    objective, bound
        Value of the answer; no answer is worth more than the bound.
    dual
        The prices and the bound that they alone prove.
    stop
        Why the engine stopped.
    search
        What decided the jobs that prices leave open.
    cores, columns, nodes
        How many cores were decided, options in the largest, search-tree nodes in all.
    """

    chosen: Ints | None
    blocks: Floats | None
    objective: float | None
    bound: float
    dual: Dual
    stop: StopReason
    search: str
    cores: int
    columns: int
    nodes: int

    @property
    def gap(self) -> float | None:
        """``(bound - objective) / |bound|``."""
        if self.objective is None:
            return None
        return relative_gap(self.bound, self.objective)

    @property
    def dual_gap(self) -> float | None:
        """``(dual bound - objective) / |dual bound|``: the gap that prices alone prove."""
        if self.objective is None:
            return None
        return relative_gap(self.dual.bound, self.objective)
