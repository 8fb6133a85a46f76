"""Box plots and distributions of JCT, execution and queueing time, as in ONES's artifact."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.study.ones_claim import MEASURES, Runs
from ronda.instances.arrays import Floats

SHORTEST_S = 1.0
"""Where the logarithmic axis begins: queueing times of 0 lie on its edge."""

POINTS = 400
"""Points of a distribution in the figure and its numbers."""


def draw(runs: Sequence[Runs], folder: Path) -> list[Path]:
    """Draw both figures for every kind of workload; returns the pictures."""
    pictures = []
    for batch in dict.fromkeys(each.batch for each in runs):
        own = [each for each in runs if each.batch == batch]
        boxes(own, folder / f"boxes-{batch}")
        distributions(own, folder / f"cdf-{batch}")
        pictures += [folder / f"{kind}-{batch}.png" for kind in ("boxes", "cdf")]
    return pictures


def boxes(runs: Sequence[Runs], path: Path) -> None:
    """Draw quartiles, whiskers of 1.5 interquartile ranges, no outliers; dots are means."""
    figure = new_figure(10, 3.8)
    labels, rows = [each.label for each in runs], []
    for axes, measure, k in zip(figure.subplots(1, 3), MEASURES, range(3), strict=True):
        values = [each.seconds[k].ravel() for each in runs]
        drawn = axes.boxplot(values, showfliers=False, widths=0.6, patch_artist=True)
        for index, box in enumerate(drawn["boxes"]):
            box.set(facecolor=colour(index), alpha=0.55)
        for middle in drawn["medians"]:
            middle.set(color="black")
        axes.plot(range(1, len(runs) + 1), [v.mean() for v in values], "ko", markersize=4)
        axes.set_xticks(range(1, len(runs) + 1), labels, rotation=20)
        axes.set_ylim(bottom=0)
        axes.set_title(f"{measure} (s)", fontsize=10)
        axes.grid(visible=True, axis="y", linewidth=0.4, alpha=0.5)
        tidy(axes)
        for label, each in zip(labels, values, strict=True):
            quartiles = np.percentile(each, (25, 50, 75)).tolist()
            rows.append((measure, label, float(each.mean()), *quartiles))
    figure.suptitle(_title(runs) + "; boxes: quartiles, dots: means, no outliers", fontsize=10)
    save(figure, path, ("measure", "policy", "mean_s", "q25_s", "median_s", "q75_s"), rows)


def distributions(runs: Sequence[Runs], path: Path) -> None:
    """Draw the share of jobs within a time, on a logarithmic axis."""
    figure = new_figure(10, 3.6)
    rows = []
    for axes, measure, k in zip(
        figure.subplots(1, 3, sharey=True), MEASURES, range(3), strict=True
    ):
        for index, each in enumerate(runs):
            times, share = distribution(each.seconds[k].ravel())
            axes.step(
                np.maximum(times, SHORTEST_S),
                share,
                where="post",
                color=colour(index),
                linewidth=1.5,
                label=each.label,
            )
            pairs = zip(times.tolist(), share.tolist(), strict=True)
            rows += [(measure, each.label, *pair) for pair in pairs]
        axes.set_xscale("log")
        axes.set_xlim(left=SHORTEST_S)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(f"{measure} (s)", fontsize=9)
        axes.grid(visible=True, linewidth=0.4, alpha=0.5)
        tidy(axes)
    figure.axes[0].set_ylabel("share of jobs", fontsize=9)
    figure.axes[0].legend(fontsize=8, frameon=False, loc="upper left")
    figure.suptitle(_title(runs), fontsize=10)
    save(figure, path, ("measure", "policy", "seconds", "share"), rows)


def distribution(values: Floats) -> tuple[Floats, Floats]:
    """Return times and the share of values up to each, `POINTS` of them at most."""
    ordered = np.sort(values)
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) > POINTS:
        chosen = np.unique(np.linspace(0, len(ordered) - 1, POINTS).round().astype(int))
        ordered, share = ordered[chosen], share[chosen]
    return ordered, share


def _title(runs: Sequence[Runs]) -> str:
    """Say what the runs were."""
    jobs, seeds = runs[0].seconds.shape[2], len(runs[0].seeds)
    plural = "s" if seeds > 1 else ""
    return f"ONES workload, {jobs} jobs, {seeds} seed{plural}, user's batch: {runs[0].batch}"
