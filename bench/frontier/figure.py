"""The figures of a sweep: mean JCT against energy, and prices over time."""

from dataclasses import astuple
from operator import attrgetter
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ronda.bench.figures.style import (
    colour,
    legend_below,
    line,
    marker,
    new_figure,
    save,
    tidy,
    time_axis,
)
from ronda.bench.frontier.bound import Steps
from ronda.bench.frontier.curves import NUMBERS, Curve, strongest
from ronda.bench.frontier.report import Frontier

LOGARITHMIC = 8.0
"""From this ratio of the longest mean JCT to the shortest on the axis is logarithmic."""


def draw_frontier(made: Frontier, path: Path) -> None:
    """Draw ronda's own curves, the strongest comparators and the clairvoyant frontier.

    Comparators that another one beats at every energy are left to the tables and the CSV file;
    a curve that uses more energy at a smaller budget says so. Nothing is drawn without any point.

    Filled markers are on a policy's envelope, hollow ones are points that it beats elsewhere with
    less energy (a dotted line goes from budget to budget). The envelope goes on level to the
    right: more energy need not be spent.
    """
    rivals = strongest(made.curves)
    drawn = [curve for curve in made.curves if curve.own or curve.label in rivals]
    points = [point for curve in drawn for point in curve.points]
    if not points:
        return
    most_j = max(point.energy_j + point.energy_half_j for point in points)
    least_j = min([*(p.energy_j for p in points), *(energy for energy, _ in made.bound[:1])])
    margin = 0.04 * (most_j - least_j) or 0.05 * most_j
    right_j = most_j + margin
    figure = new_figure(8, 5)
    axes = figure.subplots()
    _draw_bound(axes, made.bound, made.unit_j, right_j)
    for index, curve in enumerate(drawn):
        _draw_curve(axes, curve, index, made.unit_j, right_j)
    seconds = [point.mean_jct_s for point in points] + [jct for _, jct in made.bound]
    if max(seconds) > LOGARITHMIC * min(seconds):
        axes.set_yscale("log")
        axes.set_ylim(min(seconds) / 1.3, max(seconds) * 1.3)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, max(seconds) * 1.08)
    axes.set_xlim((least_j - margin) / made.unit_j, right_j / made.unit_j)
    axes.set_title(
        f"{made.instance.name}: completion time that energy buys\n"
        "hollow: more energy for a longer time (dotted: from budget to budget)"
        + ("\n† uses more energy at some smaller budget" if any(c.rises for c in drawn) else ""),
        fontsize=10,
    )
    legend_below(figure, axes.get_legend_handles_labels()[0])
    spent = f"energy of the whole run, hosts and idle GPUs included ({made.unit})"
    tidy(axes, spent, "mean JCT (s)", grid=True)
    header = ("policy", "budget_factor", *NUMBERS[1:], "seeds")
    rows: list[tuple[object, ...]] = [
        (curve.label, *attrgetter(*NUMBERS)(point), len(point.runs))
        for curve in made.curves
        for point in curve.points
    ]
    rows += [("clairvoyant bound", "", "", energy, "", jct, "", "") for energy, jct in made.bound]
    save(figure, path, header, rows, svg=True)


def _draw_curve(axes: Axes, curve: Curve, index: int, unit_j: float, right_j: float) -> None:
    envelope = curve.envelope()
    if not envelope:
        return
    shade = colour(index)
    best = set(envelope)
    by_budget = np.array([(point.energy_j / unit_j, point.mean_jct_s) for point in curve.points])
    axes.plot(*by_budget.T, color=shade, linestyle=":", linewidth=0.9, alpha=0.7)
    x, y = np.array([*envelope, (right_j, envelope[-1][1])]).T
    axes.plot(x / unit_j, y, color=shade, linestyle=line(index), linewidth=1.6, alpha=0.9)
    for point in curve.points:
        on = (point.energy_j, point.mean_jct_s) in best
        axes.errorbar(
            point.energy_j / unit_j,
            point.mean_jct_s,
            xerr=point.energy_half_j / unit_j or None,
            yerr=point.mean_jct_half_s or None,
            color=shade,
            marker=marker(index),
            markersize=6,
            markerfacecolor=shade if on else "white",
            capsize=2.5,
            linewidth=1,
            zorder=3,
        )
    name = f"{curve.label} †" if curve.rises else curve.label
    axes.plot([], [], color=shade, linestyle=line(index), marker=marker(index), label=name)


def _draw_bound(axes: Axes, bound: Steps, unit_j: float, right_j: float) -> None:
    if not bound:
        return
    beyond = (max(right_j, 2 * bound[-1][0]), bound[-1][1])
    energies, seconds = np.array([(0.0, np.inf), *bound, beyond]).T
    seconds[:2] = 1e12  # with less than the first energy nothing can be done
    axes.fill_between(
        energies / unit_j,
        1e-12,
        seconds,
        step="pre",
        color="#8C8C8C",
        alpha=0.28,
        linewidth=0,
        label="no schedule can be here",
    )


def draw_prices(made: Frontier, path: Path) -> None:
    """Draw over time what GPUs and energy were worth by the prices, at each policy's least budget.

    The numbers of all budgets are in the CSV file. Nothing is drawn without prices.
    """
    if not made.worths:
        return
    from_loosest = sorted(made.worths.items(), key=lambda pair: -pair[0][1])
    tightest = {label: (factor, said) for (label, factor), said in from_loosest}
    labels = [curve.label for curve in made.curves]
    figure = new_figure(9, 5)
    panels = figure.subplots(2, 1, sharex=True)
    end_s = 0.0
    for label, (factor, said) in tightest.items():
        index = labels.index(label)
        end_s = max(end_s, float(said.time_s[-1] + said.lasts_s[-1]))
        for axes, values in zip(panels, (said.gpu_hour_s, said.kwh_s), strict=True):
            axes.step(
                said.time_s,
                values,
                where="post",
                color=colour(index),
                linewidth=0.9,
                label=f"{label}, budget ×{factor:g}",
            )
    for axes, what in zip(panels, ("GPU-hour", "kWh"), strict=True):
        axes.set_ylim(bottom=0)
        tidy(axes, y=f"s of mean JCT per {what}", grid=True)
    time_axis(panels[1], end_s)
    figure.suptitle(f"{made.instance.name}: what one more is worth, by the prices", fontsize=11)
    legend_below(figure, panels[0].get_legend_handles_labels()[0], 3)
    header = ("policy", "budget_factor", "time_s", "lasts_s", "s_per_gpu_hour", "s_per_kwh")
    rows = (
        (label, factor, *values)
        for (label, factor), said in made.worths.items()
        for values in zip(*(column.tolist() for column in astuple(said)), strict=True)
    )
    save(figure, path, header, rows)
