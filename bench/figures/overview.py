"""One picture of a comparison: quality against solve time, over all instances and policies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.bench.figures.table import percent
from ronda.bench.runs.results import Result
from ronda.bench.statistics import geometric_mean, half_width

MEAN = "geometric mean"


def overview(results: Sequence[Result], path: Path) -> None:
    """Draw how far mean JCTs lie above the clairvoyant bound against the time of a decision.

    A small marker is a policy on an instance, the mean over its seeds with their confidence
    interval (Student's t); a large one the policy's geometric mean over the instances that all
    policies have ended, of times and of ``1 + gap``. Instances without a bound are left out.
    """
    known = [r for r in results if r.ok and "gap_mean_jct" in r.metrics]
    labels = list(dict.fromkeys(r.label for r in known))
    names = list(dict.fromkeys(r.instance for r in known))
    common = [n for n in names if {r.label for r in known if r.instance == n} == set(labels)]
    figure, rows = new_figure(8, 5), []
    axes = figure.subplots()
    for index, label in enumerate(labels):
        at = {n: [r for r in known if (r.label, r.instance) == (label, n)] for n in names}
        points = {name: _point(runs) for name, runs in at.items() if runs}
        x, y, error = (np.array(column) for column in zip(*points.values(), strict=True))
        look: dict[str, Any] = {"color": colour(index), "marker": marker(index), "ls": "none"}
        axes.errorbar(x, y, yerr=error, **look, markersize=4, alpha=0.45, linewidth=1)
        rows += [(label, name, ms, ratio - 1, half) for name, (ms, ratio, half) in points.items()]
        if common:
            means = np.array([points[name][:2] for name in common])
            ms, ratio = geometric_mean(means, axis=0).tolist()
            told = f"{label}: {percent(ratio - 1, '.0f')} % at {ms:.2g} ms"
            axes.plot(ms, ratio, **look, markersize=11, alpha=0.85, mec="white", label=told)
            rows.append((label, MEAN, ms, ratio - 1, 0.0))
    _finish(axes, f"Quality against solve time on {len(names)} instances", legend=bool(common))
    save(figure, path, ("policy", "instance", "decision_ms", "gap", "half_interval"), rows)


def _finish(axes: Axes, title: str, *, legend: bool) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08)
    axes.set_ylim(bottom=0.98)
    above = FuncFormatter(lambda ratio, _: f"{percent(ratio - 1, '.0f')} %")
    axes.yaxis.set_major_formatter(above)
    axes.yaxis.set_minor_formatter(above)
    axes.tick_params(which="minor", labelsize=7)
    if legend:
        axes.legend(fontsize=8, frameon=False, title=MEAN, title_fontsize=8)
    axes.set_title(title, fontsize=11)
    tidy(
        axes,
        "median time of a decision (ms)",
        "mean JCT above what no scheduler can beat",
        grid=True,
    )


def _point(runs: Sequence[Result]) -> tuple[float, float, float]:
    """Return mean decision time in ms, mean of 1 + gap, and half its confidence interval."""
    gaps = [1.0 + float(run.metrics["gap_mean_jct"]) for run in runs]
    times = [1e3 * float(run.metrics["median_solve_s"]) for run in runs]
    return float(np.mean(times)), float(np.mean(gaps)), half_width(gaps)
