"""One picture of a comparison: quality against solve time, over all instances and policies."""

from collections.abc import Sequence

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.bench.runs.results import Result
from ronda.bench.statistics import geometric_mean, paired_ratio, ratio_interval
from ronda.instances.tables.numbers import percent


def overview(results: Sequence[Result]) -> Chart:
    """Show how far mean JCTs lie above the clairvoyant bound against the time of a decision.

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
    marks, rows = list[Marks](), list[tuple[object, ...]]()
    for index, (label, points) in enumerate(known.items()):
        x, y, low, high = np.array(list(points.values())).T
        bars = np.nan_to_num([y - low, high - y])
        small = Marks(
            "points",
            x,
            y,
            y_bars=(bars[0], bars[1]),
            colour=index,
            symbol=index,
            size=4,
            alpha=0.45,
        )
        marks.append(small)
        rows += [
            (label, name, ms, *(end - 1 for end in ends)) for name, (ms, *ends) in points.items()
        ]
        if common:
            ms, ratio = geometric_mean(np.array([points[name][:2] for name in common]), axis=0)
            name = f"{label}: {percent(ratio - 1, '.0f')} % at {ms:.2g} ms"
            large = Marks("points", [ms], [ratio], name, index, symbol=index, size=11, alpha=0.85)
            marks.append(large)
            rows.append((label, "geometric mean", ms, ratio - 1, "", ""))
    count = len({name for points in known.values() for name in points})
    near = max((float(max(each.y)) for each in marks), default=1.0) < 1.5
    ratios = (1, *(1.02, 1.05, 1.1) * near, 1.2, 1.5, 2, 3, 4, 6, 8, 11, 21, 51, 101)
    gap = "mean JCT above what no scheduler can beat"
    return Chart(
        f"Quality against solve time on {count} workloads; large: geometric mean",
        [
            Panel(
                marks,
                Axis("median time of a decision (ms)", "log"),
                Axis(gap, "log", (0.98, None), {r: f"{(r - 1) * 100:.0f} %" for r in ratios}),
            )
        ],
        inches=(8, 5),
        header=("policy", "workload", "decision_ms", "gap", "low", "high"),
        rows=rows,
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
