"""One picture of a comparison: quality against solve time, over all instances and policies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.bench.runs.results import Result
from ronda.bench.statistics import geometric_mean, paired_ratio, ratio_interval
from ronda.instances.tables.numbers import percent

MEAN = "geometric mean"


def overview(results: Sequence[Result], path: Path) -> None:
    """Draw how far mean JCTs lie above the clairvoyant bound against the time of a decision.

    A small marker is a policy on an instance with its changes, the mean over its runs with its
    interval as in tables; a large one the policy's geometric mean over those that all policies have
    ended, of times and of ``1 + gap``. What has no bound is left out, and so is a policy where a
    run of its failed or broke a rule.
    """
    groups: dict[str, dict[str, list[Result]]] = {}
    for run in results:
        groups.setdefault(run.label, {}).setdefault(run.workload, []).append(run)
    known = {
        label: {name: _point(runs) for name, runs in own.items() if _bounded(runs)}
        for label, own in groups.items()
    }
    known = {label: points for label, points in known.items() if points}
    common = [n for n in next(iter(known.values()), ()) if all(n in p for p in known.values())]
    figure, rows = new_figure(8, 5), []
    axes = figure.subplots()
    for index, (label, points) in enumerate(known.items()):
        x, y, low, high = np.array(list(points.values())).T
        look: dict[str, Any] = {"color": colour(index), "marker": marker(index), "ls": "none"}
        bars = np.nan_to_num([y - low, high - y])
        axes.errorbar(x, y, yerr=bars, **look, markersize=4, alpha=0.45, linewidth=1)
        rows += [
            (label, name, ms, *(end - 1 for end in ends)) for name, (ms, *ends) in points.items()
        ]
        if common:
            ms, ratio = geometric_mean(np.array([points[name][:2] for name in common]), axis=0)
            told = f"{label}: {percent(ratio - 1, '.0f')} % at {ms:.2g} ms"
            axes.plot(ms, ratio, **look, markersize=11, alpha=0.85, mec="white", label=told)
            rows.append((label, MEAN, ms, ratio - 1, "", ""))
    count = len({name for points in known.values() for name in points})
    _finish(axes, f"Quality against solve time on {count} workloads", legend=bool(common))
    save(figure, path, ("policy", "workload", "decision_ms", "gap", "low", "high"), rows)


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


def _bounded(runs: Sequence[Result]) -> bool:
    return all(not run.fault and "gap_mean_jct" in run.metrics for run in runs)


def _point(runs: Sequence[Result]) -> tuple[float, float, float, float]:
    """Return mean decision time in ms, geometric mean of 1 + gap, and the ends of its interval."""
    above = np.array([1.0 + float(run.metrics["gap_mean_jct"]) for run in runs])
    times = [1e3 * float(run.metrics["median_solve_s"]) for run in runs]
    drawn = runs[0].variant.resample is not None
    return float(np.mean(times)), *ratio_interval(
        paired_ratio, above, np.ones(len(runs)), drawn=drawn
    )
