"""Readers of a demand series (nodes in use and in total) from a CSV file or a schedule."""

from collections import defaultdict
from math import ceil
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.rules.problem import limits
from ronda.instances.schedule import Schedule
from ronda.instances.traces.table import read_columns, refuse, to_number
from ronda.instances.traces.text import dates

_ALIASES = {
    "time": ("time", "date"),
    "needed": ("needed", "running"),
    "total": ("total",),
    "forecast": ("forecast", "pred"),
    "active": ("active",),
}


def read_demand(path: str | Path, *, name: str | None = None) -> Demand:
    """Read a series in equal steps with columns ``time`` (ISO), ``needed`` and ``total`` (nodes).

    The headers of Helios's artifact (``running``, ``pred``) are also accepted. The columns
    ``forecast`` and ``active`` are optional. Without a `name` the series is named after the file.

    Raises
    ------
    InputError
        If a row has an invalid date or number of nodes, or is out of step; it names file and row.
    """
    import pandas as pd

    frame = read_columns(path, _ALIASES, ("forecast", "active"), kind="step")
    columns: dict[str, tuple[int, ...]] = {}
    for column, header in frame.attrs["headers"].items():
        if column != "time":
            values = to_number(path, frame, column, header).to_numpy()
            refuse(path, frame, (values < 0) | (values % 1 != 0), column, "whole nodes", header)
            refuse(path, frame, values > limits().nodes, column, limits().at_most("nodes"), header)
            columns[column] = tuple(int(value) for value in values)
    for column in {"needed", "active"}.intersection(columns):
        above = np.array(columns[column]) > np.array(columns["total"])
        refuse(path, frame, above, column, "at most the total", frame.attrs["headers"][column])
    time_s = dates(frame.time, ZoneInfo("UTC"))
    refuse(path, frame, time_s.isna().to_numpy(), "time", "a date and time as 2020-09-01 00:10:00")
    if len(frame) < 2:
        raise InputError(str(path), "1 row", "at least two: they tell the length of a step")
    passed_s = (time_s - time_s.iloc[0]).to_numpy()
    step_s = float(pd.Series(np.diff(passed_s)).mode()[0])  # the most frequent step
    even = np.isclose(passed_s, step_s * np.arange(len(frame)), atol=1e-3)
    refuse(path, frame, ~even | (step_s <= 0), "time", f"steps of {step_s:g} s, ascending")
    start = pd.Timestamp(frame.time.iloc[0].strip()).isoformat()
    return Demand(
        name=name or Path(path).stem,
        start=start,
        step_s=step_s,
        needed=columns["needed"],
        total=columns["total"],
        forecast=columns.get("forecast", ()),
        active=columns.get("active", ()),
    )


def demand_of(instance: Instance, schedule: Schedule, *, step_s: float = 600.0) -> Demand:
    """Return the peak number of nodes that a schedule used in each step of `step_s` seconds.

    Instances are assumed to begin at midnight.
    """
    nodes = sum(group.count for group in instance.cluster.node_groups)
    steps = max(1, ceil(schedule.end_s / step_s))
    changes: dict[float, list[tuple[int, int]]] = defaultdict(list)
    for job in schedule.jobs:
        for segment in job.segments:
            for node, _ in segment.placement:
                changes[segment.start_s].append((node, 1))
                changes[segment.end_s].append((node, -1))
    needed, on = np.zeros(steps, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    since_s, busy = 0.0, 0
    for time_s in [*sorted(changes), schedule.end_s]:
        if time_s > since_s:
            span = slice(int(since_s // step_s), ceil(time_s / step_s))
            needed[span] = np.maximum(needed[span], busy)
        for node, more in changes.get(time_s, ()):
            on[node] += more
        since_s, busy = time_s, int((on > 0).sum())
    return Demand(
        name=f"{instance.name}-{schedule.policy}",
        start="2020-01-01T00:00:00",
        step_s=step_s,
        needed=tuple(needed.tolist()),
        total=(nodes,) * steps,
        description=f"Nodes that {schedule.policy} used on {instance.name}",
        source=instance.source,
        licence=instance.licence,
        citation=instance.citation,
        made={"instance": schedule.fingerprint, "policy": schedule.policy, "seed": schedule.seed},
    )
