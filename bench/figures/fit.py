"""The figure of a fit: the model next to the measurements, and what is left over."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.instances.arrays import Floats
from ronda.instances.models.fits import Fit
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import PowerCurve

SHOWN = 6
"""Fits that the picture shows of a large table, the worst ones; its CSV has all."""

HEADER = ("fit", "row", "axis", "measured", "fitted", "held_out")


def draw_fits(fits: Sequence[Fit], path: Path) -> None:
    """Draw every fit: model and measurements at the left, relative residuals at the right.

    Filled marks are fitted, hollow ones were left out of a fit and predicted by it. The figure has
    no suffix in `path`; its numbers go next to it as CSV.
    """
    worst = sorted(fits, key=lambda fit: -fit.errors.mape)[:SHOWN]
    chosen = [fit for fit in fits if fit in worst]
    figure = new_figure(9, 2.6 * len(chosen) + 0.5)
    grid = figure.subplots(len(chosen), 2, squeeze=False)
    for fit, (left, right) in zip(chosen, grid, strict=True):
        columns = {
            name: np.array([getattr(row, name) for row in fit.residuals], dtype=float)
            for name in ("measured", "fitted", "held_out")
        }
        if fit.power is not None:
            _power(fit.power, _at(fit, "speed"), columns["measured"], left)
        else:
            _steps(columns["measured"], columns["fitted"], left)
        left.set_title(f"{fit.name}: {fit.errors.mape:.1%} mean error", fontsize=9, loc="left")
        _residuals(fit, columns, right)
        for axes in (left, right):
            axes.grid(visible=True, linewidth=0.4, alpha=0.5)
            tidy(axes)
    grid[0][1].legend(fontsize=7, frameon=False)
    if len(chosen) < len(fits):
        title = f"the {len(chosen)} of {len(fits)} fits with the largest errors"
        figure.suptitle(title, fontsize=10)
    save(figure, path, HEADER, _rows(fits))


def _at(fit: Fit, axis: str) -> Floats:
    return np.array([row.at[axis] for row in fit.residuals])


def _rows(fits: Sequence[Fit]) -> list[tuple[object, ...]]:
    """Return every residual as a row of the CSV."""
    return [
        (
            fit.name,
            r.row,
            " ".join(f"{axis}={value:g}" for axis, value in r.at.items()),
            r.measured,
            r.fitted,
            "" if r.held_out is None else r.held_out,
        )
        for fit in fits
        for r in fit.residuals
    ]


def _power(curve: PowerCurve, speed: Floats, measured: Floats, axes: Axes) -> None:
    """Draw power against speed; dotted where nothing was measured."""
    low, high = float(speed.min()), max(1.0, float(speed.max()))
    for start, end, style in ((low, high, "-"), (min(0.3, low), low, ":")):
        line = np.linspace(start, end, 200)
        axes.plot(line, gpu_power_w(curve, line), color=colour(1), linewidth=1.4, linestyle=style)
    axes.scatter(speed, measured, s=18, color=colour(0), zorder=3)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("relative speed", fontsize=8)
    axes.set_ylabel("W per GPU", fontsize=8)


def _steps(measured: Floats, fitted: Floats, axes: Axes) -> None:
    """Draw fitted against measured seconds."""
    both = np.concatenate([measured, fitted])
    ends = [float(both.min()), float(both.max())]
    axes.plot(ends, ends, color=colour(1), linewidth=1.0)
    axes.scatter(measured, fitted, s=12, color=colour(0), zorder=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("measured s per iteration", fontsize=8)
    axes.set_ylabel("fitted", fontsize=8)


def _residuals(fit: Fit, columns: dict[str, Floats], axes: Axes) -> None:
    """Draw relative residuals against GPUs or speed."""
    x = _at(fit, "gpus" if fit.power is None else "speed")
    off = {name: 100.0 * (columns[name] / columns["measured"] - 1.0) for name in columns}
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.scatter(x, off["fitted"], s=16, color=colour(0), label="fitted", zorder=3)
    left = off["held_out"]
    axes.scatter(x, left, s=26, facecolors="none", edgecolors=colour(1), label="left out")
    if fit.power is None:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("GPUs" if fit.power is None else "relative speed", fontsize=8)
    axes.set_ylabel("residual (%)", fontsize=8)
