"""GPUs and watts over time against the cluster's limits, and the GPUs that jobs want."""

from collections.abc import Mapping

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Numbers, Panel, time_axis
from ronda.instances.instance import Instance
from ronda.instances.outcome.usage import steps, usage_of
from ronda.instances.schedule import Schedule


def usage(instance: Instance, schedules: Mapping[str, Schedule]) -> Chart:
    """Show the GPUs in use and the cluster's power over time, against the cluster's limits."""
    found = {label: usage_of(instance, schedule) for label, schedule in schedules.items()}
    end_s = max(schedule.end_s for schedule in schedules.values())
    powered = any(series.watts.any() for series in found.values())
    most_w = max(float(series.watts.max(initial=0.0)) for series in found.values())
    panels = []
    for index, (label, series) in enumerate(found.items()):
        panels.append(gpus_panel(instance, series.time_s, series.gpus, end_s, index, label))
        if powered:
            panels.append(watts_panel(instance, series.time_s, series.watts, end_s, index, most_w))
    rows = (
        (label, *values)
        for label, s in found.items()
        for values in zip(s.time_s.tolist(), s.gpus.tolist(), s.watts.tolist(), strict=True)
    )
    return Chart(
        f"{instance.name}: use over time",
        panels,
        columns=1 + powered,
        inches=(11 if powered else 8, 1.7 * len(found) + 0.9),
        one_x=True,
        header=("policy", "time_s", "gpus", "watts"),
        rows=rows,
    )


def gpus_panel(
    instance: Instance,
    time_s: Numbers,
    gpus: Numbers,
    end_s: float,
    colour: int = 0,
    title: str = "",
    axis: str = "GPUs held",
) -> Panel:
    """Return the panel of GPUs over time, with a line at the number of GPUs in the cluster."""
    limit = Marks("rule", y=[instance.cluster.gpus], name="GPUs of the cluster", colour="ink")
    used = Marks("area", time_s, gpus, colour=colour, alpha=0.75, told="%{y:,.0f} GPUs")
    most = 1.08 * max(instance.cluster.gpus, float(np.max(gpus, initial=0.0)))
    return Panel([used, limit], time_axis(end_s), Axis(axis, ends=(0.0, most)), title, grid=False)


def queue_panel(time_s: Numbers, jobs: Numbers, end_s: float) -> Panel:
    """Return the panel of waiting jobs over time."""
    waits = Marks("area", time_s, jobs, colour=4, alpha=0.75, told="%{y:,.0f} jobs wait")
    return Panel([waits], time_axis(end_s), Axis("waiting", ends=(0.0, None)), grid=False)


def watts_panel(
    instance: Instance, time_s: Numbers, watts: Numbers, end_s: float, colour: int, most_w: float
) -> Panel:
    """Return the panel of watts over time, with lines at the limits that the instance sets."""
    marks = [Marks("area", time_s, watts, colour=colour, alpha=0.75, told="%{y:,.4g} kW")]
    cap, energy = instance.budget.power_cap_w, instance.budget.energy
    limits = [most_w]
    if cap is not None:
        x, y = (*cap.times_s, end_s), (*cap.values, cap.values[-1])
        marks.append(Marks("step", x, y, "power cap", "limit"))
        limits += y
    if energy is not None:
        name, even_w = "energy budget, if spent evenly", energy.sustained_w
        marks.append(Marks("rule", y=[even_w], name=name, colour="limit", dash="--"))
        limits.append(even_w)
    idle_w = instance.cluster.topology.idle_w
    name = "all nodes awake and idle"
    marks.append(Marks("rule", y=[idle_w], name=name, width=0.8, dash=":"))
    power = Axis("power (kW)", ends=(0.0, 1.08 * max(idle_w, *limits)), unit=1e3)
    return Panel(marks, time_axis(end_s), power, grid=False)


def demand(instance: Instance) -> Chart:
    """Show the GPUs that rigid jobs would hold over time if none waited, and the cluster's GPUs."""
    submit_s = np.array([job.submit_s for job in instance.jobs])
    wanted = np.array([job.gpus for job in instance.jobs], dtype=float)
    run_s = np.array([job.truth.work if job.truth else 0.0 for job in instance.jobs])
    times_s = np.concatenate([submit_s, submit_s + run_s])
    time_s, gpus = steps(times_s, np.concatenate([wanted, -wanted]))
    axis = "GPUs wanted, if none waited"
    return Chart(
        f"{instance.name}: {len(instance.jobs):,} jobs",
        [gpus_panel(instance, time_s, gpus, float(time_s[-1]), axis=axis)],
        inches=(8.0, 3.2),
        header=("time_s", "gpus"),
        rows=zip(time_s.tolist(), gpus.tolist(), strict=True),
    )
