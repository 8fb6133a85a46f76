"""The picture of a judged log: the causes of waiting by queue, and waiting as it grew."""

from collections.abc import Iterator, Sequence

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, named
from ronda.questions.judge.judged import LOG, JudgedLog, JudgedQueue
from ronda.questions.judge.judgement import CAUSES, GAP, UNAVOIDABLE

HOUR = 3600.0
SHADES = ("#D55E00", "#E69F00", "#009E73", "#CC79A7", "grey", "#0072B2")
COLOURS = dict(zip(CAUSES, SHADES, strict=True))
"""Colours of causes: warm ones could be spared, grey is not decided, blue could not be."""

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
    marks, notes = list[Marks](), dict[float, str]()
    for name in CAUSES:
        boxes = [box for k, queue in enumerate(queues) for box in _box(k, queue, name)]
        left, right, low, high, texts = zip(*boxes, strict=True) if boxes else ((),) * 5
        words = f"{name}: " + "%{text}"
        marks.append(
            Marks(
                "boxes",
                left,
                low,
                name,
                COLOURS[name],
                right,
                high,
                hatch=name == GAP,
                told=words,
                texts=texts,
            )
        )
    for k, queue in enumerate(queues):
        waited_s, (low_s, high_s) = queue.judgement.waited_s, queue.judgement.hindsight
        notes[k] = f"{100 * low_s / waited_s:.0f}-{100 * high_s / waited_s:.0f} % avoidable"
    title = "what each queue waited for"
    y = named(f"{q.judgement.queue} ({q.judgement.waited_s / HOUR:,.0f} job-h)" for q in queues)
    return Panel(
        marks,
        Axis("share of the waiting", percent=True),
        y,
        title,
        notes=notes,
        weight=1.0 + 0.4 * len(queues),
    )


def _box(
    place: int, queue: JudgedQueue, name: str
) -> Iterator[tuple[float, float, float, float, str]]:
    """Yield the box of a cause: left, right, low, high and its text."""
    told = queue.judgement
    before = [c.wait_s for c in told.causes if c.name in CAUSES]
    at = CAUSES.index(name)
    wait_s = before[at]
    start = sum(other for other in before[:at] if (other < 0) == (wait_s < 0))
    left, right = sorted((start / told.waited_s, (start + wait_s) / told.waited_s))
    if wait_s:
        yield left, right, place - 0.35, place + 0.35, f"{wait_s / HOUR:,.1f} job-hours"


def waiting_panel(queue: JudgedQueue) -> Panel:
    """Return what was waited by each time, in the log and in replays, above the bound."""
    told, clock = queue.judgement, queue.clock_s
    best = told.best
    names = [LOG, *(name for name in queue.waited_s if name != LOG)]
    unit = Axis("hours of the log", unit=HOUR)
    marks = []
    for k, name in enumerate(names):
        thick = 2.2 if name == LOG else 1.2
        colour = "ink" if name == LOG else 4 + k
        label = f"{name} (best of all replays)" if name == best.name else name
        marks.append(Marks("line", clock, queue.waited_s[name], label, colour, width=thick))
    least = next(cause.wait_s for cause in told.causes if cause.name == UNAVOIDABLE)
    marks.append(Marks("rule", y=[least], name="no schedule ends below", colour="limit", dash="--"))
    title = f"{told.queue}: what had been waited by then"
    return Panel(marks, unit, Axis("job-hours", ends=(0.0, None), unit=HOUR), title, weight=2.5)
