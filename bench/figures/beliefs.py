"""The figures of beliefs: what was expected of sizes and speeds, and what came."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ronda.bench.figures.style import (
    colour,
    legend_below,
    marker,
    new_figure,
    save,
    tidy,
    time_axis,
)
from ronda.instances.arrays import Floats
from ronda.instances.instance import Instance
from ronda.instances.models.fits import Predictor
from ronda.instances.schedule import Forecast, Schedule


def draw_beliefs(instance: Instance, schedules: Mapping[str, Schedule], path: Path) -> None:
    """Draw believed over real sizes and rates over time, and how often sizes are within quantiles.

    Sizes are judged as they were first told, rates as an allocation began.
    """
    figure = new_figure(11, 3.9)
    sizes, calibration, rates = figure.subplots(1, 3)
    end_s = max(schedule.end_s for schedule in schedules.values())
    rows = []
    for index, (label, schedule) in enumerate(schedules.items()):
        _ratios(sizes, [f for f in schedule.forecasts if f.what == "size"], label, index)
        _ratios(rates, [f for f in schedule.forecasts if f.what == "rate"], label, index)
        shares = np.sort([f.share for f in schedule.forecasts if f.share is not None])
        _calibration(calibration, shares, index)
        rows += [
            (label, f.what, f.time_s, f.job, f.believed, f.real, "" if f.share is None else f.share)
            for f in schedule.forecasts
        ]
    for axes, title in ((sizes, "believed size / real"), (rates, "believed rate / real")):
        axes.set_yscale("log")
        axes.axhline(1.0, color="grey", linewidth=0.8, linestyle=":")
        axes.set_title(title, fontsize=10, loc="left")
        time_axis(axes, end_s)
        tidy(axes)
    calibration.set_title("calibration of sizes", fontsize=10, loc="left")
    legend_below(figure, sizes.get_legend_handles_labels()[0])
    figure.suptitle(f"{instance.name}: beliefs over time", fontsize=11)
    columns = ("policy", "what", "time_s", "job", "believed", "real", "share")
    save(figure, path, columns, rows)


def _ratios(axes: Axes, forecasts: list[Forecast], label: str, index: int) -> None:
    time_s = [each.time_s for each in forecasts]
    ratio = [each.believed / each.real for each in forecasts]
    shape = marker(index)
    axes.scatter(time_s, ratio, s=9, alpha=0.6, color=colour(index), marker=shape, label=label)


def _calibration(axes: Axes, shares: Floats, index: int) -> Floats:
    """Draw the share of jobs below each of (n,) probabilities, ascending; return these shares."""
    level = np.arange(1, len(shares) + 1) / max(len(shares), 1)
    axes.step(np.append(0.0, shares), np.append(0.0, level), color=colour(index))
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle=":")
    tidy(axes, "believed probability", "share of jobs below")
    return np.asarray(level)


def draw_calibration(predictor: Predictor, path: Path) -> None:
    """Draw the share of jobs that stayed below each believed probability; a diagonal is right."""
    shares, of = np.array(predictor.calibration.shares), predictor.calibration
    figure = new_figure(5, 4.4)
    axes = figure.subplots()
    level = _calibration(axes, shares, 0)
    axes.set_title(
        f"{predictor.instance}: {of.jobs:,} jobs, rank correlation {of.correlation:.2f} "
        f"(GPU time {of.service_correlation:.2f})",
        fontsize=9,
        loc="left",
    )
    save(figure, path, ("believed", "share"), zip(shares.tolist(), level.tolist(), strict=True))
