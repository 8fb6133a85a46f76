"""A compact encoding of a run: its nodes and jobs, bars, rounds and charts over time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ronda.bench.figures.beliefs import beliefs
from ronda.bench.figures.chart import Chart, time_axis
from ronda.bench.figures.gantt import away, bars, gantt_panel
from ronda.bench.figures.usage import gpus_panel, queue_panel, watts_panel
from ronda.bench.report.parts import coded, fine, floats, ticks
from ronda.bench.report.plotly import plotly
from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.outcome.usage import queue_of, usage_of
from ronda.instances.plan import gap_between
from ronda.instances.schedule import RoundRecord, Schedule

STEPS = 2000
"""The most steps of a series; a longer series becomes means over this many equal intervals."""

FATES = {
    "failed": "failed",
    "discarded": "given up",
    "unfinished": "unfinished",
    "time limit": "ended by its time limit",
    "dependency failed": "never run: a job before it failed",
    "completed": "complete",
}
"""The page's words for the state in which a job ended."""

Packed = dict[str, Any]
"""Data that the page's script unpacks."""


def workload_of(instance: Instance) -> Packed:
    """Return the data that runs of an instance share: its nodes and its jobs."""
    groups = [g for g in instance.cluster.node_groups for _ in range(g.count)]
    return {
        "nodes": [f"{k} · {group.name}" for k, group in enumerate(groups)],
        "gpus": [group.gpus_per_node for group in groups],
        "jobs": [job.id for job in instance.jobs],
        "submit": ticks((job.submit_s for job in instance.jobs), 0.1),
        "asked": [job.gpus for job in instance.jobs],
        "application": coded(job.profile for job in instance.jobs),
        "tenant": coded(job.partition for job in instance.jobs),
        "user": coded(job.user or "" for job in instance.jobs),
        "name": coded(job.name or "" for job in instance.jobs),
        "deadline": [job.deadline_s for job in instance.jobs],
    }


def run_of(instance: Instance, schedule: Schedule) -> Packed:
    """Return the data of a run; times are differences in ticks, floats have five digits."""
    tick_s = float(10.0 ** np.floor(np.log10(max(schedule.end_s, 1.0)) - 5.0))
    numbers = {id(s): k for k, s in enumerate(s for o in schedule.jobs for s in o.segments)}
    held = [(k, s) for k, outcome in enumerate(schedule.jobs) for s in outcome.segments]
    drawn = bars(instance, schedule)
    axis = time_axis(schedule.end_s)
    told = {"beliefs": plotly(beliefs(instance, {"": schedule}))} if schedule.forecasts else {}
    arrays = [s.array or "" for _, s in held]
    return {
        "time": (axis.unit, axis.title),
        "ends": [fine(outcome.end_s) for outcome in schedule.jobs],
        "fate": [FATES[outcome.state] for outcome in schedule.jobs],
        "segments": {
            "job": [job for job, _ in held],
            "start": ticks((s.start_s for _, s in held), tick_s),
            "resume": ticks((s.resume_s for _, s in held), tick_s),
            "end": ticks((s.end_s for _, s in held), tick_s),
            "gpus": [s.option.gpus for _, s in held],
            "clock": floats(s.option.clock for _, s in held),
            "batch": floats(s.option.batch for _, s in held),
            "power": floats(s.option.power_w for _, s in held),
            "array": coded(arrays) if any(arrays) else None,
        },
        "bars": {name: [getattr(bar, name) for bar in drawn] for name in ("node", "lane", "lanes")}
        | {"segment": [numbers[id(bar.segment)] for bar in drawn]},
        "failures": [[fine(f.time_s), f.job, f.node, fine(f.lost_s)] for f in schedule.failures],
        "over_time": _over_time(instance, schedule),
        "rounds": _rounds(schedule.rounds, tick_s),
    } | told


def _over_time(instance: Instance, schedule: Schedule) -> Packed:
    """Return a run's panels over time without Gantt bars, and the numbers that the page states."""
    use, end_s = usage_of(instance, schedule), schedule.end_s
    gpus, watts = (thinned(use.time_s, values, end_s) for values in (use.gpus, use.watts))
    queue = thinned(*queue_of(schedule), end_s)
    most_w = float(use.watts.max(initial=0.0))
    high = min(760, max(220, instance.cluster.gpus * 5))
    panels = [
        replace(gantt_panel(instance, [away(instance, schedule)], end_s), weight=high),
        replace(gpus_panel(instance, *gpus, end_s, axis="GPUs"), weight=96),
        replace(queue_panel(*queue, end_s), weight=96),
    ]
    if most_w:
        panels.append(replace(watts_panel(instance, *watts, end_s, 2, most_w), weight=96))
    height = sum(panel.weight for panel in panels) + 110
    traces, layout = plotly(Chart("", panels, one_x=True), STEPS + 1)
    means_s = end_s / STEPS if max(len(use.time_s), len(queue[0])) > STEPS + 1 else 0.0
    return {"chart": (traces, layout | {"height": height}), "most_w": most_w, "means_s": means_s}


def thinned(
    time_s: Floats, values: Floats, end_s: float, most: int = STEPS
) -> tuple[Floats, Floats]:
    """Return a step series up to `end_s` with at most `most` steps: means over equal intervals."""
    times = np.append(time_s, end_s)
    if len(time_s) > most:
        area = np.append(0.0, np.cumsum(values * np.diff(times)))
        edges = np.linspace(0.0, end_s, most + 1)
        times, values = edges, np.diff(np.interp(edges, times, area)) * most / end_s
    return times, np.append(values, values[-1:])


def _rounds(records: Sequence[RoundRecord], tick_s: float) -> Packed:
    names: dict[str, int] = {}
    prices = [
        [x for n, v in r.prices.items() for x in (names.setdefault(n, len(names)), fine(v, 4))]
        for r in records
    ]
    more = {
        k: {name: list(value) for name in _SPARSE if (value := getattr(record, name))}
        for k, record in enumerate(records)
        if any(getattr(record, name) for name in _SPARSE)
    }
    counts = {name: [getattr(r, name) for r in records] for name in _COUNTS}
    return counts | {
        "now": ticks((r.now_s for r in records), tick_s),
        "objective": floats(r.objective for r in records),
        "bound": floats(r.bound for r in records),
        "gap": [_gap(r) for r in records],
        "stop": coded(str(r.stop) for r in records),
        "status": coded(str(r.status) for r in records),
        "solve": floats(r.solve_s for r in records),
        "overhead": floats(r.overhead_s for r in records),
        "overrun": [k for k, r in enumerate(records) if r.overrun],
        "power": floats(r.power_w for r in records),
        "resources": list(names),
        "prices": prices,
        "more": more,
    }


_COUNTS = ("waiting", "running", "started", "stopped", "changed")
_SPARSE = ("violations", "slowed_jobs", "stopped_jobs", "restored_jobs", "pinned_jobs")


def _gap(record: RoundRecord) -> float | None:
    if record.objective is None or record.bound is None:
        return None
    return fine(gap_between(record.bound, record.objective), 3)
