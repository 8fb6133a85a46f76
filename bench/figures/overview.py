"""Pictures of a whole comparison: plan quality against solve time, and mean ranks of policies."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, named
from ronda.bench.runs.results import Result
from ronda.bench.statistics import Ranks, geometric_mean, paired_ratio, ratio_interval
from ronda.instances.tables.numbers import percent


def overview(results: Sequence[Result], labels: Sequence[str] = ()) -> Chart:
    """Show how far mean JCTs lie above the clairvoyant bound, against the time of a decision.

    A small marker is a policy on a workload (an instance with its changes): the mean over its runs,
    with the same interval as in tables. A large marker is the policy's geometric mean over the
    workloads that all policies completed without a fault, with an interval over instances; each
    instance counts once. Policies with a failed or invalid run have no large marker, and records of
    logs have none at all. If one of these workloads has no bound, the best policy on each workload
    replaces the bound. `labels` fix the colours.
    """
    groups: dict[str, dict[str, list[Result]]] = {}
    for run in (each for each in results if each.recorded is None):
        groups.setdefault(run.label, {}).setdefault(run.workload, []).append(run)
    well = {
        label: {name: runs for name, runs in own.items() if all(map(_measured, runs))}
        for label, own in groups.items()
    }
    failed = {run.label for run in results if run.fault}
    whole = [label for label in groups if label not in failed]
    common = [n for n in groups[whole[0]] if all(n in well[k] for k in whole)] if whole else []
    best_s: dict[str, float] = {}
    if not all(_bounded(well[label][name]) for label in whole for name in common):
        for name in common:
            each = ([run.metrics["mean_jct_s"] for run in well[label][name]] for label in whole)
            best_s[name] = min(float(np.mean(jcts_s)) for jcts_s in each)
    known = {
        label: {
            name: _point(runs, best_s.get(name))
            for name, runs in own.items()
            if (name in best_s if best_s else _bounded(runs))
        }
        for label, own in well.items()
    }
    names = [groups[whole[0]][name][0].instance for name in common]
    units = np.array(names if len({*names}) > 1 else common)
    small, large, rows = list[Marks](), list[Marks](), list[tuple[object, ...]]()
    for label, points in known.items():
        index = labels.index(label) if labels else [*known].index(label)
        if points:
            small.append(_marks(np.array([*points.values()]), "", index, 4, 0.45, [*points]))
        rows += [(label, n, ms, *(r - 1 for r in ratio)) for n, (ms, *ratio) in points.items()]
        if label in whole and common:
            both = np.array([points[name][:2] for name in common])
            groups_of = [both[units == unit] for unit in dict.fromkeys(units)]
            over = np.array([geometric_mean(own, axis=0) for own in groups_of])
            ratio = ratio_interval(paired_ratio, over[:, 1], np.ones(len(over)))
            mean = (float(geometric_mean(over[:, 0])), *ratio)
            told = f"{label}: {percent(mean[1] - 1, '.0f')} % at {mean[0]:.2g} ms"
            large.append(_marks(np.array([mean]), told, index, 11, 0.85))
            rows.append((label, "geometric mean", mean[0], *(r - 1 for r in ratio)))
    marks, count = [*small, *large], len({name for points in known.values() for name in points})
    near = max((float(max(each.y)) for each in marks), default=1.0) < 1.5
    ratios = (1, *(1.02, 1.05, 1.1) * near, 1.2, 1.5, 2, 3, 4, 6, 8, 11, 21, 51, 101)
    ticks = {ratio: f"{(ratio - 1) * 100:.0f} %" for ratio in ratios}
    x = Axis("median time of a decision (ms)", "log")
    against = "the best policy" if best_s else "a clairvoyant bound"
    return Chart(
        f"Quality against solve time on {count} workloads; large: geometric mean",
        [Panel(marks, x, Axis(f"mean JCT above {against}", "log", (0.98, None), ticks))],
        inches=(8, 5),
        header=("policy", "workload", "decision_ms", "gap", "low", "high"),
        rows=rows,
    )


def _measured(run: Result) -> bool:
    return not run.fault and "median_solve_s" in run.metrics


def _bounded(runs: Sequence[Result]) -> bool:
    return all(run.metrics.get("gap_mean_jct") is not None for run in runs)


def _point(runs: Sequence[Result], best_s: float | None) -> tuple[float, float, float, float]:
    """Return the mean milliseconds of a decision, the geometric mean ratio and its interval."""
    if best_s is None:
        above = [1.0 + float(run.metrics["gap_mean_jct"]) for run in runs]
    else:
        above = [float(run.metrics["mean_jct_s"]) / best_s for run in runs]
    times = [1e3 * float(run.metrics["median_solve_s"]) for run in runs]
    ones, drawn = np.ones(len(runs)), runs[0].variant.resample is not None
    return float(np.mean(times)), *ratio_interval(paired_ratio, np.array(above), ones, drawn=drawn)


def _marks(points: Any, name: str, index: int, size: float, alpha: float, texts: Any = ()) -> Marks:
    """Return markers for points of shape (n, 4): milliseconds, a ratio, and its interval's ends."""
    x, y, low, high = points.T
    told, bars = "%{text} %{y:.3f} times at %{x:.3g} ms a decision", (y - low, high - y)
    how: dict[str, Any] = {"symbol": index, "size": size, "alpha": alpha}
    return Marks("points", x, y, name, index, y_bars=bars, told=told, texts=texts or [""], **how)


def ranks(labels: Sequence[str], found: Ranks, instances: int) -> Chart:
    """Show mean ranks, best on top, each with half the critical difference on both sides."""
    order = sorted(range(len(labels)), key=lambda k: (found.mean[k], k))
    half = [found.critical / 2]
    points = [
        Marks("points", [found.mean[k]], [place], x_bars=(half, half), colour=k, symbol=k, size=8)
        for place, k in enumerate(order)
    ]
    return Chart(
        f"Lines that overlap: not told apart (Nemenyi, 5 %); Friedman p = {found.p:.2g}",
        [
            Panel(
                points,
                Axis(f"mean rank over {instances} instances; 1 is best"),
                named(labels[k] for k in order),
            )
        ],
        inches=(6.4, 1.4 + 0.32 * len(labels)),
        header=("policy", "mean_rank", "critical_difference", "friedman_p"),
        rows=[(labels[k], found.mean[k], found.critical, found.p) for k in order],
    )
