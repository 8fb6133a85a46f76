"""The table of quality against time: one line a policy, means over rounds and seeds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ronda.bench.anytime.traces import Trace, references
from ronda.bench.figures.table import Table, count, percent, seconds
from ronda.bench.runs.results import Result

CLOSE = 0.01
"""A gap that counts as having arrived."""


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """A policy's line of the table: means over its runs.

    When the first plan is there; the primal gap at each of `times` and of the plan returned; the
    share of runs that come within `CLOSE`, and when; when it returns; the primal integral; and
    evaluations, or search-tree nodes.
    """

    label: str
    runs: int
    first_s: float
    gaps: tuple[float, ...]
    arrived: float
    arrives_s: float
    ends_s: float
    integral_s: float
    evaluations: float


def times(limit_s: float) -> tuple[float, ...]:
    """Return the times that the table shows the gap at, besides the end."""
    return (0.01 * limit_s, 0.1 * limit_s)


def lines(found: Sequence[Trace], results: Iterable[Result], limit_s: float) -> list[PolicyLine]:
    """Return the lines of the table, in the order in which the policies come."""
    reference = references(found)
    ended = [result for result in results if result.ok]
    made = []
    for label in dict.fromkeys(t.label for t in found):
        own = [(t, reference[t.round]) for t in found if t.label == label]
        runs = [result for result in ended if result.label == label]
        gaps = [[*t.at(np.array(times(limit_s)), r), t.gaps(r)[-1]] for t, r in own]
        arrivals = [t.arrives_s(r, CLOSE) for t, r in own]
        there = [s for s in arrivals if s < math.inf]
        made.append(
            PolicyLine(
                label=label,
                runs=len(own),
                first_s=fmean(t.points[0].time_s for t, _ in own),
                gaps=tuple(fmean(column) for column in zip(*gaps, strict=True)),
                arrived=len(there) / len(own),
                arrives_s=fmean(there) if there else math.inf,
                ends_s=fmean(r.wall_s for r in runs),
                integral_s=fmean(t.integral_s(r, limit_s) for t, r in own),
                evaluations=fmean(float(r.metrics["evaluations"]) for r in runs),
            )
        )
    return made


def as_table(made: Sequence[PolicyLine], limit_s: float) -> Table:
    """Return the lines as a table."""
    header = (
        "policy",
        "runs",
        "first plan (s)",
        *(f"gap at {at:g} s (%)" for at in times(limit_s)),
        "gap at the end (%)",
        f"within {CLOSE:.0%} after (s)",
        "ends (s)",
        "primal integral (s)",
        "evaluations",
    )
    return Table("", header, tuple(map(_cells, made)))


def _cells(line: PolicyLine) -> tuple[str, ...]:
    arrives = "never" if not line.arrived else seconds(line.arrives_s)
    if 0 < line.arrived < 1:
        arrives += f" ({line.arrived:.0%} of runs)"
    return (
        line.label,
        f"{line.runs}",
        seconds(line.first_s),
        *(percent(gap) if gap >= 0.0995 else f"{gap * 100:.2f}" for gap in line.gaps),
        arrives,
        seconds(line.ends_s),
        seconds(line.integral_s),
        count(round(line.evaluations)),
    )
