"""The pictures: nodes awake against nodes needed, the fan of forecasts, sleep by day."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ronda.bench.figures.style import colour, legend_below, new_figure, save, tidy
from ronda.bench.sleeping.lines import KNOWS, ControllerLine
from ronda.instances.arrays import Floats, Ints
from ronda.instances.demand import DAY_S, Demand
from ronda.instances.tables.numbers import percent
from ronda.systems.helios.ces import WARM_UP
from ronda.systems.helios.forecasts import DemandForecast, steps_of_day

NEEDED = "#BBBBBB"
ORIGINS = 4
"""Forecasts that the fan shows."""


def draw_nodes(series: Demand, lines: Sequence[ControllerLine], path: Path) -> None:
    """Draw a panel for each controller: nodes needed, awake and in all; a mark for each wake-up."""
    figure = new_figure(11, 0.9 + 1.7 * len(lines))
    panels = figure.subplots(len(lines), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    days = _days(series)
    low = max(0, min(series.needed) - 8)
    for index, (axes, line) in enumerate(zip(panels, lines, strict=True)):
        active = line.control.active
        axes.fill_between(days, series.needed_nodes, step="post", color=NEEDED, label="needed")
        axes.step(days, active, where="post", color=colour(index), linewidth=1.1)
        axes.step(days, series.total_nodes, where="post", color="black", linewidth=0.7, label="all")
        wakes = _wakes(active)
        if len(wakes) <= 200:
            axes.plot(days[wakes], np.full(len(wakes), low + 2), "|", color=colour(index))
        axes.set_title(_said(line), fontsize=9, loc="left")
        axes.set_ylim(low, None)
        axes.set_xlim(0, series.days)
        tidy(axes, y="nodes")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(panels[-1], "days")
    legend_below(figure, panels[0].get_legend_handles_labels()[0])
    figure.suptitle(
        f"{series.name}: nodes awake (coloured); marks: wake-ups; axes begin at {low}", fontsize=11
    )
    columns = [("day", days), ("needed", series.needed_nodes), ("total", series.total_nodes)]
    columns += [(line.policy, line.control.active) for line in lines]
    save(
        figure,
        path,
        [name for name, _ in columns],
        zip(*(values.tolist() for _, values in columns), strict=True),
    )


def draw_fan(series: Demand, forecast: DemandForecast, path: Path) -> None:
    """Draw what was foretold at some times of the next day, by levels, and what came."""
    day = steps_of_day(series)
    last = len(series.needed) - day - 1
    if last <= forecast.first:
        return
    spread = np.linspace(max(forecast.first, min(2 * day, last)), last, ORIGINS).astype(int)
    origins = np.unique(np.minimum(spread // day * day + 9 * day // 24, last))
    figure = new_figure(11, 3.4)
    panels = figure.subplots(1, len(origins), sharey=True, squeeze=False)[0]
    paths = forecast.paths(day)
    hours = np.arange(1, day + 1) * series.step_s / 3600
    rows: list[tuple[float, ...]] = []
    for axes, origin in zip(panels, origins.tolist(), strict=True):
        foretold = series.needed[origin] + paths[:, origin]
        came = series.needed_nodes[origin + 1 : origin + 1 + day]
        _fan(axes, hours, foretold, forecast)
        axes.plot(hours, came, color="black", linewidth=1.0, label="needed")
        if forecast.target == "peak":
            peak = np.maximum.accumulate(came)
            axes.plot(
                hours, peak, color="black", linestyle="--", linewidth=1.0, label="most so far"
            )
        begin = origin * series.step_s / DAY_S
        axes.set_title(f"day {int(begin) + 1}, {begin % 1 * 24:.0f}:00", fontsize=9, loc="left")
        axes.set_xticks(range(0, 25, 6))
        tidy(axes, "hours ahead", grid=True)
        rows += [
            (begin, hour, int(need), *levels)
            for hour, need, levels in zip(hours.tolist(), came.tolist(), foretold.T, strict=True)
        ]
    tidy(panels[0], y="nodes")
    legend_below(figure, panels[0].get_legend_handles_labels()[0], 8)
    what = "the most that will be needed" if forecast.target == "peak" else "what will be needed"
    figure.suptitle(f"{series.name}: {what} by then, as foretold at that time", fontsize=11)
    levels = [f"quantile_{level:g}" for level in forecast.levels]
    save(figure, path, ("made_day", "hours_ahead", "needed", *levels), rows)


def _fan(axes: Axes, hours: Floats, foretold: Floats, forecast: DemandForecast) -> None:
    for k in range(len(foretold) - 1):
        low, high = forecast.levels[k : k + 2]
        strength = 0.65 * (1 - k / len(foretold))
        label = f"{percent(low, 'g')} to {percent(high, 'g')} %"
        band = axes.fill_between(hours, foretold[k], foretold[k + 1], label=label)
        band.set(color=colour(0), alpha=strength, linewidth=0)


def draw_days(series: Demand, lines: Sequence[ControllerLine], path: Path) -> None:
    """Draw by day how many node-hours were slept, and how often nodes woke."""
    day = steps_of_day(series)
    starts = np.arange(0, len(series.needed), day)
    figure = new_figure(11, 5)
    slept, woken = figure.subplots(2, 1, sharex=True)
    rows: list[tuple[object, ...]] = []
    for index, line in enumerate(lines):
        asleep = series.total_nodes - line.control.active
        hours = np.add.reduceat(asleep, starts) * series.step_s / 3600
        woke = np.zeros(len(asleep), dtype=int)
        woke[_wakes(line.control.active)] = 1
        wakes = np.add.reduceat(woke, starts)
        shape = {"color": colour(index), "marker": "o", "markersize": 3, "linewidth": 1.2}
        slept.plot(starts / day + 1, hours, label=line.policy, **shape)
        woken.plot(starts / day + 1, wakes, **shape)
        rows += [
            (line.policy, k + 1, *pair)
            for k, pair in enumerate(zip(hours.tolist(), wakes.tolist(), strict=True))
        ]
    woken.set_yscale("symlog", linthresh=4)
    woken.set_yticks([0, 1, 2, 3, 4, 10, 40], ["0", "1", "2", "3", "4", "10", "40"])
    slept.set_ylim(0, None)
    slept.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(slept, y="node-hours asleep", grid=True)
    tidy(woken, "day", "wake-ups", grid=True)
    legend_below(figure, slept.get_legend_handles_labels()[0])
    figure.suptitle(f"{series.name}: sleep and wake-ups by day", fontsize=11)
    save(figure, path, ("policy", "day", "node_hours_asleep", "wakeups"), rows)


def _said(line: ControllerLine) -> str:
    made = line.outcome
    return (
        f"{line.policy}, knows {KNOWS[line.control.knowledge]}: "
        f"{made.mean_sleeping_nodes:.1f} asleep, {made.wakeups_per_day:.2f} wake-ups a day"
    )


def _wakes(active: Ints) -> Ints:
    """Return the steps in which nodes wake, but those of the warm-up."""
    steps = np.flatnonzero(np.diff(active) > 0) + 1
    return np.asarray(steps[steps >= WARM_UP])


def _days(series: Demand) -> Floats:
    return np.arange(len(series.needed), dtype=np.float64) * (series.step_s / DAY_S)
