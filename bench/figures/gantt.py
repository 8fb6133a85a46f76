"""The Gantt chart of a run: which job held which GPUs of which node."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

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
"""Height of a GPU's row over that from one to the next: what is left parts the nodes."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Neighbouring GPUs of one node that a segment held.

    `lane` is the first of the `lanes` GPUs. An array has one bar, with the name of its first job;
    `jobs` counts its members.
    """

    job: str
    jobs: int
    node: int
    lane: int
    lanes: int
    segment: Segment


def bars(instance: Instance, schedule: Schedule) -> list[Bar]:
    """Return what each segment holds on its nodes; which GPUs is a choice for the eye (`seats`)."""
    return [
        Bar(seat.jobs[0], len(seat.jobs), seat.node, *stretch, seat.segment)
        for seat in seats(instance.cluster, schedule)
        for stretch in _stretches(seat.gpus)
    ]


def _stretches(lanes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the (first, length) of each run of consecutive numbers in an ascending sequence."""
    start = 0
    for k in range(1, len(lanes) + 1):
        if k == len(lanes) or lanes[k] != lanes[k - 1] + 1:
            yield lanes[start], k - start
            start = k


class Box(NamedTuple):
    """Where a bar stands: from GPU `low` of the cluster to GPU `high`, between two times."""

    start_s: float
    low: float
    end_s: float
    high: float


def gantt(instance: Instance, schedules: Mapping[str, Schedule]) -> Chart:
    """Show which job held which GPUs of which node: one row a GPU, coloured by size of the job."""
    found = {label: bars(instance, schedule) for label, schedule in schedules.items()}
    end_s = max(schedule.end_s for schedule in schedules.values())
    base = bases(instance)
    sizes = sorted({_power(bar) for some in found.values() for bar in some})
    spread = (SIZES[k * (len(SIZES) - 1) // max(len(sizes) - 1, 1)] for k in range(len(sizes)))
    colours = dict(zip(sizes, spread, strict=True))

    def boxes(chosen: Sequence[Bar], name: str, colour: str, **how: bool) -> Marks:
        lows = [(bar.segment, base[bar.node] + ROW * bar.lane, ROW * bar.lanes) for bar in chosen]
        corners = (Box(s.start_s, low, s.end_s, low + high) for s, low, high in lows)
        return _boxes(corners, name, colour, **how)

    def panel(label: str, some: Sequence[Bar]) -> Panel:
        paused = [
            replace(bar, segment=msgspec.structs.replace(bar.segment, end_s=bar.segment.resume_s))
            for bar in some
            if bar.segment.resume_s > bar.segment.start_s
        ]
        marks = [
            away(instance, schedules[label]),
            *(boxes([b for b in some if _power(b) == k], _size(k), colours[k]) for k in sizes),
            boxes([bar for bar in some if bar.jobs > 1], "array of jobs", "#F2A900", hatch=True),
            boxes(paused, "starting or restarting", "#C8C8C8"),
        ]
        return gantt_panel(instance, [each for each in marks if len(each.x)], end_s, label)

    nodes, gpus = len(base) - 1, base[-1]
    high = min(max(1.6, 0.8 + 0.09 * nodes, 0.8 + 0.022 * gpus), 9.0)
    times = ("start_s", "resume_s", "end_s")
    return Chart(
        title=f"{instance.name}: GPUs of each node by size of the job",
        panels=[panel(label, some) for label, some in found.items()],
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
    """Return the panel of a Gantt chart, with a row for each GPU and the names of the nodes."""
    base, groups = bases(instance), instance.cluster.node_groups
    step = max(1, -(-(len(base) - 1) // 12))
    ticks = {(base[k] + base[k + 1]) / 2: str(k) for k in range(0, len(base) - 1, step)}
    notes, edges, first = {}, [], 0
    for group in groups if len(groups) > 1 else ():
        after = first + group.count
        notes[(base[first] + base[after]) / 2] = group.name
        edges += [Marks(kind="rule", y=[base[first]], width=0.6)] * bool(first)
        first = after
    node = Axis("node", ends=(0.0, float(base[-1])), ticks=ticks, down=True)
    return Panel(
        marks=[*marks, *edges], x=time_axis(end_s), y=node, title=title, grid=False, notes=notes
    )


def away(instance: Instance, schedule: Schedule) -> Marks:
    """Return where nodes sleep or are out of service, as boxes of a Gantt chart."""
    base, outages = bases(instance), instance.faults.outages
    times = [*schedule.sleeps, *((out.node, out.start_s, out.end_s) for out in outages)]
    found = (
        Box(
            start_s,
            base[node],
            min(end_s, schedule.end_s),
            base[node] + ROW * (base[node + 1] - base[node]),
        )
        for node, start_s, end_s in times
        if start_s < schedule.end_s
    )
    name = "node asleep or out of service" if outages else "node asleep"
    return _boxes(found, name, "#D6E6F5")


def bases(instance: Instance) -> list[int]:
    """Return the GPUs of the cluster before each node, and all of them."""
    found = [0]
    for gpus in instance.cluster.topology.node_gpus.tolist():
        found.append(found[-1] + gpus)
    return found


def _boxes(corners: Iterator[Box], name: str, colour: str, *, hatch: bool = False) -> Marks:
    columns = [*zip(*corners, strict=True)] or [()] * 4
    x, y, x_end, y_end = columns
    return Marks(
        kind="boxes", x=x, y=y, x_end=x_end, y_end=y_end, name=name, colour=colour, hatch=hatch
    )


def _size(power: int) -> str:
    size, low = 2**power, 2**power // 2 + 1
    return f"{size} GPU" if size == 1 else f"{size} GPUs" if low == size else f"{low}–{size} GPUs"
