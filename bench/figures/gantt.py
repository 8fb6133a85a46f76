"""The Gantt chart of a run: which job held which GPUs of which node."""

from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ronda.bench.figures.style import legend_below, new_figure, save, tidy, time_axis
from ronda.bench.figures.usage import Bar, bars
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule

PAUSE, SLEEP, ARRAY = "#C8C8C8", "#D6E6F5", "#F2A900"
HATCH = "//////"
ROW = 0.92
"""Height of a node's row; the rest is the gap to the next one."""

Colours = Mapping[int, NDArray[np.float64]]


def draw_gantt(instance: Instance, schedules: Mapping[str, Schedule], path: Path) -> None:
    """Draw which job held which GPUs of which node: one row a node, coloured by job size."""
    drawn = {label: bars(instance, schedule) for label, schedule in schedules.items()}
    nodes = len(instance.cluster.topology.node_gpus)
    sizes = sorted({_size_class(bar.gpus) for found in drawn.values() for bar in found})
    shades = colormaps["viridis"](np.linspace(0.0, 0.92, max(len(sizes), 1)))
    palette = dict(zip(sizes, shades, strict=False))
    end_s = max(schedule.end_s for schedule in schedules.values())
    panel = min(max(1.6, 0.8 + 0.09 * nodes, 0.8 + 0.022 * instance.cluster.gpus), 9.0)
    figure = new_figure(10, panel * len(drawn) + 0.6)
    panels = figure.subplots(len(drawn), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (label, found) in zip(panels, drawn.items(), strict=True):
        _sleeps(axes, schedules[label])
        _draw_bars(axes, instance, found, palette, end_s)
        _node_axis(axes, instance)
        axes.set_title(label, fontsize=10, loc="left")
        tidy(axes)
        axes.tick_params(labelbottom=axes is panels[-1])
    time_axis(panels[-1], end_s)
    keys = [Patch(color=palette[size], label=_size_label(size)) for size in sizes]
    if any(bar.resume_s > bar.start_s for found in drawn.values() for bar in found):
        keys.append(Patch(color=PAUSE, label="starting or restarting"))
    if any(schedule.sleeps for schedule in schedules.values()):
        keys.append(Patch(color=SLEEP, label="node asleep"))
    if any(bar.jobs > 1 for found in drawn.values() for bar in found):
        keys.append(Patch(facecolor="none", edgecolor=ARRAY, hatch=HATCH, label="array of jobs"))
    columns = len(keys) if len(keys) <= 8 else -(-len(keys) // 2)
    legend_below(figure, keys, columns)
    figure.suptitle(f"{instance.name}: GPUs of each node by size of the job", fontsize=11)
    times = ("start_s", "resume_s", "end_s")
    header = ("policy", "job", "jobs", "node", "first_gpu", "gpus_here", "gpus", *times)
    rows = ((label, *astuple(bar)) for label, found in drawn.items() for bar in found)
    save(figure, path, header, rows)


def _size_class(gpus: int) -> int:
    return 1 << (gpus - 1).bit_length()


def _size_label(size: int) -> str:
    low = size // 2 + 1
    return f"{size} GPU" if size == 1 else f"{size} GPUs" if low == size else f"{low}–{size} GPUs"


def _draw_bars(
    axes: Axes, instance: Instance, found: list[Bar], palette: Colours, end_s: float
) -> None:
    gpus = instance.cluster.topology.node_gpus
    corners, pauses, colours = [], [], []
    for bar in found:
        low = bar.node + ROW * bar.lane / gpus[bar.node]
        high = bar.node + ROW * (bar.lane + bar.lanes) / gpus[bar.node]
        corners.append(_rectangle(bar.start_s, bar.end_s, low, high))
        colours.append(palette[_size_class(bar.gpus)])
        if bar.resume_s > bar.start_s:
            pauses.append(_rectangle(bar.start_s, bar.resume_s, low, high))
    axes.add_collection(
        PolyCollection(
            corners,
            facecolors=colours,
            edgecolors="white",
            linewidths=_edges(found, gpus, end_s),
            rasterized=True,
        )
    )
    shared = [corner for corner, bar in zip(corners, found, strict=True) if bar.jobs > 1]
    axes.add_collection(
        PolyCollection(shared, facecolors="none", edgecolors=ARRAY, linewidths=0, hatch=HATCH)
    )
    axes.add_collection(PolyCollection(pauses, facecolors=PAUSE, linewidths=0))


def _edges(found: list[Bar], gpus: NDArray[np.int64], end_s: float) -> list[float]:
    """Return the width of each bar's white edge: none where it would hide a small bar."""
    shortest, thinnest = end_s / 300, len(gpus) / 250
    return [
        0.3 if b.end_s - b.start_s > shortest and b.lanes / gpus[b.node] > thinnest else 0.0
        for b in found
    ]


def _rectangle(left: float, right: float, low: float, high: float) -> list[tuple[float, float]]:
    return [(left, low), (right, low), (right, high), (left, high)]


def _sleeps(axes: Axes, schedule: Schedule) -> None:
    shapes = [_rectangle(start, end, node, node + ROW) for node, start, end in schedule.sleeps]
    axes.add_collection(PolyCollection(shapes, facecolors=SLEEP, linewidths=0))


def _node_axis(axes: Axes, instance: Instance) -> None:
    groups = instance.cluster.node_groups
    nodes = sum(group.count for group in groups)
    step = max(1, -(-nodes // 12))
    axes.set_yticks(
        [k + ROW / 2 for k in range(0, nodes, step)], [str(k) for k in range(0, nodes, step)]
    )
    axes.set_ylim(nodes, 0)
    axes.set_ylabel("node", fontsize=9)
    first = 0
    for group in groups if len(groups) > 1 else ():
        if first:
            axes.axhline(first, color="black", linewidth=0.6)
        axes.text(
            1.005,
            first + group.count / 2,
            group.name,
            fontsize=8,
            va="center",
            transform=axes.get_yaxis_transform(),
        )
        first += group.count
