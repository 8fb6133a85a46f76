"""The figures of a run and of a comparison; matplotlib without a display.

A run's figures take schedules of one instance by label, a panel or line for each. Every picture
has its numbers next to it as CSV.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ronda.bench.figures.beliefs import draw_beliefs
from ronda.bench.figures.gantt import draw_gantt
from ronda.bench.figures.style import look, new_figure, save, tidy
from ronda.bench.figures.usage import gpus_and_watts
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


def draw_run(instance: Instance, schedules: Mapping[str, Schedule], folder: Path) -> list[Path]:
    """Draw Gantt chart, use of GPUs and watts, JCT distribution, and beliefs where there are any.

    Returns the pictures.
    """
    draw_gantt(instance, schedules, folder / "gantt")
    gpus_and_watts(instance, schedules, folder / "usage")
    jct_distribution(instance, schedules, folder / "jct_cdf")
    names = ["gantt", "usage", "jct_cdf"]
    if any(schedule.forecasts for schedule in schedules.values()):
        draw_beliefs(instance, schedules, folder / "beliefs")
        names.append("beliefs")
    return [folder / f"{name}.png" for name in names]


def jct_distribution(instance: Instance, schedules: Mapping[str, Schedule], path: Path) -> None:
    """Draw the share of jobs that completed within a time, one line a policy."""
    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    rows = []
    for index, (label, schedule) in enumerate(schedules.items()):
        jct = np.sort(
            [o.end_s - o.submit_s for o in schedule.jobs if o.end_s is not None and not o.discarded]
        )
        said = f"mean {jct.mean():,.0f} s" if len(jct) else "no job ended"
        share = np.arange(len(jct) + 1) / max(len(schedule.jobs), 1)
        jct, share = np.append(jct[:1], jct), share[0 if len(jct) else 1 :]  # rises from 0
        axes.step(
            jct, share, where="post", **look(index, len(schedules)), label=f"{label} ({said})"
        )
        rows += [(label, *pair) for pair in zip(jct.tolist(), share.tolist(), strict=True)]
    positive = [row[1] for row in rows if row[1] > 0]
    if positive and max(positive) > 20 * min(positive):
        axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize=8, frameon=False, loc="lower right" if len(schedules) < 5 else "best")
    axes.set_title(f"{instance.name}: completion times", fontsize=11)
    tidy(axes, "job completion time (s)", "share of jobs", grid=True)
    save(figure, path, ("policy", "jct_s", "share"), rows)


def draw_comparison(
    instance: Instance, results: Sequence[Result], layout: Layout, folder: Path
) -> list[Path]:
    """Draw all figures of runs of one instance that ended, schedules of the first seeds only."""
    if not results:
        return []
    schedules: dict[str, Schedule] = {}
    for result in results:
        if result.label not in schedules:
            schedules[result.label] = layout.read(result.key, Schedule)
    return draw_run(instance, schedules, folder)
