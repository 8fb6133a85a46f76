"""The figure of a predictor: how often sizes came out below what it believed."""

from pathlib import Path

import numpy as np

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.instances.learnt.predictor import Predictor


def draw_calibration(predictor: Predictor, path: Path) -> None:
    """Draw the share of jobs that stayed below each believed probability; a diagonal is right."""
    shares, of = np.array(predictor.calibration.shares), predictor.calibration
    level = np.arange(1, len(shares) + 1) / max(len(shares), 1)
    figure = new_figure(5, 4.4)
    axes = figure.subplots()
    axes.step(np.append(0.0, shares), np.append(0.0, level), color=colour(0))
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle=":")
    axes.set_title(
        f"{predictor.instance}: {of.jobs:,} jobs, rank correlation {of.correlation:.2f} "
        f"(GPU time {of.service_correlation:.2f})",
        fontsize=9,
        loc="left",
    )
    tidy(axes, "believed probability", "share of jobs below")
    save(figure, path, ("believed", "share"), zip(shares.tolist(), level.tolist(), strict=True))
