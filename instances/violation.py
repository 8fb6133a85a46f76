"""Violations that the checker reports, and its tolerances."""

from typing import NamedTuple

from ronda.instances.base import Record

ROUNDING = 1e-9
"""The share by which numbers that are equal up to rounding may differ, or their summands: solvers
keep 30 bits of a number, one part in 10^9."""

RELATIVE = 1e-6
"""The relative tolerance of rates, powers, work and limits."""

ACCOUNTING = 1e-9
"""The tolerance of the parts of a run's energy, relative to its total."""

SECOND = 1e-6
"""The tolerance of differences between times, in seconds."""

LONGEST_S = 2.0**33
"""The longest run, some 270 years: up to there floats lie closer than `SECOND`."""


class Violation(Record, frozen=True):
    """One way in which a plan or a schedule breaks a rule.

    Attributes
    ----------
    code
        The rule, as a short word that programs may rely on; docs list them all.
    where
        The job, node, rack or total that it concerns.
    message
        The value found, and the rule.
    """

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.code}: {self.where}: {self.message}"


class Fault(NamedTuple):
    """A violation without its place."""

    code: str
    message: str

    def at(self, where: str) -> Violation:
        """Return the violation at a place: a job, node, rack or total."""
        return Violation(self.code, where, self.message)


def differs(claimed: float, expected: float) -> bool:
    """Return whether two numbers differ by more than `RELATIVE`; anything differs from NaN."""
    return not abs(claimed - expected) <= RELATIVE * max(abs(claimed), abs(expected))


def exceeds(value: float, limit: float) -> bool:
    """Return whether a value is above a limit by more than `RELATIVE`; NaN always is."""
    return not value <= limit + RELATIVE * abs(limit)
