"""The charts of all runs, as Plotly's JSON: traces and a layout, with a caption that says all.

A trace has a `policy`, its place among the labels, in place of colours: the script knows those.
"""

import tomllib
from collections.abc import Collection, Iterable, Sequence
from html import escape
from math import inf, isfinite, nan
from typing import Any

import msgspec
import numpy as np

from ronda.bench.anytime.traces import references, traces_of
from ronda.bench.frontier.bound import Steps
from ronda.bench.frontier.curves import Curve, curves_of
from ronda.bench.report.detail import floats
from ronda.bench.report.folder import Reported, by_label, sound
from ronda.bench.report.parts import part
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.folder import load_record
from ronda.bench.runs.results import Result
from ronda.bench.statistics import (
    geometric_mean,
    over_best,
    paired_ratio,
    performance_profile,
    ratio_interval,
    ratio_of_means,
)
from ronda.bench.suites.rows import least_mean_jct_s
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.round import Round

POINTS = 160
"""Points of a curve."""

LEAST = 1e-4
"""Gaps below this are drawn here: a logarithm has no zero."""

KWH = 3.6e6
"""Joules."""

Samples = dict[tuple[str, str], list[float]]
"""Seconds by workload and label."""

Plotly = dict[str, Any]


class Chart(msgspec.Struct):
    """A chart of a `section`; `choice` says of what, where there are several."""

    section: str
    choice: str
    caption: str
    traces: list[Plotly]
    layout: Plotly


def caption(section: str, name: str = "one", **fields: object) -> str:
    """Return what stands under a chart."""
    text: str = tomllib.loads(part("captions.toml"))[section][name]
    return text.format(**fields)


def quality(found: Reported) -> list[Chart]:
    """Return mean JCT against the time of a decision: of all workloads, and of each."""
    made = []
    for name, runs in found.workloads.items():
        shown = sound(runs)
        groups = {k: own for k, own in shown.items() if "median_solve_s" in own[0].metrics}
        if not groups:
            continue
        bound_s, most = least_mean_jct_s(groups.values()), max(map(len, groups.values()))
        change = runs[0].variant
        varies = "drawn" if change.resample else "other" if change.draws else "seeded"
        varies = caption("quality", varies)
        seeds = caption("quality", "seeds" if most > 1 else "seed", most=most, varies=varies)
        below, left = caption("quality", "bound") if bound_s else "", _left(runs, shown)
        words = caption("quality", seeds=seeds, bound=below, left=left)
        traces = [_point(found, label, own) for label, own in groups.items()]
        axes = _axes("time of a decision (ms)", "mean JCT (s)", log="xy", bound=bound_s)
        made.append(Chart("quality", name, words, traces, axes))
    return [*_all_workloads(found), *made] if len(made) > 1 else made


def _left(runs: Iterable[Result], shown: Collection[str]) -> str:
    left = ", ".join(label for label in by_label(runs) if label not in shown)
    return caption("quality", "left", labels=left) if left else ""


def _point(found: Reported, label: str, runs: Sequence[Result]) -> Plotly:
    def figures(metric: str) -> Floats:
        return np.array([float(run.metrics.get(metric) or 0.0) for run in runs])

    jct_s, bound_s = figures("mean_jct_s"), figures("bound_mean_jct_s")
    if not bound_s.all():
        bound_s = np.ones(len(runs))
    drawn = runs[0].variant.resample is not None
    ratio = ratio_interval(ratio_of_means, jct_s, bound_s, drawn=drawn)
    median_ms, p99_ms = (1e3 * figures(name).mean() for name in ("median_solve_s", "p99_solve_s"))
    return _marker(found, label, median_ms, *bound_s.mean() * np.array(ratio)) | {
        "error_x": _bars([max(0.0, p99_ms - median_ms)], [0.0]) | {"width": 0},
        "hovertemplate": "%{y:,.0f} s mean JCT at %{x:.3g} ms a decision",
    }


def _all_workloads(found: Reported) -> list[Chart]:
    """Return geometric means over the workloads that all policies ended, each instance once."""
    labels = [*sound(found.results)]
    if not labels:
        return []
    jct_s, solve_s = (_matrix(found, name, labels) for name in ("mean_jct_s", "median_solve_s"))
    common = np.asarray(np.isfinite(jct_s + solve_s).all(axis=1))
    ran = [runs for k, runs in enumerate(found.workloads.values()) if common[k]]
    if not ran:
        return []
    base, what, short = jct_s[common].min(axis=1, keepdims=True), "that of the best policy", "best"
    bound_s = np.array([[least_mean_jct_s([runs])] for runs in ran])
    if bound_s.all():
        base, what, short = bound_s, "what no scheduler can beat", "bound"
    names = [runs[0].instance for runs in ran]
    units = np.array(names if len({*names}) > 1 else range(len(names)))
    over, solve_s = (
        np.array([geometric_mean(each[units == unit], axis=0) for unit in dict.fromkeys(units)])
        for each in (jct_s[common] / base, np.maximum(solve_s[common], 1e-9))
    )
    traces = []
    for k, label in enumerate(labels):
        ratio = ratio_interval(paired_ratio, over[:, k], np.ones(len(over)))
        trace = _marker(found, label, 1e3 * float(geometric_mean(solve_s[:, k])), *ratio)
        traces.append(trace | {"hovertemplate": "%{y:.3f} times at %{x:.3g} ms a decision"})
    left = _left(found.results, labels)
    words = caption("quality", "all", count=len(ran), what=what, left=left)
    axes = _axes("median time of a decision (ms)", f"mean JCT / {short}", log="xy")
    return [Chart("quality", "all workloads", words, traces, axes)]


def _matrix(found: Reported, metric: str, labels: Sequence[str]) -> Floats:
    """Return (W, P) the mean of a metric by workload and policy; NaN unless all runs ended well."""
    made = np.full((len(found.workloads), len(labels)), nan)
    for row, runs in enumerate(found.workloads.values()):
        for label, own in sound(runs).items():
            if label in labels:
                values = [float(run.metrics.get(metric, nan)) for run in own]
                made[row, labels.index(label)] = np.mean(values)
    return made


def profiles(found: Reported) -> list[Chart]:
    """Return the performance profile of mean JCTs, where there are several workloads."""
    jct_s = np.nan_to_num(_matrix(found, "mean_jct_s", found.labels), nan=inf)
    if min(jct_s.shape) < 2 or not np.isfinite(jct_s).any():
        return []
    ratios = over_best(jct_s)
    most = max(1.05, float(ratios[np.isfinite(ratios)].max()))
    factors = np.geomspace(1.0, most * 1.02, POINTS)
    shares = performance_profile(ratios, factors)
    hover = "%{y:.0%} of workloads within %{x:.3f} times the best"
    traces = [
        _line(found, label, factors, shares[:, k], hover) for k, label in enumerate(found.labels)
    ]
    axes = _axes("times the best mean JCT", "share of workloads", share=True)
    return [Chart("profiles", "", caption("profiles"), traces, axes)]


def distributions(
    found: Reported, section: str, samples: Samples, sizes: dict[tuple[str, str], int]
) -> list[Chart]:
    """Return the share of jobs, or of decisions, within a time: a chart for each workload.

    `sizes` says how many samples there would be if all had ended.
    """
    jobs = "job completion time (s)", "share of jobs", 1.0, "%{y:.1%} of jobs within %{x:,.4g} s"
    each = "time of a decision (ms)", "share of decisions", 1e3, "%{y:.1%} within %{x:.3g} ms"
    x, y, scale, hover = jobs if section == "jct" else each
    made = []
    for name, runs in found.workloads.items():
        traces = []
        for label in found.labels:
            values = scale * np.sort(samples.get((name, label), []))
            if len(values):
                at = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))
                share = (at + 1) / sizes[name, label]
                traces.append(_line(found, label, values[at], share, hover))
        if traces:
            pooled = " All runs of a policy count together." * (len(runs) > len(traces))
            words, axes = caption(section, pooled=pooled), _axes(x, y, log="x", share=True)
            made.append(Chart(section, name, words, traces, axes))
    return made


def frontier(found: Reported) -> list[Chart]:
    """Return mean JCT against energy for each instance of a sweep over budgets."""
    made, names = [], dict.fromkeys(result.instance for result in found.results)
    for name in names:
        runs = [r for r in found.results if r.instance == name and not r.variant.change]
        curves = [curve for curve in curves_of(runs) if curve.points]
        if not curves:
            found.gaps.append(f"{name}: no run kept its energy budget, so there is no frontier")
            continue
        traces = [trace for curve in curves for trace in _curve(found, curve)]
        if bound := _bound(found, runs):
            energy, jct_s = ([pair[k] for pair in bound] for k in (0, 1))
            line = _line(found, "", np.array(energy) / KWH, jct_s, "%{y:,.0f} s, %{x:,.1f} kWh")
            line["line"]["dash"] = "dash"
            traces.append(line | {"name": "no scheduler below"})
        axes = _axes("energy of the whole run, hosts and idle GPUs included (kWh)", "mean JCT (s)")
        made.append(Chart("frontier", name, caption("frontier"), traces, axes))
    return made


def _curve(found: Reported, curve: Curve) -> list[Plotly]:
    """Return the line of a curve's envelope and the markers of its points."""
    envelope, points = np.array(curve.envelope()), curve.points
    line = _line(found, curve.label, envelope[:, 0] / KWH, envelope[:, 1], "")
    line |= {"hoverinfo": "skip", "showlegend": False}
    del line["line"]
    at = [p.energy_j / KWH for p in points], [p.mean_jct_s for p in points]
    markers = _line(found, curve.label, *at, "%{text}: %{y:,.0f} s with %{x:,.1f} kWh") | {
        "mode": "markers",
        "marker": {"size": 9},
        "text": [f"budget ×{p.factor:g}" for p in points],
        "error_x": _bars([p.energy_half_j / KWH for p in points]),
        "error_y": _bars([p.mean_jct_half_s for p in points]),
    }
    return [trace | {"legendgroup": escape(curve.label)} for trace in (line, markers)]


def _bound(found: Reported, runs: Sequence[Result]) -> Steps:
    """Return the clairvoyant frontier that the command kept, if it did."""
    loosest = max(runs, key=lambda run: run.variant.sustained_w or 0.0)
    try:
        kept = load_record(found.folder / "bounds.json", dict[str, Steps])
    except InputError:
        kept = {}
    if loosest.fingerprint not in kept:
        found.gaps.append(f"{loosest.instance}: no bound on its frontier in bounds.json")
    return kept.get(loosest.fingerprint, ())


def anytime(found: Reported) -> list[Chart]:
    """Return the primal gap over time, of each round and of all."""
    asked = {run.instance: found.question(run) for run in found.results}
    rounds = {name: question for name, question in asked.items() if isinstance(question, Round)}
    known = [run for run in found.results if run.instance in rounds]
    try:
        layout, objective = Layout(found.folder, "plan"), str(found.about.get("objective"))
        traces = traces_of(known, rounds, layout, objective)
    except InputError as error:
        found.gaps.append(f"no curves of quality over time: {error}")
        return []
    reference, made = references(traces), []
    own = {name: [t for t in traces if t.round == name] for name in rounds}
    whole = {f"mean of {len(own)} rounds": traces} if len(own) > 1 and reference else {}
    own = whole | {name: some for name, some in own.items() if name in reference}
    limit_s = max((run.time_limit_s or 1.0 for run in known), default=1.0)
    for name, some in own.items():
        first_s = min(t.points[0].time_s for t in some if t.points)
        grid = np.geomspace(first_s / 2, limit_s, POINTS)
        lines = []
        for label in found.labels:
            gaps = [t.at(grid, reference.get(t.round, 0.0)) for t in some if t.label == label]
            if gaps:
                mean = np.maximum(np.mean(gaps, axis=0), LEAST)
                lines.append(_line(found, label, grid, mean, "%{y:.2%} after %{x:.3g} s"))
        axes = _axes("seconds since entry", "primal gap", log="xy")
        axes["yaxis"] |= {"tickformat": ".2~%", "range": [-4.1, 0.1]}
        made.append(Chart("anytime", name, caption("anytime"), lines, axes))
    return made


def _trace(found: Reported, label: str, x: Iterable[float], y: Iterable[float]) -> Plotly:
    """Return the beginning of a trace; without a label it is no policy's."""
    place = {"policy": found.labels.index(label)} if label else {}
    return {"type": "scatter", "name": escape(label), "x": floats(x), "y": floats(y)} | place


def _marker(found: Reported, label: str, x: float, y: float, low: float, high: float) -> Plotly:
    """Return a marker, with a vertical bar where its interval is known."""
    bar = {"error_y": _bars([high - y], [y - low])} if isfinite(low) else {}
    return _trace(found, label, [x], [y]) | {"mode": "markers", "marker": {"size": 12}} | bar


def _line(
    found: Reported, label: str, x: Iterable[float], y: Iterable[float], hover: str
) -> Plotly:
    look = {"mode": "lines", "line": {"shape": "hv"}, "hovertemplate": hover}
    return _trace(found, label, x, y) | look


def _bars(above: Iterable[float], below: Iterable[float] | None = None) -> Plotly:
    made: Plotly = {"type": "data", "array": floats(above), "thickness": 1}
    return made if below is None else made | {"symmetric": False, "arrayminus": floats(below)}


def _axes(x: str, y: str, *, log: str = "", share: bool = False, bound: float = 0.0) -> Plotly:
    def axis(title: str, name: str) -> Plotly:
        return {"title": {"text": title}} | ({"type": "log", "dtick": "D2"} if name in log else {})

    made: Plotly = {"xaxis": axis(x, "x"), "yaxis": axis(y, "y")}
    if share:
        made["yaxis"] |= {"tickformat": ".0%", "range": [0, 1.02]}
    elif "y" not in log:
        made["yaxis"] |= {"rangemode": "tozero"}
    if bound:
        ends = {"x0": 0, "x1": 1, "y0": bound, "y1": bound}
        line = {"dash": "dash", "width": 1}
        made["shapes"] = [{"type": "line", "xref": "paper", "line": line} | ends]
    return made
