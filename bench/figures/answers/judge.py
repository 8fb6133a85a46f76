"""The picture of a judged log: the causes of waiting by queue, and waiting as it grew."""

from collections.abc import Sequence
from typing import Any

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, named, time_axis
from ronda.questions.judge.judged import LOG, JudgedLog, JudgedQueue
from ronda.questions.judge.judgement import CAUSES, GAP, UNAVOIDABLE

HOUR = 3600.0
SHADES = ("#D55E00", "#E69F00", "#009E73", "#CC79A7", "grey", "#0072B2")
COLOURS = dict(zip(CAUSES, SHADES, strict=True))
"""Colours of causes: warm ones could be spared, grey is not decided, blue could not be."""

LINES = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#8C8C8C")
"""Colours of replays."""

MOST = 4
"""The most queues whose waiting is drawn over time."""


def judge(found: JudgedLog) -> Chart:
    """Show the causes of each queue's waiting as a bar, and below it waiting over time."""
    queues = [queue for queue in found.queues if queue.judgement.waited_s > 0]
    panels = [causes_panel(queues), *(waiting_panel(queue) for queue in queues[:MOST])]
    rows = [
        (queue.judgement.queue, cause.name, cause.wait_s / HOUR, cause.certain)
        for queue in queues
        for cause in queue.judgement.causes
    ]
    return Chart(
        f"{found.source}: what was waited for, and how little it could have been",
        panels,
        inches=(9.0, 1.6 + 0.4 * len(queues) + 3.0 * (len(panels) - 1)),
        header=("queue", "cause", "job_hours", "certain"),
        rows=rows,
    )


def causes_panel(queues: Sequence[JudgedQueue]) -> Panel:
    """Return a bar a queue; causes below zero stand to the left of it."""
    boxes = {name: list[tuple[float, float, float, float, str]]() for name in CAUSES}
    notes, names = dict[float, str](), list[str]()
    for k, told in enumerate(queue.judgement for queue in queues):
        ends = [0.0, 0.0]
        for cause in told.causes:
            if cause.name in boxes and cause.wait_s:
                start = ends[cause.wait_s < 0]
                ends[cause.wait_s < 0] = end = start + cause.wait_s / told.waited_s
                text = f"{cause.wait_s / HOUR:,.1f} job-hours"
                box = min(start, end), k - 0.35, max(start, end), k + 0.35, text
                boxes[cause.name].append(box)
        shares = [f"{100 * each / told.waited_s:.0f}" for each in told.hindsight]
        notes[k] = f"{'-'.join(dict.fromkeys(shares))} % in hindsight"
        names.append(f"{told.queue} ({told.waited_s / HOUR:,.1f} job-h)")
    marks = list[Marks]()
    for name, own in boxes.items():
        left, low, right, high, texts = zip(*own, strict=True) if own else ((),) * 5
        told_as: dict[str, Any] = {"told": f"{name}: " + "%{text}", "texts": texts}
        colour, hatch = COLOURS[name], name == GAP
        marks.append(Marks("boxes", left, low, name, colour, right, high, hatch=hatch, **told_as))
    x, title = Axis("share of the waiting", percent=True), "what each queue waited for"
    return Panel(marks, x, named(names), title, notes=notes, weight=1.0 + 0.4 * len(queues))


def waiting_panel(queue: JudgedQueue) -> Panel:
    """Return what was waited by each time, in the log and in replays, above the bound."""
    told = queue.judgement
    clock = [at_s - queue.clock_s[0] for at_s in queue.clock_s]
    marks = []
    for k, (name, waited_s) in enumerate(queue.waited_s.items()):
        thick, colour = (2.2, "ink") if name == LOG else (1.2, LINES[k % len(LINES)])
        marks.append(Marks("line", clock, waited_s, name, colour, width=thick))
    least = next(cause.wait_s for cause in told.causes if cause.name == UNAVOIDABLE)
    marks.append(Marks("rule", y=[least], name="no schedule ends below", colour="limit", dash="--"))
    title = f"{told.queue}: what had been waited by then"
    y = Axis("job-hours", ends=(0.0, None), unit=HOUR)
    return Panel(marks, time_axis(clock[-1]), y, title, weight=2.5)
