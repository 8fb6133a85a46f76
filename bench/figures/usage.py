"""What was used over time, as step series and bars of a Gantt chart, and what was wanted."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ronda.bench.figures.style import (
    BUDGET,
    colour,
    legend_below,
    new_figure,
    save,
    tidy,
    time_axis,
)
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Usage:
    """Step series (T,), from 0 to the schedule's end: a value holds until the next time.

    `gpus` are those that jobs hold, `watts` the power of the whole cluster.
    """

    time_s: Floats
    gpus: Floats
    watts: Floats


def usage_of(instance: Instance, schedule: Schedule) -> Usage:
    """Return GPUs and watts over time.

    A GPU draws its idle power unless its job progresses; then it draws its option's power. A
    sleeping node draws only its sleeping power.
    """
    topology = instance.cluster.topology
    idle_w = [pool.gpu_type.idle_w for pool in topology.pools]
    times, gpus, watts = [0.0, schedule.end_s], [0.0, 0.0], [topology.idle_w, 0.0]
    for outcome in schedule.jobs:
        for segment in outcome.segments:
            option = segment.option
            extra_w = option.power_w - option.own_gpus * idle_w[option.pool]
            times += [segment.start_s, segment.resume_s, segment.end_s, segment.end_s]
            gpus += [option.own_gpus, 0, -option.own_gpus, 0]
            watts += [0.0, extra_w, -extra_w, 0.0]
    saved_w = topology.awake_w - topology.sleep_w
    for node, start_s, end_s in schedule.sleeps:
        times += [start_s, end_s]
        gpus += [0, 0]
        watts += [-float(saved_w[node]), float(saved_w[node])]
    return Usage(*steps(np.array(times), np.array(gpus, float), np.array(watts)))


def steps(times: Floats, *changes: Floats) -> tuple[Floats, ...]:
    """Return the distinct times, ascending, and what each series is from each of them on.

    `times` (N,) are those of `changes` (N,).
    """
    order = np.argsort(times, kind="stable")
    sorted_times = times[order]
    last = np.append(np.diff(sorted_times) > 0, True)
    return sorted_times[last], *(np.cumsum(change[order])[last] for change in changes)


@dataclass(frozen=True, slots=True)
class Bar:
    """Neighbouring GPUs of one node that a segment held.

    `lane` is the first of the `lanes` GPUs; `gpus` counts all of the segment's GPUs on all nodes.
    Of an array there is one bar, with the name of its first job; `jobs` are its members.
    """

    job: str
    jobs: int
    node: int
    lane: int
    lanes: int
    gpus: int
    start_s: float
    resume_s: float
    end_s: float


def bars(instance: Instance, schedule: Schedule) -> list[Bar]:
    """Give every segment its lanes (GPUs) on its nodes, the lowest free ones first.

    A schedule says how many GPUs of a node a job holds, not which; this choice is for the eye
    only. Where a schedule holds more GPUs than a node has, the surplus is not drawn.
    """
    node_gpus = instance.cluster.topology.node_gpus
    free = [list(range(int(gpus))) for gpus in node_gpus]
    held: list[tuple[float, int, list[int]]] = []  # (end, node, lanes) by end
    segments = sorted(
        ((s, outcome.id) for outcome in schedule.jobs for s in outcome.segments),
        key=lambda pair: (pair[0].start_s, pair[1]),
    )
    found, arrays = [], set[object]()
    for segment, job in segments:
        if segment.array is not None:
            array = segment.array, segment.placement, segment.start_s, segment.end_s
            if array in arrays:
                continue
            arrays.add(array)
        while held and held[0][0] <= segment.start_s:
            _, node, lanes = heapq.heappop(held)
            for lane in lanes:
                heapq.heappush(free[node], lane)
        for node, gpus in segment.placement:
            lanes = [heapq.heappop(free[node]) for _ in range(min(gpus, len(free[node])))]
            heapq.heappush(held, (segment.end_s, node, lanes))
            times = (segment.start_s, segment.resume_s, segment.end_s)
            gpus, jobs = segment.option.gpus, segment.option.width
            found += [Bar(job, jobs, node, *stretch, gpus, *times) for stretch in _stretches(lanes)]
    return found


def _stretches(lanes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the (first, length) of each run of consecutive numbers in an ascending list."""
    start = 0
    for k in range(1, len(lanes) + 1):
        if k == len(lanes) or lanes[k] != lanes[k - 1] + 1:
            yield lanes[start], k - start
            start = k


def wanted(instance: Instance) -> tuple[Floats, ...]:
    """Return (n,) seconds, ascending, and (n,) the GPUs wanted from each on, without queueing."""
    submit_s = np.array([job.submit_s for job in instance.jobs])
    gpus = np.array([job.gpus for job in instance.jobs], dtype=float)
    run_s = np.array([job.truth.work if job.truth else 0.0 for job in instance.jobs])
    return steps(np.concatenate([submit_s, submit_s + run_s]), np.concatenate([gpus, -gpus]))


def draw_wanted(instance: Instance, path: Path) -> None:
    """Draw the GPUs that rigid jobs want over time, and those of the cluster."""
    if path.suffix not in {".png", ".svg"}:
        raise InputError(str(path), "another suffix", ".png or .svg")
    seconds, gpus = wanted(instance)
    figure = new_figure(8.0, 3.2)
    axes = figure.subplots()
    axes.fill_between(seconds / 86400, gpus, step="post", color=colour(0), alpha=0.5, linewidth=0)
    axes.axhline(instance.cluster.gpus, color=BUDGET, linewidth=1.2)
    axes.annotate(
        f"{instance.cluster.gpus:,} GPUs",
        (1.0, instance.cluster.gpus),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=8,
        color=BUDGET,
    )
    axes.set_ylim(0)
    axes.set_xlim(0, seconds[-1] / 86400)
    tidy(axes, "days", "GPUs wanted, if none waited")
    axes.set_title(f"{instance.name}: {len(instance.jobs):,} jobs", fontsize=10)
    rows = list(zip(seconds.tolist(), gpus.tolist(), strict=True))
    save(figure, path, ("time_s", "gpus"), rows, svg=path.suffix == ".svg")


def gpus_and_watts(instance: Instance, schedules: Mapping[str, Schedule], path: Path) -> None:
    """Draw GPUs in use and the cluster's power over time against what it has."""
    found = {label: usage_of(instance, schedule) for label, schedule in schedules.items()}
    end_s = max(schedule.end_s for schedule in schedules.values())
    power = any(series.watts.any() for series in found.values())
    figure = new_figure(11 if power else 8, 1.7 * len(found) + 0.9)
    panels = figure.subplots(
        len(found), 2 if power else 1, squeeze=False, sharex=True, sharey="col"
    )
    for index, (row, (label, series)) in enumerate(zip(panels, found.items(), strict=True)):
        _gpu_panel(row[0], instance, series, colour(index))
        row[0].set_title(label, fontsize=10, loc="left")
        if power:
            _watt_panel(row[1], instance, series, colour(index), end_s)
    for axes in panels[-1]:
        time_axis(axes, end_s)
    for axes in panels.flat:
        tidy(axes)
    shown = [axes.get_legend_handles_labels()[0] for axes in panels[0]]
    legend_below(figure, [handle for handles in shown for handle in handles])
    figure.suptitle(f"{instance.name}: use over time", fontsize=11)
    rows = (
        (label, *values)
        for label, s in found.items()
        for values in zip(s.time_s.tolist(), s.gpus.tolist(), s.watts.tolist(), strict=True)
    )
    save(figure, path, ("policy", "time_s", "gpus", "watts"), rows)


def _gpu_panel(axes: Axes, instance: Instance, series: Usage, shade: str) -> None:
    axes.fill_between(series.time_s, series.gpus, step="post", color=shade, alpha=0.75, linewidth=0)
    axes.axhline(instance.cluster.gpus, color="black", linewidth=1, label="GPUs of the cluster")
    axes.set_ylim(0, instance.cluster.gpus * 1.08)
    axes.set_ylabel("GPUs held", fontsize=9)


def _watt_panel(axes: Axes, instance: Instance, series: Usage, shade: str, end_s: float) -> None:
    kilo = series.watts / 1e3
    axes.fill_between(series.time_s, kilo, step="post", color=shade, alpha=0.75, linewidth=0)
    cap, energy = instance.budget.power_cap_w, instance.budget.energy
    if cap is not None:
        values = [w / 1e3 for w in cap.values]
        axes.step(
            (*cap.times_s, end_s),
            (*values, values[-1]),
            where="post",
            color=BUDGET,
            linewidth=1.2,
            label="power cap",
        )
    if energy is not None:
        axes.axhline(
            energy.sustained_w / 1e3,
            color=BUDGET,
            linewidth=1.2,
            linestyle="--",
            label="energy budget, if spent evenly",
        )
    axes.axhline(
        instance.cluster.topology.idle_w / 1e3,
        color="black",
        linewidth=0.8,
        linestyle=":",
        label="all nodes awake and idle",
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("power (kW)", fontsize=9)
