"""The picture of why a job waits: the room for it over time against what it needs."""

from math import inf

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, time_axis
from ronda.questions.why.answer import Why, room_over_time
from ronda.questions.why.proof import named
from ronda.questions.why.report import asks


def why(found: Why) -> Chart:
    """Show for how many of a job's pieces nodes and limits have room, until it starts."""
    waiting = found.waiting
    lines = list(room_over_time(waiting))
    starts = (found.start_s, found.replay.start_s)
    known = [at_s - waiting.now_s for at_s in starts if waiting.now_s < at_s < inf]
    last = 1.5 * max(known) if known else 24 * 3600.0
    need = float(waiting.job.count)
    limits = [line for line in lines[1:] if float(line[2].min()) < 4 * need]
    # The five limits with the least room hold the job back.
    kept = lines[:1] + sorted(limits, key=lambda line: float(line[2][0]))[:5]
    marks = [
        Marks(
            "step",
            np.append(times[times < last], last),
            np.append(room[times < last], room[times < last][-1]),
            "room on nodes" if name == "nodes" else named(name),
            k,
            width=1.8,
        )
        for k, (name, times, room) in enumerate(kept)
    ]
    marks.append(Marks("line", [0.0, last], [need, need], "needed", "limit", dash="--"))
    ends = (
        ("earliest start", found.start_s),
        (f"start by {found.replay.rule}", found.replay.start_s),
    )
    for k, (name, at_s) in reversed(list(enumerate(ends))):
        if at_s < inf:
            at = [at_s - waiting.now_s]
            marks.append(
                Marks("points", at, [need], name, "ink", symbol=k, size=7 + 4 * k, hollow=k > 0)
            )
    most = max([need, *(float(np.max(room[times < last])) for _, times, room in kept if len(room))])
    axis = Axis("pieces that there is room for", ends=(0.0, 1.1 * min(most, 4 * need)))
    return Chart(
        f"Job {waiting.job.id}: {asks(found)}",
        [Panel(marks, time_axis(last), axis, found.reason.text)],
        inches=(9.0, 4.2),
        header=("what", "seconds from now", "pieces"),
        rows=[
            (name, float(t), float(r))
            for name, times, room in kept
            for t, r in zip(times, room, strict=True)
        ],
    )
