"""The reliability diagram of predicted progress, with the numbers beside."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.ticker import PercentFormatter

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.bench.study.calibration import LEVELS, Calibration


def draw(found: Sequence[Calibration], path: Path) -> None:
    """Draw, for each split, the share of jobs below each predicted quantile.

    Parameters
    ----------
    found
        What was measured.
    path
        Without suffix; ``.png`` and ``.csv`` are added.
    """
    splits = list(dict.fromkeys(c.split for c in found))
    figure = new_figure(4.4 * len(splits), 4.5)
    for axes, split in zip(figure.subplots(1, len(splits), squeeze=False)[0], splits, strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="calibrated")
        for index, one in enumerate(c for c in found if c.split == split):
            axes.plot(
                LEVELS,
                one.shares,
                color=colour(index),
                marker=marker(index),
                markersize=3.5,
                linewidth=1.4,
                label=f"{one.method} ({one.calibration_error:.2f} off)",
            )
        axes.set_aspect("equal")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("predicted quantile of progress", fontsize=9)
        axes.set_ylabel("held-out epochs whose true progress is below it", fontsize=9)
        axes.set_title(f"held out: {split}", fontsize=10)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
        axes.grid(visible=True, linewidth=0.4, alpha=0.5)
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        tidy(axes)
    header = ("split", "method", "level", "share")
    rows = [
        (c.split, c.method, f"{level:.2f}", share)
        for c in found
        for level, share in zip(LEVELS.tolist(), c.shares, strict=True)
    ]
    save(figure, path, header, rows)
