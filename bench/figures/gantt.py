"""The Gantt chart of a run: which job held which GPUs of which node."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, time_axis
from ronda.instances.instance import Instance
from ronda.instances.outcome.held_gpus import seats
from ronda.instances.schedule import Schedule, Segment

SIZES = (
    *("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c"),
    *("#28ae80", "#5ec962", "#a0da39", "#d8e219"),
)
"""Colours of jobs by size, from the smallest to the largest (viridis)."""

ROW = 0.92
"""The height of a GPU's row as a share of its space; the rest of the space separates nodes."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Neighbouring GPUs of one node that a segment held.

    `lane` is the first of the `lanes` GPUs. An array has one bar that bears the name of its first
    job; `jobs` counts its members.
    """

    job: str
    jobs: int
    node: int
    lane: int
    lanes: int
    segment: Segment


def bars(instance: Instance, schedule: Schedule) -> list[Bar]:
    """Return the bars of each segment; the GPUs within a node are chosen for display (`seats`)."""
    return [
        Bar(seat.jobs[0], len(seat.jobs), seat.node, int(own[0]), len(own), seat.segment)
        for seat in seats(instance.cluster, schedule)
        for own in np.split(seat.gpus, np.flatnonzero(np.diff(seat.gpus) > 1) + 1)
        if len(own)
    ]


def gantt(instance: Instance, schedules: Mapping[str, Schedule]) -> Chart:
    """Show which job held which GPUs of each node: one row per GPU, coloured by size of the job."""
    found = {label: bars(instance, schedule) for label, schedule in schedules.items()}
    end_s = max(schedule.end_s for schedule in schedules.values())
    base = bases(instance)
    sizes = sorted({_power(bar) for some in found.values() for bar in some})
    spread = (SIZES[k * (len(SIZES) - 1) // max(len(sizes) - 1, 1)] for k in range(len(sizes)))
    colours = dict(zip(sizes, spread, strict=True))

    def boxes(chosen: Iterable[Bar], name: str, colour: str, **how: bool) -> Marks:
        lows = ((b.segment, base[b.node] + ROW * b.lane, ROW * b.lanes) for b in chosen)
        return _boxes(((s.start_s, s.end_s, *high) for s, *high in lows), name, colour, **how)

    def panel(label: str, some: Sequence[Bar]) -> Panel:
        ready = ((b, msgspec.structs.replace(b.segment, end_s=b.segment.resume_s)) for b in some)
        paused = (replace(b, segment=s) for b, s in ready if s.end_s > s.start_s)
        marks = [
            away(instance, schedules[label]),
            *(boxes((b for b in some if _power(b) == k), _size(k), colours[k]) for k in sizes),
            boxes((bar for bar in some if bar.jobs > 1), "array of jobs", "#F2A900", hatch=True),
            boxes(paused, "starting or restarting", "#C8C8C8"),
        ]
        return gantt_panel(instance, [each for each in marks if len(each.x)], end_s, label)

    nodes, gpus = len(base) - 1, base[-1]
    high = min(max(1.6, 0.8 + 0.09 * nodes, 0.8 + 0.022 * gpus), 9.0)
    times = ("start_s", "resume_s", "end_s")
    return Chart(
        f"{instance.name}: GPUs of each node by size of the job",
        [panel(label, some) for label, some in found.items()],
        inches=(10, high * len(found) + 0.6),
        one_x=True,
        header=("policy", "job", "jobs", "node", "first_gpu", "gpus_here", "gpus", *times),
        rows=(
            (
                *(label, b.job, b.jobs, b.node, b.lane, b.lanes, s.option.gpus),
                *(s.start_s, s.resume_s, s.end_s),
            )
            for label, some in found.items()
            for b in some
            for s in [b.segment]
        ),
    )


def _power(bar: Bar) -> int:
    """Return the least k such that a bar's segment has at most 2^k GPUs."""
    return (bar.segment.option.gpus - 1).bit_length()


def gantt_panel(instance: Instance, marks: Sequence[Marks], end_s: float, title: str = "") -> Panel:
    """Return the panel of a Gantt chart, with a row for each GPU and labels for the nodes."""
    base, groups = bases(instance), instance.cluster.node_groups
    step = max(1, -(-(len(base) - 1) // 12))
    ticks = {(base[k] + base[k + 1]) / 2: str(k) for k in range(0, len(base) - 1, step)}
    notes, edges, first = {}, [], 0
    for group in groups if len(groups) > 1 else ():
        after = first + group.count
        notes[(base[first] + base[after]) / 2] = group.name
        edges += [Marks("rule", y=[base[first]], width=0.6)] * bool(first)
        first = after
    node = Axis("node", ends=(0.0, float(base[-1])), ticks=ticks, down=True)
    return Panel([*marks, *edges], time_axis(end_s), node, title, grid=False, notes=notes)


def away(instance: Instance, schedule: Schedule) -> Marks:
    """Return boxes for a Gantt chart where nodes sleep or are out of service."""
    base, outages = bases(instance), instance.faults.outages
    times = [*schedule.sleeps, *((out.node, out.start_s, out.end_s) for out in outages)]
    found = (
        (start_s, min(end_s, schedule.end_s), base[k], ROW * (base[k + 1] - base[k]))
        for k, start_s, end_s in times
        if start_s < schedule.end_s
    )
    name = "node asleep or out of service" if outages else "node asleep"
    return replace(_boxes(found, name, "#78A0D2"), alpha=0.3)


def bases(instance: Instance) -> list[int]:
    """Return the number of GPUs on the nodes before each node, followed by the total."""
    return [0, *np.cumsum(instance.cluster.topology.node_gpus).tolist()]


def _boxes(
    corners: Iterable[tuple[float, ...]],
    name: str,
    colour: str,
    *,
    hatch: bool = False,
) -> Marks:
    """Return boxes; each has a start, an end, a number of GPUs above it, and a height in GPUs."""
    start, end, low, high = np.array([*corners]).reshape(-1, 4).T
    return Marks("boxes", start, low, name, colour, end, low + high, hatch=hatch)


def _size(power: int) -> str:
    size, low = 2**power, 2**power // 2 + 1
    return f"{size} GPU" if size == 1 else f"{size} GPUs" if low == size else f"{low}–{size} GPUs"
