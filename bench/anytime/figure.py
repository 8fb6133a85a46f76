"""The figure of quality against time and against evaluations, with its numbers next to it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ronda.bench.anytime.traces import TARGETS, Trace, reached
from ronda.bench.figures.style import colour, legend_below, look, new_figure, save, tidy
from ronda.instances.tables.numbers import percent

LEAST = 1e-4
"""Gaps below this are drawn here: a logarithm has no zero."""


def draw(found: Sequence[Trace], reference: dict[str, float], limit_s: float, path: Path) -> None:
    """Draw the mean gap of each policy over all runs; of one round, also its range over seeds.

    And the share of `TARGETS` that are reached. `reference` is what values are measured against, by
    round; `limit_s` ends the time axis.
    """
    figure = new_figure(14, 4.4)
    by_time, by_evaluation, targets = figure.subplots(1, 3)
    earliest = min(t.points[0].time_s for t in found if t.points)
    most = max(t.points[-1].evaluations for t in found if t.points)
    _panel(by_time, found, reference, (earliest / 2, limit_s), evaluations=False)
    _panel(by_evaluation, found, reference, (0.8, max(most, 10.0)), evaluations=True)
    tidy(by_time, "seconds since entry", "primal gap to the best known bound (%)", grid=True)
    tidy(by_evaluation, "evaluations (search-tree nodes of milp and prices)", grid=True)
    _targets(targets, found, reference, (0.8, max(most, 10.0)))
    rounds = list(dict.fromkeys(t.round for t in found))
    figure.suptitle(rounds[0] if len(rounds) == 1 else f"mean of {len(rounds)} rounds", fontsize=10)
    legend_below(figure, by_time.get_legend_handles_labels()[0])
    rows = [
        (t.round, t.label, t.seed, f"{p.time_s:.6f}", f"{p.evaluations:.0f}", p.value, gap)
        for t in found
        for p, gap in zip(t.points, t.gaps(reference[t.round]), strict=True)
    ]
    header = ("round", "policy", "seed", "time_s", "evaluations", "value", "gap")
    save(figure, path, header, rows)


def _targets(
    axes: Axes, found: Sequence[Trace], reference: dict[str, float], ends: tuple[float, float]
) -> None:
    """Draw the share of runs and targets that are reached, by evaluations."""
    grid = np.geomspace(*ends, 600)
    labels = list(dict.fromkeys(t.label for t in found))
    for index, label in enumerate(labels):
        own = [t for t in found if t.label == label]
        gaps = np.array([t.at(grid, reference[t.round], evaluations=True) for t in own])
        axes.step(grid, reached(gaps), where="post", **look(index, len(labels)))
    axes.set_xscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(-0.02, 1.02)
    about = f"share of {len(TARGETS)} gaps from 79 to 0.01 % reached"
    tidy(axes, "evaluations", about, grid=True)


def _panel(
    axes: Axes,
    found: Sequence[Trace],
    reference: dict[str, float],
    ends: tuple[float, float],
    *,
    evaluations: bool,
) -> None:
    grid = np.geomspace(*ends, 600)
    labels = list(dict.fromkeys(t.label for t in found))
    one_round = len({t.round for t in found}) == 1
    for index, label in enumerate(labels):
        own = [t for t in found if t.label == label]
        gaps = np.array([t.at(grid, reference[t.round], evaluations=evaluations) for t in own])
        shown = np.maximum(gaps, LEAST)
        if len(own) > 1 and one_round:
            low, high, shade = shown.min(axis=0), shown.max(axis=0), colour(index)
            axes.fill_between(grid, low, high, step="post", color=shade, alpha=0.12, linewidth=0)
        axes.step(
            grid,
            np.maximum(gaps.mean(axis=0), LEAST),
            where="post",
            **look(index, len(labels)),
            label=label,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(LEAST * 0.8, 1.2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda gap, _: ("≤ " if gap <= LEAST else "") + percent(max(gap, LEAST), "g"))
    )
