"""How a search by prices begins and ends: one record that every step is given whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ronda.formulations.clock import Deadline
from ronda.instances.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where a search begins and when it stops.

    `start` are prices of an earlier, similar problem, by name. Answers are looked for first that
    fall as little short of the dual bound as the answer to that problem did (`within`, relative).
    Both may lead to another answer within the gap. The finer the prices (`tolerance`), the fewer
    jobs they leave undecided: an evaluation costs much less than a wider core.
    """

    gap: float = 1e-4  # relative, between objective and bound, at which to stop
    deadline: Deadline = field(default_factory=Deadline)
    seed: int = 0  # of HiGHS
    start: Mapping[str, float] = field(default_factory=dict)
    within: float = 0.0
    tolerance: float = 1e-8  # of the prices, relative
    reserve_s: float = 0.0  # seconds of the deadline that are left on return
    solver: str = "highs"  # of models of a whole round; cores of prices are HiGHS's

    def __post_init__(self) -> None:
        """Refuse a gap that makes no sense."""
        if not 0 <= self.gap < 1:
            raise InputError("gap", f"{self.gap:g}", "a share of at least 0 and below 1")
