"""The figure of a fit: the model next to the measurements, and the residuals."""

from collections.abc import Sequence

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.instances.base import Floats
from ronda.instances.models.fits import Fit
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import PowerCurve


def residuals(fits: Sequence[Fit]) -> Chart:
    """Show for each fit the model and measurements on the left and relative residuals on the right.

    Filled marks were fitted; hollow marks were left out of a fit and predicted by it. If there are
    more than six fits, only the six worst are shown; the chart's numbers cover all of them.
    """
    worst = sorted(fits, key=lambda fit: -fit.errors.mape)[:6]
    chosen = [fit for fit in fits if fit in worst]
    title = "fits and residuals"
    if len(chosen) < len(fits):
        title = f"the {len(chosen)} of {len(fits)} fits with the largest errors"
    rows = (
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
    )
    return Chart(
        title,
        [panel for fit in chosen for panel in _panels(fit)],
        columns=2,
        inches=(9, 2.6 * len(chosen) + 0.8),
        header=("fit", "row", "axis", "measured", "fitted", "held_out"),
        rows=rows,
    )


def _panels(fit: Fit) -> tuple[Panel, Panel]:
    measured, fitted, left_out = (
        np.array([getattr(row, name) for row in fit.residuals], dtype=float)
        for name in ("measured", "fitted", "held_out")
    )
    at = np.array([row.at["gpus" if fit.power is None else "speed"] for row in fit.residuals])
    title = f"{fit.name}: {fit.errors.mape:.1%} mean error"
    if fit.power is not None:
        model = _power(fit.power, at, measured, title)
    else:
        model = _steps(measured, fitted, title)
    off, left = (100.0 * (values / measured - 1.0) for values in (fitted, left_out))
    said = (("fitted", off, 0, 4.0), ("left out", left, 1, 5.0))
    marks = [
        Marks("points", at, off, name, colour, symbol=0, size=size, hollow=colour == 1)
        for name, off, colour, size in said
    ]
    zero = Marks("rule", y=[0.0], width=0.8)
    x = Axis("GPUs", "log2") if fit.power is None else Axis("relative speed")
    return model, Panel([zero, *marks], x, Axis("residual (%)"))


def _power(curve: PowerCurve, speed: Floats, measured: Floats, title: str) -> Panel:
    """Return a panel of power against speed; the line is dotted where nothing was measured."""
    low, high = float(speed.min()), max(1.0, float(speed.max()))
    lines = [
        Marks("line", x, gpu_power_w(curve, x), colour=1, width=1.4, dash=dash)
        for x, dash in (
            (np.linspace(low, high, 200), "-"),
            (np.linspace(min(0.3, low), low, 200), ":"),
        )
    ]
    points = Marks("points", speed, measured, colour=0, symbol=0, size=4)
    y = Axis("W per GPU", ends=(0.0, None))
    return Panel([*lines, points], Axis("relative speed"), y, title)


def _steps(measured: Floats, fitted: Floats, title: str) -> Panel:
    both = np.concatenate([measured, fitted])
    ends = [float(both.min()), float(both.max())]
    line = Marks("line", ends, ends, colour=1, width=1.0)
    points = Marks("points", measured, fitted, colour=0, symbol=0, size=3.5)
    x, y = Axis("measured s per iteration", "log"), Axis("fitted", "log")
    return Panel([line, points], x, y, title)
