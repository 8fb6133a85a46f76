"""The figure of a fit: the model beside the measurements, and what is left over."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.formulations.models.power import gpu_power_w
from ronda.instances.fit import Fit

SHOWN = 6
"""Fits that the picture shows of a large table, the worst ones; its CSV has all."""

HEADER = ("fit", "row", "axis", "measured", "fitted", "held_out", "inside")


def draw_fits(fits: Sequence[Fit], path: Path) -> None:
    """Draw every fit: model and measurements at the left, relative residuals at the right.

    Filled marks are fitted, hollow ones were left out of a fit and predicted by it, crosses among
    them lie at the edge of what was measured.

    Parameters
    ----------
    fits
        With their residuals.
    path
        Of the figure, without suffix; the numbers go beside it as CSV.
    """
    worst = sorted(fits, key=lambda fit: -fit.errors.mape)[:SHOWN]
    chosen = [fit for fit in fits if fit in worst]
    figure = new_figure(9, 2.6 * len(chosen) + 0.5)
    grid = figure.subplots(len(chosen), 2, squeeze=False)
    for fit, (left, right) in zip(chosen, grid, strict=True):
        _model(fit, left)
        _residuals(fit, right)
        for axes in (left, right):
            axes.grid(visible=True, linewidth=0.4, alpha=0.5)
            tidy(axes)
    grid[0][1].legend(fontsize=7, frameon=False)
    if len(chosen) < len(fits):
        title = f"the {len(chosen)} of {len(fits)} fits with the largest errors"
        figure.suptitle(title, fontsize=10)
    save(figure, path, HEADER, _rows(fits))


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
            int(r.inside),
        )
        for fit in fits
        for r in fit.residuals
    ]


def _model(fit: Fit, axes: Axes) -> None:
    """Draw power against speed, or fitted against measured seconds."""
    measured = np.array([r.measured for r in fit.residuals])
    if fit.power is not None:
        speed = np.array([r.at["speed"] for r in fit.residuals])
        low, high = float(speed.min()), max(1.0, float(speed.max()))
        for start, end, style in ((low, high, "-"), (min(0.3, low), low, ":")):
            line = np.linspace(start, end, 200)  # dotted: not measured
            power_w = gpu_power_w(fit.power, line)
            axes.plot(line, power_w, color=colour(1), linewidth=1.4, linestyle=style)
        axes.scatter(speed, measured, s=18, color=colour(0), zorder=3)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("relative speed", fontsize=8)
        axes.set_ylabel("W per GPU", fontsize=8)
    else:
        fitted = np.array([r.fitted for r in fit.residuals])
        ends = [float(min(measured.min(), fitted.min())), float(max(measured.max(), fitted.max()))]
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
    axes.set_title(f"{fit.name}: {fit.errors.mape:.1%} mean error", fontsize=9, loc="left")


def _residuals(fit: Fit, axes: Axes) -> None:
    """Draw relative residuals against GPUs or speed."""
    x = np.array([r.at["speed" if fit.power is not None else "gpus"] for r in fit.residuals])
    measured = np.array([r.measured for r in fit.residuals])
    fitted = np.array([r.fitted for r in fit.residuals])
    out = np.array([np.nan if r.held_out is None else r.held_out for r in fit.residuals])
    inside = np.array([r.inside for r in fit.residuals])
    off, left = 100.0 * (fitted / measured - 1.0), 100.0 * (out / measured - 1.0)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.scatter(x, off, s=16, color=colour(0), label="fitted", zorder=3)
    axes.scatter(
        x[inside], left[inside], s=26, facecolors="none", edgecolors=colour(1), label="left out"
    )
    axes.scatter(x[~inside], left[~inside], s=22, color=colour(1), marker="x", label="at the edge")
    if fit.power is None:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("relative speed" if fit.power is not None else "GPUs", fontsize=8)
    axes.set_ylabel("residual (%)", fontsize=8)
