"""The figures of beliefs: the expected sizes and speeds of jobs against the real ones."""

from collections.abc import Mapping, Sequence

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, time_axis
from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.models.fits import Predictor
from ronda.instances.schedule import Forecast, Schedule


def beliefs(instance: Instance, schedules: Mapping[str, Schedule]) -> Chart:
    """Show believed against real sizes and rates over time, and the calibration of size quantiles.

    Sizes are judged as first believed, rates as believed when an allocation began.
    """
    end_s = max(schedule.end_s for schedule in schedules.values())
    told = [(label, f) for label, schedule in schedules.items() for f in schedule.forecasts]

    def ratios(what: str) -> Panel:
        marks = [
            _ratios([f for f in schedule.forecasts if f.what == what], label, index)
            for index, (label, schedule) in enumerate(schedules.items())
        ]
        right = Marks("rule", y=[1.0], colour="grey", dash=":")
        ratio = Axis("believed / real", "log")
        return Panel([*marks, right], time_axis(end_s), ratio, f"{what}s")

    shares = [[f.share for f in s.forecasts if f.share is not None] for s in schedules.values()]
    lines = [_calibration(np.sort(own), k) for k, own in enumerate(shares)]
    return Chart(
        f"{instance.name}: beliefs over time",
        [ratios("size"), calibration(lines, "calibration of sizes"), ratios("rate")],
        columns=3,
        inches=(11, 3.9),
        header=("policy", "what", "time_s", "job", "believed", "real", "share"),
        rows=(
            (label, f.what, f.time_s, f.job, f.believed, f.real, "" if f.share is None else f.share)
            for label, f in told
        ),
    )


def _ratios(told: Sequence[Forecast], label: str, index: int) -> Marks:
    return Marks(
        "points",
        [each.time_s for each in told],
        [each.believed / each.real for each in told],
        label,
        index,
        symbol=index,
        size=3.5,
        alpha=0.6,
        told="%{text}: believed %{y:.3g} times the truth",
        texts=[each.job for each in told],
    )


def _calibration(shares: Floats, index: int) -> Marks:
    """Return the share of jobs below each believed probability; `shares` ascend, shape (n,)."""
    level = np.arange(len(shares) + 1) / max(len(shares), 1)
    x = np.append(0.0, shares)
    hover = "%{y:.0%} of sizes below the believed %{x:.0%}"
    return Marks("step", x, level, colour=index, told=hover)


def calibration(lines: Sequence[Marks], title: str) -> Panel:
    """Return a panel of calibration lines; correct beliefs lie on its diagonal."""
    right = Marks("line", [0, 1], [0, 1], colour="grey", width=0.8, dash=":")
    x, y = Axis("believed probability", ends=(0, 1)), Axis("share of jobs below", ends=(0, 1.02))
    return Panel([*lines, right], x, y, title)


def calibration_of(predictor: Predictor) -> Chart:
    """Show the share of jobs that stayed below each believed probability; the diagonal is ideal."""
    found = predictor.calibration
    line = _calibration(np.array(found.shares), 0)
    said = f"rank correlation {found.correlation:.2f} (GPU time {found.service_correlation:.2f})"
    rows = zip(line.x[1:], line.y[1:], strict=True)
    return Chart(
        f"{predictor.instance}: {found.jobs:,} jobs, {said}",
        [calibration([line], "")],
        inches=(5.6, 4.4),
        header=("believed", "share"),
        rows=rows,
    )
