"""A record beside its replays: jobs that wait over time, and how far starts are off."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, thinner, time_axis, within
from ronda.instances.base import Floats
from ronda.instances.outcome.usage import queue_of
from ronda.instances.schedule import RECORDED, Schedule

TICKS = {1.0: "≤ 1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min"}
TICKS |= {3600.0: "1 h", 36_000.0: "10 h", 86_400.0: "1 d", 864_000.0: "10 d"}

LEAST_S = 1.0
"""The difference of starts at which the axis of differences begins: the clock of most logs."""


def calibration(found: Sequence[tuple[str, Mapping[str, Schedule], Mapping[str, Floats]]]) -> Chart:
    """Show for each log the waiting jobs over time, and the share of jobs with a start as close.

    `found` has a log's name, its schedules by policy with that of the log itself, and how far the
    starts of each policy are off, in seconds.
    """
    panels, rows = list[Panel](), list[tuple[object, ...]]()
    for name, schedules, off_s in found:
        end_s = max(schedule.end_s for schedule in schedules.values())
        queues, lines = list[Marks](), list[Marks]()
        for k, (label, schedule) in enumerate(schedules.items()):
            time_s, jobs = queue_of(schedule)
            if label == RECORDED:
                queues.append(Marks("area", time_s, jobs, RECORDED, "grey", alpha=0.45))
                continue
            width = thinner(k, len(schedules))
            queues.append(Marks("step", time_s, jobs, label, k - 1, width=width))
            off = np.sort(np.maximum(np.abs(off_s[label]), LEAST_S))
            lines.append(replace(within(label, k - 1, off, len(off)), width=width))
            rows += [(name, label, second) for second in off.tolist()]
        wait = Axis("jobs", ends=(0.0, None))
        panels.append(Panel(queues, time_axis(end_s), wait, f"{name}: jobs that wait"))
        apart = Axis("a start is off by at most", "log", ends=(LEAST_S, None), ticks=TICKS)
        share = Axis("share of jobs", ends=(0.0, 1.02), percent=True)
        panels.append(Panel(lines, apart, share, f"{name}: starts against the record"))
    return Chart(
        "What a log tells of, and the same jobs under a rule",
        panels,
        columns=2,
        inches=(11.0, 2.7 * len(found) + 0.7),
        header=("log", "policy", "start_off_s"),
        rows=rows,
    )
