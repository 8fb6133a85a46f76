"""The figures of speed: time against jobs, of the engine and of one model, and of stages."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.bench.figures.draw import colour, drawn, save_picture
from ronda.instances.errors import InputError
from ronda.instances.files.storage import read_bytes
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
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
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
    jobs, total_s = [p["jobs"] for p in points], [p["total_s"] for p in points]
    straight = [total_s[-1] * n / jobs[-1] for n in jobs]
    marks = [
        Marks("line", jobs, straight, "proportional to jobs", "grey", dash=":"),
        Marks("line", jobs, total_s, "price engine", 0, symbol=0),
    ]
    measured = [p for p in points if p["baseline_s"]]
    notes = [(f"{seconds(y)} s", (x, y), 0) for x, y in zip(jobs, total_s, strict=True)]
    for stopped, dash, symbol, name in (
        (False, "--", 1, "one Pyomo model in HiGHS"),
        (True, "", 2, "the same, stopped before the gap"),
    ):
        own = [p for p in measured if (p["baseline_stop"] == "time_limit") is stopped]
        at = [p["jobs"] for p in own], [p["baseline_s"] for p in own]
        marks.append(Marks("line", *at, name, 1, symbol=symbol, dash=dash))
        for p in own:
            ratio = f"{'> ' * stopped}{p['baseline_s'] / p['total_s']:.0f}×"
            notes.append(
                (f"{seconds(p['baseline_s'])} s, {ratio}", (p["jobs"], p["baseline_s"]), 1)
            )
    all_s = total_s + [p["baseline_s"] for p in measured]
    gaps = " or ".join(f"{gap:g}" for gap in sorted({p["gap_asked"] for p in points}))
    size = "jobs (56 options each, 2 GPUs a job; 1 GPU a job at 64)"
    x = Axis(size, "log2", (jobs[0] / 3.5, jobs[-1] * 2.2), {n: f"{n:,}" for n in jobs})
    y = Axis("seconds, building and solving", "log", (min(all_s) / 2.5, max(all_s) * 3))
    title = f"Time to a relative gap of {gaps} on the reference round, one thread"
    figure = drawn(Chart(title, [Panel(marks, x, y)], inches=(7.2, 4.9)))
    for text, at, index in notes:
        away, side = ((4, -13), "left") if index == 0 else ((-5, 6), "right")
        how: dict[str, Any] = {"color": colour(index), "fontsize": 8, "ha": side}
        figure.axes[0].annotate(text, at, away, textcoords="offset points", **how)
    save_picture(figure, out)


def draw_stages(results: Path, out: Path) -> None:
    """Draw the seconds of every stage of a decision against jobs, both logarithmic, as PNG."""
    lines = read_lines(results, "stages")
    jobs = [line["jobs"] for line in lines]
    marks = [
        Marks("line", jobs, [line[stage] for line in lines], label, k, symbol="o", size=4)
        for k, (stage, label) in enumerate(STAGES.items(), -1)
    ]
    marks[0] = replace(marks[0], colour="ink", width=2.2)
    x = Axis("jobs (some 37 options each)", "log2", ticks={n: f"{n:,}" for n in jobs})
    y = Axis("seconds of processor time, one thread", "log")
    title = "From a round to a checked plan, stage by stage"
    save_picture(drawn(Chart(title, [Panel(marks, x, y)], inches=(7.2, 4.9))), out)
