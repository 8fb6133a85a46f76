"""How a search by prices begins and ends: one record that every step is given whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ronda.instances.errors import InputError
from ronda.solvers.contract import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where a search begins and when it stops.

    Attributes
    ----------
    gap
        Relative gap between objective and bound at which to stop.
    deadline
        By when to return the best answer so far, with its true bound.
    seed
        Of HiGHS.
    start
        Prices of an earlier, similar problem, by name; none for resources that it did not have.
    within
        By how much the answer to that problem fell short of its dual bound, relative: answers so
        near are looked for first. Like `start`, it may lead to another answer within the gap.
    tolerance
        Relative precision of the prices: the finer they are, the fewer jobs they leave undecided,
        and a further evaluation costs much less than a wider core.
    reserve_s
        Seconds that must be left of the deadline on return.
    """

    gap: float = 1e-4
    deadline: Deadline = field(default_factory=Deadline)
    seed: int = 0
    start: Mapping[str, float] = field(default_factory=dict)
    within: float = 0.0
    tolerance: float = 1e-8
    reserve_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a gap that makes no sense."""
        if not 0 <= self.gap < 1:
            raise InputError("gap", f"{self.gap:g}", "a share of at least 0 and below 1")
