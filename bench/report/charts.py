"""The charts of all runs, each with a self-contained caption."""

import tomllib
from collections.abc import Collection, Iterable, Sequence
from math import inf, isfinite

import msgspec
import numpy as np

from ronda.bench.anytime.figure import quality_over_time
from ronda.bench.anytime.traces import references, traces_of
from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, distribution, within
from ronda.bench.figures.overview import overview
from ronda.bench.frontier.bound import Steps
from ronda.bench.frontier.curves import curves_of
from ronda.bench.frontier.figure import frontier as energy_frontier
from ronda.bench.report.folder import Reported, by_label, sound
from ronda.bench.report.parts import part
from ronda.bench.report.plotly import Plotly, plotly
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.folder import load_record
from ronda.bench.runs.results import Result
from ronda.bench.statistics import (
    over_best,
    performance_profile,
    ratio_interval,
    ratio_of_means,
)
from ronda.bench.suites.rows import least_mean_jct_s
from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.round import Round

Samples = dict[tuple[str, str], list[float]]
"""Seconds by workload and label."""


class PageChart(msgspec.Struct):
    """A chart of a `section`; `choice` names its workload if there are several."""

    section: str
    choice: str
    caption: str
    traces: list[Plotly]
    layout: Plotly


def page_chart(section: str, choice: str, caption: str, chart: Chart | Panel) -> PageChart:
    """Return a chart or a panel of a section for the page."""
    if isinstance(chart, Panel):
        chart = Chart(choice, [chart])
    return PageChart(section, choice, caption, *plotly(chart))


def caption(section: str, name: str = "one", **fields: object) -> str:
    """Return the text below a chart."""
    text: str = tomllib.loads(part("captions.toml"))[section][name]
    return text.format(**fields)


def quality(found: Reported) -> list[PageChart]:
    """Return charts of mean JCT against decision time, for all workloads together and for each."""
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
        marks = [_point(found, label, own) for label, own in groups.items()]
        marks += [Marks("rule", y=[bound_s], width=1, dash="--")] * bool(bound_s)
        x, y = Axis("time of a decision (ms)", "log"), Axis("mean JCT (s)", "log")
        made.append(page_chart("quality", name, words, Panel(marks, x, y)))
    chart = overview(found.results, found.labels)
    if len(made) < 2 or not any(marks.name for marks in chart.panels[0].marks):
        return made
    words = caption("quality", "all", left=_left(found.results, sound(found.results)))
    return [page_chart("quality", "all workloads", words, chart), *made]


def _left(runs: Iterable[Result], shown: Collection[str]) -> str:
    left = ", ".join(label for label in by_label(runs) if label not in shown)
    return caption("quality", "left", labels=left) if left else ""


def _point(found: Reported, label: str, runs: Sequence[Result]) -> Marks:
    def figures(metric: str) -> Floats:
        return np.array([float(run.metrics.get(metric) or 0.0) for run in runs])

    jct_s, bound_s = figures("mean_jct_s"), figures("bound_mean_jct_s")
    if not bound_s.all():
        bound_s = np.ones(len(runs))
    drawn = runs[0].variant.resample is not None
    ratio = ratio_interval(ratio_of_means, jct_s, bound_s, drawn=drawn)
    median_ms, p99_ms = (1e3 * figures(name).mean() for name in ("median_solve_s", "p99_solve_s"))
    hover = "%{y:,.0f} s mean JCT at %{x:.3g} ms a decision"
    right_ms = max(0.0, p99_ms - median_ms)
    y, low, high = bound_s.mean() * np.array(ratio)
    return Marks(
        "points",
        [median_ms],
        [y],
        label,
        found.labels.index(label),
        x_bars=([0.0], [right_ms]),
        y_bars=([y - low], [high - y]) if isfinite(low) else None,
        symbol=found.labels.index(label),
        size=8.5,
        told=hover,
    )


def profiles(found: Reported) -> list[PageChart]:
    """Return the performance profile of mean JCTs if there are several workloads."""
    jct_s = np.full((len(found.workloads), len(found.labels)), inf)
    for row, runs in enumerate(found.workloads.values()):
        for label, own in sound(runs).items():
            jct_s[row, found.labels.index(label)] = np.mean([r.metrics["mean_jct_s"] for r in own])
    if min(jct_s.shape) < 2 or not np.isfinite(jct_s).any():
        return []
    ratios = over_best(jct_s)
    most = max(1.05, float(ratios[np.isfinite(ratios)].max()))
    factors = np.geomspace(1.0, most * 1.02, 160)
    shares = performance_profile(ratios, factors)
    hover = "%{y:.0%} of workloads within %{x:.3f} times the best"
    lines = [
        Marks("step", factors, share, label, k, width=2, told=hover)
        for k, (label, share) in enumerate(zip(found.labels, shares.T, strict=True))
    ]
    panel = distribution(lines, "times the best mean JCT", "share of workloads")
    return [page_chart("profiles", "", caption("profiles"), panel)]


def distributions(
    found: Reported, section: str, samples: Samples, sizes: dict[tuple[str, str], int]
) -> list[PageChart]:
    """Return for each workload a chart of the share of jobs, or of decisions, within a given time.

    `sizes` says how many samples there would be if all had ended.
    """
    jobs = "job completion time (s)", "share of jobs", 1.0, "%{y:.1%} of jobs within %{x:,.4g} s"
    each = "time of a decision (ms)", "share of decisions", 1e3, "%{y:.1%} within %{x:.3g} ms"
    x, y, scale, hover = jobs if section == "jct" else each
    made = []
    for name, runs in found.workloads.items():
        lines = [
            within(label, k, scale * np.array(values), sizes[name, label], hover)
            for k, label in enumerate(found.labels)
            if (values := samples.get((name, label)))
        ]
        if lines:
            pooled = " All runs of a policy count together." * (len(runs) > len(lines))
            words = caption(section, pooled=pooled)
            made.append(page_chart(section, name, words, distribution(lines, x, y)))
    return made


def frontier(found: Reported) -> list[PageChart]:
    """Return mean JCT against energy for each instance of a sweep over budgets."""
    made, names = [], dict.fromkeys(result.instance for result in found.results)
    for name in names:
        runs = [r for r in found.results if r.instance == name and not r.variant.change]
        curves = [curve for curve in curves_of(runs) if curve.points]
        if not curves:
            found.gaps.append(f"{name}: no run kept its energy budget, so there is no frontier")
            continue
        chart = energy_frontier(name, curves, _bound(found, runs), found.labels, every=True)
        made.append(page_chart("frontier", name, caption("frontier"), chart))
    return made


def _bound(found: Reported, runs: Sequence[Result]) -> Steps:
    """Return the clairvoyant frontier that the command stored, or an empty one."""
    loosest = max(runs, key=lambda run: run.variant.sustained_w or 0.0)
    try:
        kept = load_record(found.folder / "bounds.json", dict[str, Steps])
    except InputError:
        kept = {}
    if loosest.fingerprint not in kept:
        found.gaps.append(f"{loosest.instance}: no bound on its frontier in bounds.json")
    return kept.get(loosest.fingerprint, ())


def anytime(found: Reported) -> list[PageChart]:
    """Return charts of the primal gap over time, for each round and for all rounds together."""
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
    own = {name: [t for t in traces if t.round == name] for name in reference}
    together = [trace for some in own.values() for trace in some]
    whole = {f"mean of {len(own)} rounds": together} if len(own) > 1 else {}
    limit_s = max((run.time_limit_s or 1.0 for run in known), default=1.0)
    for name, some in (whole | own).items():
        chart = quality_over_time(some, reference, limit_s, found.labels)
        made.append(page_chart("anytime", name, caption("anytime"), chart.panels[0]))
    return made
