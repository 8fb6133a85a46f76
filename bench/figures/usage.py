"""What was used over time, as pictures and as bars of a Gantt chart, and what was wanted."""

from collections.abc import Iterator, Mapping, Sequence
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
from ronda.instances.outcome.held_gpus import seats
from ronda.instances.outcome.usage import Usage, steps, usage_of
from ronda.instances.schedule import Schedule


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
    """Return what each segment holds on its nodes; which GPUs is a choice for the eye (`seats`)."""
    return [
        Bar(
            seat.jobs[0],
            len(seat.jobs),
            seat.node,
            *stretch,
            seat.segment.option.gpus,
            seat.segment.start_s,
            seat.segment.resume_s,
            seat.segment.end_s,
        )
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
