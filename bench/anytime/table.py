"""The table of quality against time: one line a policy, means over rounds and seeds."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ronda.bench.anytime.traces import Trace, references
from ronda.bench.figures.table import Table, count, percent, seconds
from ronda.bench.runs.results import Result

CLOSE = 0.01
"""A gap that counts as having arrived."""


def times(limit_s: float) -> tuple[float, ...]:
    """Return the times that the table shows the gap at, besides the end."""
    return (0.01 * limit_s, 0.1 * limit_s)


def lines(
    found: Sequence[Trace], results: Iterable[Result], limit_s: float
) -> list[dict[str, Any]]:
    """Return means over each policy's runs, in the order in which the policies come.

    `first_s` is when the first plan is there; `gaps` are the primal gaps at each of `times` and of
    the plan returned; `arrived` is the share of runs that come within `CLOSE`, and `arrives_s`
    when; `ends_s` is when it returns, `evaluations` counts those, or search-tree nodes.
    """
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
            {
                "label": label,
                "runs": len(own),
                "first_s": fmean(t.points[0].time_s for t, _ in own),
                "gaps": tuple(fmean(column) for column in zip(*gaps, strict=True)),
                "arrived": len(there) / len(own),
                "arrives_s": fmean(there) if there else math.inf,
                "ends_s": fmean(r.wall_s for r in runs),
                "integral_s": fmean(t.integral_s(r, limit_s) for t, r in own),
                "evaluations": fmean(float(r.metrics["evaluations"]) for r in runs),
            }
        )
    return made


def as_table(made: Sequence[dict[str, Any]], limit_s: float) -> Table:
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
    rows = (
        (
            line["label"],
            f"{line['runs']}",
            seconds(line["first_s"]),
            *(percent(gap, ",.1f" if gap >= 0.0995 else ".2f") for gap in line["gaps"]),
            _arrival(line["arrived"], line["arrives_s"]),
            seconds(line["ends_s"]),
            seconds(line["integral_s"]),
            count(round(line["evaluations"])),
        )
        for line in made
    )
    records = tuple(line | {"gaps": line["gaps"][-1]} for line in made)
    return Table("", header, tuple(rows), (), records)


def _arrival(share: float, mean_s: float) -> str:
    if not share:
        return "never"
    return seconds(mean_s) + (f" ({share:.0%} of runs)" if share < 1 else "")
