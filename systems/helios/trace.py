"""A demand series from a CSV file: nodes in use, and how many there are, by time."""

from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import limits
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
    """Read a series in equal steps: ``time`` (ISO), ``needed`` and ``total`` nodes.

    The headers of Helios's artifact (``running``, ``pred``) are understood as well; ``forecast``
    and ``active`` may be missing. The series is called like the file if it has no name.

    Raises
    ------
    InputError
        Naming file and row, for what is no date, no number of nodes, or out of step.
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
    step_s = float(pd.Series(np.diff(passed_s)).mode()[0])  # the most frequent one
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
