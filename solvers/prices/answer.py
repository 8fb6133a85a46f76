"""The answer to a separable problem, however the price engine found it."""

from dataclasses import dataclass

from ronda.instances.arrays import Floats, Ints
from ronda.instances.plan import StopReason
from ronda.solvers.prices.dual import Dual

ALONE, LABELS, CORES = "prices alone", "labels", "cores"
"""What may decide the jobs that prices leave open (`Answer.search`)."""

DUAL_GAP = "dual_gap"
"""Key, in a plan's details, of the gap that prices alone prove: the next round begins there."""


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
