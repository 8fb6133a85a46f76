"""The figure of growth: time of the price engine and the monolithic model against jobs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from ronda.bench.figures.style import colour, new_figure, save_picture, tidy
from ronda.instances.base import Count, Positive
from ronda.instances.errors import InputError
from ronda.instances.files.storage import load


class Point(msgspec.Struct):
    """What the figure needs of a line that the case `prices` printed."""

    jobs: Count
    total_s: Positive
    gap_asked: Positive
    baseline_s: Positive | None
    baseline_stop: str = ""

    @property
    def reached(self) -> bool:
        """Whether the monolithic model reached its gap, rather than its time limit."""
        return self.baseline_stop != "time_limit"


def read_points(path: Path) -> list[Point]:
    """Return the measurements of the price engine in a results file, by number of jobs."""
    return sorted(read_lines(path, "prices", Point), key=lambda point: point.jobs)


Line = TypeVar("Line")


def read_lines(path: Path, case: str, kind: type[Line]) -> list[Line]:
    """Return the lines of a case in a results file; InputError if there is none."""
    lines = []
    for number, line in enumerate(load(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if found["case"] == case:
                lines.append(msgspec.convert(found, kind))
        except (ValueError, KeyError, TypeError) as error:
            expected = "a JSON line that ronda.bench.speed printed"
            raise InputError(f"{path}:{number}", "something else", expected) from error
    if not lines:
        raise InputError(str(path), f"no line of the case {case}", "at least one")
    return lines


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw time against jobs as PNG."""
    figure = new_figure(7.2, 4.6)
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _engine(axes, points)
    _monolithic(axes, [p for p in points if p.baseline_s is not None])
    axes.set_xticks([p.jobs for p in points])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    times = [p.total_s for p in points] + [p.baseline_s for p in points if p.baseline_s]
    axes.set_ylim(min(times) / 2.5, max(times) * 3)
    axes.set_xlim(points[0].jobs / 3.5, points[-1].jobs * 2.2)
    gaps = " or ".join(f"{gap:g}" for gap in sorted({p.gap_asked for p in points}))
    axes.set_title(f"Time to a relative gap of {gaps} on the reference round", fontsize=11)
    axes.legend(fontsize=8.5, frameon=False, loc="lower right")
    size = "jobs (56 options each, 2 GPUs a job; 1 GPU a job at 64)"
    tidy(axes, size, "seconds, building and solving, one thread", grid=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(figure, path)


def _engine(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the engine's line, each point with its time, and a line of proportional growth."""
    jobs, total_s = [p.jobs for p in points], [p.total_s for p in points]
    last = points[-1]
    straight = [last.total_s * n / last.jobs for n in jobs]
    axes.plot(jobs, straight, color="0.6", ls=":", lw=1.2, label="proportional to jobs")
    axes.plot(jobs, total_s, color=colour(0), marker="o", label="price engine", zorder=3)
    for p in points:
        _note(axes, _seconds(p.total_s), (p.jobs, p.total_s), (4, -13), color=colour(0))


def _monolithic(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the monolithic model's points, with how many times as long as the engine it takes."""
    for reached, marker, label in (
        (True, "s", "one Pyomo model in HiGHS"),
        (False, "^", "the same, stopped before the gap"),
    ):
        own = [p for p in points if p.reached is reached]
        if not own:
            continue
        jobs = [p.jobs for p in own]
        times = [p.baseline_s or 0.0 for p in own]
        line = "--" if reached else ""
        axes.plot(jobs, times, color=colour(1), marker=marker, linestyle=line, label=label)
        for p, seconds in zip(own, times, strict=True):
            more = "" if reached else "> "
            note = f"{_seconds(seconds)}, {more}{seconds / p.total_s:.0f}×"
            _note(axes, note, (p.jobs, seconds), (-5, 6), color=colour(1), ha="right")


def _note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[int, int], **look: str
) -> None:
    """Write beside a point, that many typographic points away."""
    axes.annotate(text, at, offset, textcoords="offset points", fontsize=8, **look)  # type: ignore[arg-type]


def _seconds(value: float) -> str:
    """Write seconds with two digits, or all that stand before the point."""
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"
