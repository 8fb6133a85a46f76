"""The table of plan quality against time: a line per policy, with means over rounds and seeds."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ronda.bench.anytime.traces import Trace, references
from ronda.bench.runs.results import Result
from ronda.bench.statistics import expected_running_time
from ronda.instances.tables.numbers import count, percent, seconds
from ronda.instances.tables.table import Table

CLOSE = 0.01
"""The gap at which a run counts as having arrived."""


NOTES = (
    f"ERT: what all runs spent until a gap of {CLOSE:.0%}, or in vain, over how many came there",
    "primal integral: seconds at a gap of 100 % that the search is worth, up to the time limit",
    "runs that failed count with a gap of 100 %",
)


def times(limit_s: float) -> tuple[float, ...]:
    """Return the times in seconds at which the table shows gaps, in addition to the end."""
    return (0.01 * limit_s, 0.1 * limit_s)


def lines(
    found: Sequence[Trace], results: Iterable[Result], limit_s: float
) -> list[dict[str, Any]]:
    """Return the means over each policy's runs, with policies in the order of their first run.

    `first_s` is the time of the first plan. `gaps` are the primal gaps at each of `times` and of
    the returned plan. `arrived` is the share of runs that come within `CLOSE`, and `ert_s` and
    `ert_evaluations` are the expected cost of getting there (`expected_running_time`). `ends_s` is
    the time of the return. `evaluations` counts evaluations or search-tree nodes. A failed run has
    a gap of 1 throughout, and its number of evaluations is unknown.
    """
    reference = references(found)
    ended = {(r.label, r.instance, r.seed): r for r in results}
    made = []
    for label in dict.fromkeys(t.label for t in found):
        own = [(t, reference.get(t.round, 0.0)) for t in found if t.label == label]
        runs = [ended[label, t.round, t.seed] for t, _ in own]
        searched = [float(run.metrics.get("evaluations", math.nan)) for run in runs]
        gaps = [[*t.at(np.array(times(limit_s)), r), [1.0, *t.gaps(r)][-1]] for t, r in own]
        there = [t.arrives(r, CLOSE) for t, r in own]
        in_vain = zip(there, runs, searched, strict=True)
        spent = [(p.time_s, p.evaluations) if p else (run.wall_s, n) for p, run, n in in_vain]
        spent_s, spent_evaluations = zip(*spent, strict=True)
        first_s = [t.points[0].time_s for t, _ in own if t.points]
        arrived = [point is not None for point in there]
        made.append(
            {
                "label": label,
                "runs": len(own),
                "failed": sum(not t.points for t, _ in own),
                "first_s": fmean(first_s) if first_s else math.nan,
                "gaps": tuple(fmean(column) for column in zip(*gaps, strict=True)),
                "arrived": fmean(arrived),
                "ert_s": expected_running_time(spent_s, arrived),
                "ert_evaluations": expected_running_time(spent_evaluations, arrived),
                "ends_s": fmean(run.wall_s for run in runs),
                "integral_s": fmean(t.integral_s(r, limit_s) for t, r in own),
                "evaluations": fmean(searched),
            }
        )
    return made


def as_table(made: Sequence[dict[str, Any]], limit_s: float) -> Table:
    """Return the lines as a table."""
    at = [f"gap at {at:g} s (%)" for at in times(limit_s)]
    rows = (
        {
            "policy": line["label"] + (f" ({line['failed']} failed)" if line["failed"] else ""),
            "runs": line["runs"],
            "first plan (s)": seconds(line["first_s"]),
            **{
                name: percent(gap, ",.1f" if gap >= 0.0995 else ".2f")
                for name, gap in zip([*at, "gap at the end (%)"], line["gaps"], strict=True)
            },
            f"ERT to {CLOSE:.0%} (s)": _arrival(line["arrived"], line["ert_s"]),
            "ERT (evaluations)": _count(line["ert_evaluations"]),
            "ends (s)": seconds(line["ends_s"]),
            "primal integral (s)": seconds(line["integral_s"]),
            "evaluations": _count(line["evaluations"]),
        }
        for line in made
    )
    return Table.of("", rows, NOTES, (line | {"gaps": line["gaps"][-1]} for line in made))


def _arrival(share: float, ert_s: float) -> str:
    if not share:
        return "never"
    return seconds(ert_s) + (f" ({share:.0%} of runs)" if share < 1 else "")


def _count(value: float) -> str:
    return count(round(value)) if math.isfinite(value) else "–"
