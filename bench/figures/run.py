"""The figures of a run and of a comparison.

The figures of a run take schedules of one instance by label and show a panel or a line for each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ronda.bench.figures.beliefs import beliefs
from ronda.bench.figures.chart import Chart, distribution, within
from ronda.bench.figures.draw import save_chart
from ronda.bench.figures.gantt import gantt
from ronda.bench.figures.usage import usage
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


def draw_run(instance: Instance, schedules: Mapping[str, Schedule], folder: Path) -> list[Path]:
    """Draw the Gantt chart, the use of GPUs and watts, the JCTs and, if there are any, the beliefs.

    Return the paths of the pictures.
    """
    charts = {
        "gantt": gantt(instance, schedules),
        "usage": usage(instance, schedules),
        "jct_cdf": completion_times(instance, schedules),
    }
    if any(schedule.forecasts for schedule in schedules.values()):
        charts["beliefs"] = beliefs(instance, schedules)
    return [save_chart(chart, folder / name) for name, chart in charts.items()]


def completion_times(instance: Instance, schedules: Mapping[str, Schedule]) -> Chart:
    """Show the share of jobs that completed within a given time, one line per policy."""
    lines, rows = [], list[tuple[str, float, float]]()
    for index, (label, schedule) in enumerate(schedules.items()):
        jct_s = [
            o.end_s - o.submit_s for o in schedule.jobs if o.end_s is not None and not o.discarded
        ]
        said = f"mean {np.mean(jct_s):,.0f} s" if jct_s else "no job ended"
        lines.append(within(f"{label} ({said})", index, jct_s, len(schedule.jobs)))
        rows += [(label, x, y) for x, y in zip(lines[-1].x, lines[-1].y, strict=True)]
    return Chart(
        f"{instance.name}: completion times",
        [distribution(lines, "job completion time (s)", "share of jobs")],
        header=("policy", "jct_s", "share"),
        rows=rows,
    )


def draw_comparison(
    instance: Instance, results: Sequence[Result], layout: Layout, folder: Path
) -> list[Path]:
    """Draw all figures for finished runs of one instance; only each policy's first run is shown."""
    if not results:
        return []
    schedules: dict[str, Schedule] = {}
    for result in results:
        if result.label not in schedules:
            schedules[result.label] = layout.read(result.key, Schedule)
    return draw_run(instance, schedules, folder)
