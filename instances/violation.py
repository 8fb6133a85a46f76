"""Violations that the checker reports, and the checker's tolerances."""

from typing import NamedTuple

from ronda.instances.base import Record

ROUNDING = 1e-9
"""The relative difference that rounding may cause between equal numbers or their summands: solvers
keep 30 bits of a number, one part in 10^9."""

RELATIVE = 1e-6
"""The relative tolerance of rates, powers, work and limits."""

ACCOUNTING = 1e-9
"""The tolerance of the parts of a run's energy, relative to its total."""

SECOND = 1e-6
"""The tolerance of differences between times, in seconds."""

LONGEST_S = 2.0**33
"""The longest run, about 270 years, below which neighbouring floats are closer than `SECOND`."""


class Violation(Record, frozen=True):
    """A violation of a rule by a plan or a schedule.

    Attributes
    ----------
    code
        Code of the rule, which programs may rely on. The documentation lists all codes.
    where
        The job, node, rack or total that the violation concerns.
    message
        The found value and the rule.
    """

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        """Return the violation as one line of text."""
        return f"{self.code}: {self.where}: {self.message}"


class Fault(NamedTuple):
    """A violation without its place."""

    code: str
    message: str

    def at(self, where: str) -> Violation:
        """Return the fault as a violation at a place (a job, node, rack or total)."""
        return Violation(self.code, where, self.message)


def differs(claimed: float, expected: float) -> bool:
    """Return whether two numbers differ by more than `RELATIVE`, which is always true of NaN."""
    return not abs(claimed - expected) <= RELATIVE * max(abs(claimed), abs(expected))


def exceeds(value: float, limit: float) -> bool:
    """Return whether a value is more than `RELATIVE` above a limit, which is always true of NaN."""
    return not value <= limit + RELATIVE * abs(limit)
