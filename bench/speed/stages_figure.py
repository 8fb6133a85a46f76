"""The figure of stages: what each takes of a whole decision, against jobs."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from matplotlib.ticker import FuncFormatter, NullLocator

from ronda.bench.figures.style import colour, new_figure, save_picture, tidy
from ronda.bench.speed.growth import read_lines
from ronda.instances.base import Count, Positive

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


class Stages(msgspec.Struct):
    """What the figure needs of a line that the case `stages` printed: seconds."""

    jobs: Count
    total_s: Positive
    options_s: Positive
    values_s: Positive
    arrays_s: Positive
    engine_s: Positive
    placement_s: Positive
    check_s: Positive


def read_stages(path: Path) -> list[Stages]:
    """Return the whole decisions in a results file, by number of jobs."""
    return sorted(read_lines(path, "stages", Stages), key=lambda found: found.jobs)


def draw_stages(found: Sequence[Stages], path: Path) -> None:
    """Draw the seconds of every stage against jobs as PNG, both logarithmic."""
    figure = new_figure(7.2, 4.6)
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    jobs = [one.jobs for one in found]
    for number, (stage, label) in enumerate(STAGES.items()):
        seconds = [getattr(one, stage) for one in found]
        look = {"lw": 2.2, "color": "0.15"} if not number else {"color": colour(number - 1)}
        axes.plot(jobs, seconds, marker="o", ms=4, label=label, **look)
    axes.set_xticks(jobs)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_title("From a round to a checked plan, stage by stage", fontsize=11)
    axes.legend(fontsize=8.5, frameon=False, loc="upper left")
    tidy(axes, "jobs (some 37 options each)", "seconds of processor time, one thread", grid=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(figure, path)
