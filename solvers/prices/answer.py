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

    Attributes
    ----------
    chosen, blocks
        (J,) option of every job and (B,) count of every block; None without an answer.
    least
        No answer among those weighed falls short of the dual bound by less; infinite if there is
        none.
    proven
        Whether all of them were weighed (or the target reached).
    columns, nodes
        Options that were open, and search-tree nodes or labels.
    """

    chosen: Ints | None
    blocks: Floats | None
    least: float
    proven: bool
    columns: int
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
    search: str = ALONE
    cores: int = 0
    columns: int = 0
    nodes: int = 0

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
