"""The figure of GPUs and watts over time, against what the cluster has and the budget allows."""

from collections.abc import Mapping
from pathlib import Path

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
from ronda.bench.figures.usage import Usage, usage_of
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


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
