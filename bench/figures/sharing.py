"""The figure of models that share a GPU: throughput and memory by number of models."""

from collections.abc import Sequence
from typing import get_args

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.instances.base import Floats, Ints
from ronda.instances.models.fits import Fit, Fits, Residual
from ronda.instances.models.memory import need_gib
from ronda.instances.models.sharing import step_s
from ronda.instances.profile import AffineTime, Mode

MODES: tuple[Mode, ...] = get_args(Mode)
"""The sharing modes; a mode has the same colour in every panel."""


def sharing(fits: Fits) -> Chart:
    """Show the joint step rate of all models, and GiB if measured, by number of models.

    Each application and GPU has a panel, and another for memory if any was measured. Lines are
    models; marks are measurements.
    """
    groups: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits.fits:
        groups.setdefault((fit.application, fit.gpu_type), []).append(fit)
    memory = any(fit.memory is not None for fit in fits.fits)
    panels = []
    for (application, gpu), own in groups.items():
        panels.append(_throughput(own, f"{application} on {gpu}"))
        if memory:
            panels.append(_memory(own))
    return Chart(
        "models that share a GPU",
        panels,
        columns=2,
        inches=(9, 2.6 * -(-len(panels) // 2) + 0.6),
        header=("fit", "row", "models", "measured", "fitted", "held_out"),
        rows=(
            (f.name, r.row, r.at["models"], r.measured, r.fitted, r.held_out or "")
            for f in fits.fits
            for r in f.residuals
        ),
    )


def _throughput(fits: Sequence[Fit], title: str) -> Panel:
    """Return the panel of k / T(k) for each mode."""
    marks = []
    for fit in fits:
        if fit.sharing is None:
            continue
        time, (low, high) = fit.sharing.time, fit.measured["models"]
        first = int(low) if isinstance(time, AffineTime) else time.models[0]
        line = np.arange(first, int(high) + 1)
        rate = line / np.array([step_s(time, int(k)) for k in line])
        marks += _marks(fit.sharing.mode, line, rate, fit.residuals, fit.sharing.mode, rates=True)
    return _panel(marks, "steps per unit of time, all models", title)


def _memory(fits: Sequence[Fit]) -> Panel:
    """Return the panel of b + k p, with the measurements."""
    marks = []
    for fit in fits:
        if fit.memory is None:
            continue
        apart = [r for r in fit.residuals if r.at["processes"] > 1]
        kinds: tuple[tuple[Mode, list[Residual], str], ...] = (
            ("packed", apart, "processes: k (b + p)"),
            ("fused", [r for r in fit.residuals if r not in apart], "one process: b + k p"),
        )
        for mode, own, name in kinds:
            if own:
                line = np.array([1, int(max(r.at["models"] for r in own))])
                needs = np.array([need_gib(fit.memory, mode, int(k)) for k in line])
                marks += _marks(mode, line, needs, own, name, rates=False)
    return _panel(marks, "GiB")


def _marks(
    mode: Mode, line: Ints, model: Floats, own: Sequence[Residual], name: str, *, rates: bool
) -> list[Marks]:
    """Return a model's line and its measurements, as they are or as models per unit of time."""
    index, models = MODES.index(mode), np.array([r.at["models"] for r in own])
    measured = np.array([r.measured for r in own])
    y = models / measured if rates else measured
    return [
        Marks("line", line, model, colour=index, width=1.3),
        Marks("points", models, y, name, index, symbol=index, size=4),
    ]


def _panel(marks: Sequence[Marks], y: str, title: str = "") -> Panel:
    return Panel(marks, Axis("models on the GPU"), Axis(y, ends=(0.0, None)), title)
