"""The picture of a judged log: the causes of waiting by queue, and waiting as it grew."""

from collections.abc import Iterator, Sequence

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
        shares = [100 * each / queue.judgement.waited_s for each in queue.judgement.hindsight]
        notes[k] = f"{'-'.join(dict.fromkeys(f'{each:.0f}' for each in shares))} % in hindsight"
    title = "what each queue waited for"
    y = named(f"{q.judgement.queue} ({q.judgement.waited_s / HOUR:,.1f} job-h)" for q in queues)
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
    told = queue.judgement
    clock = [at_s - queue.clock_s[0] for at_s in queue.clock_s]
    marks = []
    for k, (name, waited_s) in enumerate(queue.waited_s.items()):
        thick, colour = (2.2, "ink") if name == LOG else (1.2, LINES[k % len(LINES)])
        marks.append(Marks("line", clock, waited_s, name, colour, width=thick))
    least = next(cause.wait_s for cause in told.causes if cause.name == UNAVOIDABLE)
    marks.append(Marks("rule", y=[least], name="no schedule ends below", colour="limit", dash="--"))
    title = f"{told.queue}: what had been waited by then"
    return Panel(
        marks,
        time_axis(clock[-1]),
        Axis("job-hours", ends=(0.0, None), unit=HOUR),
        title,
        weight=2.5,
    )
