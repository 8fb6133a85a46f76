"""The figure of models that share a GPU: throughput and memory by number of models."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from matplotlib.axes import Axes

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.instances.models.fits import Fit, Fits, Residual
from ronda.instances.models.memory import need_gib
from ronda.instances.models.sharing_time import step_s
from ronda.instances.profile import AffineTime, Memory, Mode

MODES: tuple[Mode, ...] = get_args(Mode)
"""In every panel a mode has the same colour."""

HEADER = ("fit", "row", "models", "measured", "fitted", "held_out")


def draw_sharing(fits: Fits, path: Path) -> None:
    """Draw the steps of all models per unit of time, and GiB where measured, by number of models.

    A panel for each application and GPU, with one of memory next to it if any was measured; lines
    are the models, marks the measurements. The figure has no suffix in `path`; its numbers go
    next to it as CSV.
    """
    groups: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits.fits:
        groups.setdefault((fit.application, fit.gpu_type), []).append(fit)
    both = any(fit.memory is not None for fit in fits.fits)
    many = len(groups) if both else -(-len(groups) // 2)
    figure = new_figure(9, 2.6 * many + 0.3)
    grid = figure.subplots(many, 2, squeeze=False)
    panels = grid[:, 0] if both else grid.flat
    for ((application, gpu), own), axes in zip(groups.items(), panels, strict=False):
        _throughput([fit for fit in own if fit.sharing is not None], axes)
        axes.set_title(f"{application} on {gpu}", fontsize=9, loc="left")
    for own, axes in zip(groups.values(), grid[:, 1], strict=False) if both else ():
        _memory([fit for fit in own if fit.memory is not None], axes)
    if not both and len(groups) % 2:
        grid[-1, 1].axis("off")
    numbers = (
        (f.name, r.row, r.at["models"], r.measured, r.fitted, r.held_out or "")
        for f in fits.fits
        for r in f.residuals
    )
    save(figure, path, HEADER, numbers)


def _throughput(fits: list[Fit], axes: Axes) -> None:
    """Draw k / T(k) of each mode."""
    for fit in fits:
        if fit.sharing is None:
            continue
        index = MODES.index(fit.sharing.mode)
        time, (low, high) = fit.sharing.time, fit.measured["models"]
        first = int(low) if isinstance(time, AffineTime) else time.models[0]
        line = np.arange(first, int(high) + 1)
        rate = line / np.array([step_s(time, int(k)) for k in line])
        axes.plot(line, rate, color=colour(index), linewidth=1.3)
        models = np.array([r.at["models"] for r in fit.residuals])
        measured = models / np.array([r.measured for r in fit.residuals])
        (marks,) = axes.plot(models, measured, marker(index), color=colour(index), markersize=4)
        marks.set_label(fit.sharing.mode)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
    tidy(axes, "models on the GPU", "steps per unit of time, all models", grid=True)


def _memory(fits: list[Fit], axes: Axes) -> None:
    """Draw b + k p, and what was measured."""
    for fit in fits:
        if fit.memory is None:
            continue
        apart = [r for r in fit.residuals if r.at["processes"] > 1]
        kinds: tuple[tuple[Mode, list[Residual], str], ...] = (
            ("packed", apart, "processes: k (b + p)"),
            ("fused", [r for r in fit.residuals if r not in apart], "one process: b + k p"),
        )
        for mode, own, title in kinds:
            if own:
                _needs(fit.memory, mode, own, title, axes)
    axes.set_ylim(bottom=0)
    if fits:
        axes.legend(fontsize=7, frameon=False)
    tidy(axes, "models on the GPU", "GiB", grid=True)


def _needs(memory: Memory, mode: Mode, own: Sequence[Residual], title: str, axes: Axes) -> None:
    """Draw what one mode needs, and its measurements."""
    index = MODES.index(mode)
    models = [r.at["models"] for r in own]
    line = np.array([1, int(max(models))])
    needs = [need_gib(memory, mode, int(k)) for k in line]
    axes.plot(line, needs, color=colour(index), linewidth=1.3, label=title)
    measured = [r.measured for r in own]
    axes.plot(models, measured, marker(index), color=colour(index), markersize=4)
