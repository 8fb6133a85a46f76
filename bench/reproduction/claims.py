"""The published claims, how certain they are, how ours is measured, and when a claim is met."""

import tomllib
from enum import StrEnum
from typing import Literal

import msgspec

from ronda.bench.suites.suite import PACKAGED, converted
from ronda.instances.base import Name, NonNegative, Record
from ronda.instances.errors import InputError
from ronda.instances.files.storage import read_bytes
from ronda.instances.rules.problem import one_of, show

LONG_MIN = 10.0
"""A claim that takes more minutes than this on two cores runs only if the user names it."""

Sure = Literal["abstract", "poster", "artifact", "second-hand", "unconfirmed"]
"""The place where a published figure was read; an unconfirmed figure is never a target."""


class ClaimVerdict(StrEnum):
    """The verdict on whether a measured figure meets a claim."""

    MET = "met"
    MISSED = "missed"
    UNKNOWABLE = "can't be known"
    UNKNOWN = "unknown"  # not measured yet


class Rule(Record, frozen=True, kw_only=True):
    """The condition under which a figure meets a claim: `least`, `most`, or `near` a number."""

    least: float | None = None
    most: float | None = None
    near: float | None = None
    within: NonNegative = 0.0

    def holds(self, value: float) -> bool:
        """Return whether a figure meets every bound that is set."""
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.near is None or abs(value - self.near) <= self.within * abs(self.near))
        )


class Figure(Record, frozen=True, kw_only=True):
    """The figure measured for a claim, its 95 % interval if there is one, and its origin.

    `sizes` says where our policy and the comparator get job sizes. `note` describes a failure.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    sizes: str = ""
    note: str = ""
    version: str = ""
    commit: str = ""
    date: str = ""


class Claim(Record, frozen=True, kw_only=True):
    """A published figure, and the way to measure ours.

    The runs of `ours` are the cells of a `suite` with the given values of its axes; the
    comparator's runs have the values of `against` instead. `shows` is our figure itself
    (``value``), the factor by which ours is smaller than the comparator's (``times``), or the share
    by which it is smaller (``cut``). `each` names further axes; the greatest figure over their
    values counts. Without a suite, a `command` prints the figure as JSON.
    """

    name: Name
    system: Name
    what: Name
    published: Name
    source: Name
    sure: Sure
    suite: str = ""
    seeds: str = ""
    command: str = ""
    ours: dict[str, str] = {}
    against: dict[str, str] = {}
    each: tuple[Name, ...] = ()
    metric: str = "mean_jct_s"
    shows: Literal["value", "times", "cut"] = "value"
    unit: str = ""
    digits: int = 2
    minutes: NonNegative = 0.0  # of the whole command, on two cores
    rule: Rule = Rule()
    unknowable: str = ""  # why it cannot be known whether the claim is met
    why: str = ""

    @property
    def words(self) -> str:
        """The command that measures our figure, without ``ronda``; empty if there is none."""
        seeds = f" --seeds {self.seeds}" if self.seeds else ""
        return f"compare {self.suite}{seeds}" if self.suite else self.command

    def verdict(self, figure: Figure | None) -> ClaimVerdict:
        """Return the verdict on a figure."""
        if self.unknowable:
            return ClaimVerdict.UNKNOWABLE
        if figure is None or figure.note or figure.value is None:
            return ClaimVerdict.UNKNOWN
        return ClaimVerdict.MET if self.rule.holds(figure.value) else ClaimVerdict.MISSED

    def write(self, figure: Figure) -> str:
        """Write a figure, with its interval."""
        if figure.note or figure.value is None:
            return figure.note or "–"
        unit = {"times": "×", "cut": " %"}.get(self.shows, f" {self.unit}".rstrip())
        ends = [self._number(end) for end in (figure.low, figure.high) if end is not None]
        return self._number(figure.value) + unit + (f" [{', '.join(ends)}]" if ends else "")

    def _number(self, value: float) -> str:
        return f"{value * 100:.0f}" if self.shows == "cut" else f"{value:,.{self.digits}f}"


class Claims(Record, frozen=True, kw_only=True):
    """The packaged file of claims."""

    claim: tuple[Claim, ...]


def claims() -> tuple[Claim, ...]:
    """Return all claims in display order."""
    path = PACKAGED.parent / "reproduction.toml"
    found: Claims = converted(tomllib.loads(read_bytes(path).decode()), Claims, f"{path.name}, ")
    return found.claim


def chosen(known: tuple[Claim, ...], names: tuple[str, ...]) -> tuple[Claim, ...]:
    """Return the claims with the given names or of the given systems; without names, all claims."""
    systems = dict.fromkeys(claim.system for claim in known)
    words = {*systems, *(claim.name for claim in known)}
    for name in names:
        if name not in words:
            found = f"{one_of(systems)}; or one of their claims (--list shows all)"
            raise InputError("SYSTEM", show(name), found)
    return tuple(c for c in known if not names or c.system in names or c.name in names)


def recorded(data: bytes, place: str) -> dict[str, Figure]:
    """Return the figures in a file by the name of their claim; refuse a damaged file."""
    try:
        return msgspec.json.decode(data, type=dict[str, Figure])
    except msgspec.DecodeError as error:
        raise InputError(place, str(error), "figures that ronda reproduce wrote") from None
