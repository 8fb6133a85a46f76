"""The figures of speed: time against jobs, of the engine and of one model, and of stages."""

import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from ronda.bench.figures.draw import colour, new_figure, save_picture, tidy
from ronda.instances.errors import InputError
from ronda.instances.files.storage import load
from ronda.instances.tables.numbers import seconds

STAGES = {
    "total_s": "whole decision",
    "options_s": "building options",
    "values_s": "values",
    "arrays_s": "case and arrays",
    "engine_s": "engine",
    "placement_s": "placement",
    "check_s": "check",
}
"""Fields of a line of the case `stages`, and what the figure calls them."""

NEEDED = {"prices": ("jobs", "total_s", "gap_asked"), "stages": ("jobs", *STAGES)}
"""Numbers above 0 of a line of a case that is drawn."""

Lines = list[dict[str, Any]]


def read_lines(path: Path, case: str) -> Lines:
    """Return the lines of a case in a results file, by number of jobs; an InputError if none."""
    lines: Lines = []
    for number, line in enumerate(load(path).splitlines(), 1):
        try:
            if line.strip() and (found := json.loads(line))["case"] == case:
                if not all(found[name] > 0 for name in NEEDED[case]):
                    raise ValueError
                lines.append(found)
        except (ValueError, KeyError, TypeError) as error:
            expected = "a JSON line that lab.speed printed"
            raise InputError(f"{path}:{number}", "something else", expected) from error
    if not lines:
        raise InputError(str(path), f"no line of the case {case}", "at least one")
    return sorted(lines, key=lambda line: int(line["jobs"]))


def draw_growth(results: Path, out: Path) -> None:
    """Draw the engine's time against jobs, and that of one Pyomo model in HiGHS, as PNG."""
    points = read_lines(results, "prices")
    figure, axes = _logarithmic(points)
    jobs, total_s = [p["jobs"] for p in points], [p["total_s"] for p in points]
    straight = [total_s[-1] * n / jobs[-1] for n in jobs]
    axes.plot(jobs, straight, color="0.6", ls=":", lw=1.2, label="proportional to jobs")
    axes.plot(jobs, total_s, color=colour(0), marker="o", label="price engine", zorder=3)
    for at in zip(jobs, total_s, strict=True):
        _note(axes, f"{seconds(at[1])} s", at, (4, -13), color=colour(0))
    measured = [p for p in points if p["baseline_s"]]
    for stopped, marker, ls, label in (
        (False, "s", "--", "one Pyomo model in HiGHS"),
        (True, "^", "", "the same, stopped before the gap"),
    ):
        own = [p for p in measured if (p["baseline_stop"] == "time_limit") is stopped]
        times = [p["baseline_s"] for p in own]
        if own:
            look: dict[str, Any] = {"color": colour(1), "marker": marker, "ls": ls, "label": label}
            axes.plot([p["jobs"] for p in own], times, **look)
        for p, time_s in zip(own, times, strict=True):
            note = f"{seconds(time_s)} s, {'> ' * stopped}{time_s / p['total_s']:.0f}×"
            _note(axes, note, (p["jobs"], time_s), (-5, 6), color=colour(1), ha="right")
    all_s = total_s + [p["baseline_s"] for p in measured]
    axes.set_ylim(min(all_s) / 2.5, max(all_s) * 3)
    axes.set_xlim(jobs[0] / 3.5, jobs[-1] * 2.2)
    gaps = " or ".join(f"{gap:g}" for gap in sorted({p["gap_asked"] for p in points}))
    axes.set_title(f"Time to a relative gap of {gaps} on the reference round", fontsize=11)
    axes.legend(fontsize=8.5, frameon=False, loc="lower right")
    size = "jobs (56 options each, 2 GPUs a job; 1 GPU a job at 64)"
    tidy(axes, size, "seconds, building and solving, one thread", grid=True)
    save_picture(figure, out)


def draw_stages(results: Path, out: Path) -> None:
    """Draw the seconds of every stage of a decision against jobs, both logarithmic, as PNG."""
    lines = read_lines(results, "stages")
    figure, axes = _logarithmic(lines)
    for number, (stage, label) in enumerate(STAGES.items()):
        look = {"lw": 2.2, "color": "0.15"} if not number else {"color": colour(number - 1)}
        points = [(line["jobs"], line[stage]) for line in lines]
        axes.plot(*zip(*points, strict=True), marker="o", ms=4, label=label, **look)
    axes.set_title("From a round to a checked plan, stage by stage", fontsize=11)
    axes.legend(fontsize=8.5, frameon=False, loc="upper left")
    tidy(axes, "jobs (some 37 options each)", "seconds of processor time, one thread", grid=True)
    save_picture(figure, out)


def _logarithmic(lines: Lines) -> tuple[Figure, Axes]:
    """Return an empty figure with a mark at every number of jobs."""
    figure = new_figure(7.2, 4.6)
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([line["jobs"] for line in lines])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    return figure, axes


def _note(
    axes: Axes, text: str, at: tuple[float, float], away: tuple[int, int], **look: Any
) -> None:
    axes.annotate(text, at, away, textcoords="offset points", fontsize=8, **look)
