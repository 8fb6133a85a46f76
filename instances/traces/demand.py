"""A demand series from a CSV file: nodes in use, and how many there are, by time."""

from pathlib import Path

import numpy as np
import pandas as pd

from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.traces.table import read_columns, refuse, to_number

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
    frame = read_columns(path, _ALIASES, ("forecast", "active"), kind="step")
    columns: dict[str, tuple[int, ...]] = {}
    for column, header in frame.attrs["headers"].items():
        if column != "time":
            values = to_number(path, frame, column, header).to_numpy()
            refuse(path, frame, (values < 0) | (values % 1 != 0), column, "whole nodes", header)
            columns[column] = tuple(int(value) for value in values)
    times = pd.to_datetime(frame.time, errors="coerce")
    refuse(path, frame, times.isna().to_numpy(), "time", "a date and time")
    if len(frame) < 2:
        raise InputError(str(path), "1 row", "at least two: they tell the length of a step")
    passed_s = (times - times.iloc[0]).dt.total_seconds().to_numpy()
    step_s = float(passed_s[1])
    even = np.isclose(passed_s, step_s * np.arange(len(frame)), atol=1e-3)
    refuse(path, frame, ~even | (step_s <= 0), "time", f"steps of {step_s:g} s, ascending")
    start = times.iloc[0].isoformat()
    return Demand(
        name=name or Path(path).stem,
        start=start,
        step_s=step_s,
        needed=columns["needed"],
        total=columns["total"],
        forecast=columns.get("forecast", ()),
        active=columns.get("active", ()),
    )
