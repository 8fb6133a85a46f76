"""What the checker reports, and how exactly it compares."""

from typing import NamedTuple

from ronda.instances.base import Record

ROUNDING = 1e-9
"""Two numbers are the same up to rounding if they differ by no more than this share of them, or
of what they are sums and differences of: solvers keep 30 bits of a number, one part in 10^9."""

RELATIVE = 1e-6
"""Relative tolerance of rates, powers, work and limits."""

ACCOUNTING = 1e-9
"""Tolerance of the parts of a run's energy, relative to its total."""

SECOND = 1e-6
"""Tolerance of differences between times, in seconds."""

LONGEST_S = 2.0**33
"""How long a run may last, some 270 years: up to there floats lie closer than `SECOND`."""


class Violation(Record, frozen=True):
    """One way in which a plan or a schedule breaks a rule.

    Attributes
    ----------
    code
        The rule, as a short word that programs may rely on; docs list them all.
    where
        The job, node, rack or total that it concerns.
    message
        What stands there and what the rule asks.
    """

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.code}: {self.where}: {self.message}"


class Fault(NamedTuple):
    """A violation before it is known whom it concerns."""

    code: str
    message: str

    def at(self, where: str) -> Violation:
        """Return this as a violation by `where`: a job, node, rack or total."""
        return Violation(self.code, where, self.message)


def differs(claimed: float, expected: float) -> bool:
    """Return whether two numbers differ by more than `RELATIVE`; anything differs from NaN."""
    return not abs(claimed - expected) <= RELATIVE * max(abs(claimed), abs(expected))


def exceeds(value: float, limit: float) -> bool:
    """Return whether a value is above a limit by more than `RELATIVE`; NaN always is."""
    return not value <= limit + RELATIVE * abs(limit)
