"""The figure of plan quality against time and against evaluations."""

from collections.abc import Sequence

import numpy as np

from ronda.bench.anytime.traces import TARGETS, Trace, reached
from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, thinner

LEAST = 1e-4
"""Smaller gaps are drawn at this value, because a logarithmic axis has no zero."""


def quality_over_time(
    found: Sequence[Trace], reference: dict[str, float], limit_s: float, labels: Sequence[str] = ()
) -> Chart:
    """Show each policy's mean gap over all runs; for a single round, also the range over seeds.

    The last panel shows the share of `TARGETS` that are reached. `reference` is the value for gaps
    by round, `limit_s` ends the time axis, and `labels` fix the colours.
    """
    rounds = list(dict.fromkeys(t.round for t in found))
    order = labels or list(dict.fromkeys(t.label for t in found))
    earliest = min(t.points[0].time_s for t in found if t.points)
    most = max(t.points[-1].evaluations for t in found if t.points)
    ends = {False: (earliest / 2, limit_s), True: (0.8, max(most, 10.0))}

    def lines(told: str, *, evaluations: bool, targets: bool = False) -> list[Marks]:
        made, grid = list[Marks](), np.geomspace(*ends[evaluations], 600)
        for index, label in enumerate(order):
            own = [t for t in found if t.label == label]
            if not own:
                continue
            gaps = np.array([t.at(grid, reference[t.round], evaluations=evaluations) for t in own])
            shown, mean = np.maximum(gaps, LEAST), np.maximum(gaps.mean(axis=0), LEAST)
            if len(own) > 1 and len(rounds) == 1 and not targets:
                low, high = shown.min(axis=0), shown.max(axis=0)
                band = Marks("area", grid, high, y_end=low, colour=index, alpha=0.12)
                made.append(band)
            line = Marks(
                "step",
                grid,
                reached(gaps) if targets else mean,
                label,
                index,
                width=thinner(index, len(order)),
                told=told,
            )
            made.append(line)
        return made

    gap = Axis("primal gap", "log", (LEAST * 0.8, 1.2), percent=True)
    share = Axis("share of targets", ends=(-0.02, 1.02), percent=True)
    searched = Axis("evaluations (search-tree nodes of milp and prices)", "log", ends[True])
    return Chart(
        rounds[0] if len(rounds) == 1 else f"mean of {len(rounds)} rounds",
        [
            Panel(
                lines("%{y:.2%} after %{x:.3g} s", evaluations=False),
                Axis("seconds since entry", "log", ends[False]),
                gap,
                "gap to the best known bound",
            ),
            Panel(lines("%{y:.2%}", evaluations=True), searched, gap),
            Panel(
                lines("%{y:.0%}", evaluations=True, targets=True),
                searched,
                share,
                f"{len(TARGETS)} gaps from 79 to 0.01 % reached",
            ),
        ],
        columns=3,
        inches=(14, 4.4),
        header=("round", "policy", "seed", "time_s", "evaluations", "value", "gap"),
        rows=(
            (t.round, t.label, t.seed, f"{p.time_s:.6f}", f"{p.evaluations:.0f}", p.value, gap)
            for t in found
            for p, gap in zip(t.points, t.gaps(reference[t.round]), strict=True)
        ),
    )
