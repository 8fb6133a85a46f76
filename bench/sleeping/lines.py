"""The results of sleep controllers on a series, as a report and as pictures.

The pictures are nodes awake against nodes needed, the fan of forecasts, and sleep by day.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.instances.base import Floats, Ints
from ronda.instances.demand import DAY_S, Demand
from ronda.instances.models.power import NodeDraw
from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Report, Table
from ronda.systems.helios.ces import WARM_UP
from ronda.systems.helios.controllers import Control, controller
from ronda.systems.helios.forecasts import DemandForecast, steps_of_day
from ronda.systems.helios.outcome import SleepOutcome, outcome

KNOWS = {
    "oracle": "the future",
    "leaking": "some of the future",
    "history": "the past",
    "none": "the present",
}

CHANGES = (
    *("changes_per_day", "mean_change_nodes", "median_change_nodes"),
    *("waiting_intervals", "waiting_node_s", "saved_j"),
)
"""The figures in the second table."""


@dataclass(frozen=True, slots=True)
class ControllerLine:
    """A controller as written, its decisions, and their outcome."""

    policy: str
    control: Control
    outcome: SleepOutcome


def line_of(series: Demand, policy: str, draw: NodeDraw) -> ControllerLine:
    """Let a controller decide every step of a series, and return its line."""
    control = controller(policy).control(series)
    return ControllerLine(policy, control, outcome(series, control.active, draw))


def sleep_report(series: Demand, lines: Sequence[ControllerLine], draw: NodeDraw) -> Report:
    """Return tables of sleep and lack, and of changes, waiting and energy, by controller."""
    records: list[dict[str, Any]] = [
        {"series": series.name, "policy": line.policy, "knowledge": line.control.knowledge}
        | asdict(line.outcome)
        for line in lines
    ]
    sleep = (
        {
            "policy": line.policy,
            "knows": KNOWS[line.control.knowledge],
            "sleeping nodes": f"{line.outcome.mean_sleeping_nodes:.2f}",
            "wake-ups/day": f"{line.outcome.wakeups_per_day:.2f}",
            "nodes each": f"{line.outcome.nodes_per_wakeup:.2f}",
            "used %": percent(line.outcome.utilisation_before),
            "of awake %": percent(line.outcome.utilisation_after),
            "lack steps": f"{line.outcome.lack_intervals:,}",
            "lack nodes": f"{line.outcome.lack_node_intervals:,}",
        }
        for line in lines
    )
    changes = (
        {
            "policy": line.policy,
            "changes/day": f"{line.outcome.changes_per_day:.2f}",
            "mean change": f"{line.outcome.mean_change_nodes:.2f}",
            "median change": f"{line.outcome.median_change_nodes:g}",
            "waiting steps": f"{line.outcome.waiting_intervals:,}",
            "waiting node-min": f"{line.outcome.waiting_node_s / 60:,.0f}",
            "saved kWh/day": f"{line.outcome.saved_j / 3.6e6 / series.days:,.0f}",
        }
        for line in lines
    )
    first = Table.of(
        f"{series.name}: {series.days:g} days of {max(series.total)} nodes",
        sleep,
        ["lack: steps at whose start too few nodes were awake, and how many were missing"],
        ({n: v for n, v in each.items() if n not in CHANGES} for each in records),
    )
    second = Table.of(
        "changes, waiting, energy",
        changes,
        (
            f"waiting: if a node takes {draw.wake_s:g} s to wake",
            f"assumed: a node draws {draw.idle_w:g} W idle, {draw.sleep_w:g} W asleep, "
            f"{draw.wake_w:g} W while it wakes; cooling is not counted",
        ),
        ({n: each[n] for n in ("policy", *CHANGES)} for each in records),
    )
    several = {"series": series.name, "results": records}
    return Report(records[0] if len(lines) == 1 else several, [first, second])


def nodes(series: Demand, lines: Sequence[ControllerLine]) -> Chart:
    """Show a panel per controller with needed, awake and all nodes, and a mark for each wake-up."""
    days = np.arange(len(series.needed), dtype=np.float64) * (series.step_s / DAY_S)
    low = max(0, min(series.needed) - 8)
    high = low + 1.05 * (max(series.total) - low)
    x, y = Axis("days", ends=(0, series.days)), Axis("nodes", ends=(low, high))
    base = [low] * len(days)
    needed = Marks("area", days, series.needed_nodes, "needed", "#BBBBBB", y_end=base)
    every = Marks("step", days, series.total_nodes, "all", width=0.7)
    panels = []
    for index, line in enumerate(lines):
        awake = Marks("step", days, line.control.active, colour=index, width=1.1)
        at = days[_wakes(line.control.active)]
        wakes = Marks("points", at, [low + 2] * len(at), colour=index, symbol="|")
        marks = [needed, awake, every, *[wakes] * (len(at) <= 200)]
        slept = f"{line.outcome.mean_sleeping_nodes:.1f} asleep"
        woken = f"{line.outcome.wakeups_per_day:.2f} wake-ups a day"
        said = f"{line.policy}, knows {KNOWS[line.control.knowledge]}: {slept}, {woken}"
        panels.append(Panel(marks, x, y, said, grid=False))
    columns = {"day": days, "needed": series.needed_nodes, "total": series.total_nodes}
    columns |= {line.policy: line.control.active for line in lines}
    return Chart(
        f"{series.name}: nodes awake (coloured); marks: wake-ups; axes begin at {low}",
        panels,
        inches=(11, 0.9 + 1.7 * len(lines)),
        one_x=True,
        header=list(columns),
        rows=zip(*(values.tolist() for values in columns.values()), strict=True),
    )


def fan(series: Demand, forecast: DemandForecast) -> Chart | None:
    """Show forecasts of the next day at four times, by quantile level, and the actual demand.

    Return None if the series is too short.
    """
    day = steps_of_day(series)
    last = len(series.needed) - day - 1
    if last <= forecast.first:
        return None
    spread = np.linspace(max(forecast.first, min(2 * day, last)), last, 4).astype(int)
    origins = np.unique(np.minimum(spread // day * day + 9 * day // 24, last)).tolist()
    paths = forecast.paths(day)
    hours = np.arange(1, day + 1) * series.step_s / 3600
    ahead = Axis("hours ahead", ticks={float(hour): str(hour) for hour in range(0, 25, 6)})
    foretold = {origin: series.needed[origin] + paths[:, origin] for origin in origins}
    came = {origin: series.needed_nodes[origin + 1 : origin + 1 + day] for origin in origins}
    every = np.concatenate([*came.values(), *(each.ravel() for each in foretold.values())])
    nodes = Axis("nodes", ends=(float(every.min()) - 1.0, float(every.max()) + 1.0))
    panels, rows = [], list[tuple[float, ...]]()
    for origin in origins:
        begin = origin * series.step_s / DAY_S
        marks = [*_bands(hours, foretold[origin], forecast.levels)]
        marks.append(Marks("line", hours, came[origin], "needed", width=1.0))
        if forecast.target == "peak":
            peak = np.maximum.accumulate(came[origin])
            dashed = Marks("line", hours, peak, "most so far", width=1.0, dash="--")
            marks.append(dashed)
        title = f"day {int(begin) + 1}, {begin % 1 * 24:.0f}:00"
        panels.append(Panel(marks, ahead, nodes, title))
        rows += zip(
            [begin] * day, hours.tolist(), came[origin].tolist(), *foretold[origin], strict=True
        )
    what = "the most that will be needed" if forecast.target == "peak" else "what will be needed"
    return Chart(
        f"{series.name}: {what} by then, as foretold at that time",
        panels,
        columns=len(panels),
        inches=(11, 3.6),
        header=(
            "made_day",
            "hours_ahead",
            "needed",
            *(f"quantile_{level:g}" for level in forecast.levels),
        ),
        rows=rows,
    )


def _bands(hours: Floats, foretold: Floats, levels: Sequence[float]) -> list[Marks]:
    return [
        Marks(
            "band",
            hours,
            foretold[k + 1],
            f"{percent(levels[k], 'g')} to {percent(levels[k + 1], 'g')} %",
            0,
            y_end=foretold[k],
            alpha=0.65 * (1 - k / len(foretold)),
        )
        for k in range(len(foretold) - 1)
    ]


def by_day(series: Demand, lines: Sequence[ControllerLine]) -> Chart:
    """Show the node-hours asleep and the number of wake-ups of each day."""
    day = steps_of_day(series)
    starts = np.arange(0, len(series.needed), day)
    days, rows = starts / day + 1, list[tuple[object, ...]]()
    slept, woken = list[Marks](), list[Marks]()
    for index, line in enumerate(lines):
        asleep = series.total_nodes - line.control.active
        woke = np.zeros(len(asleep), dtype=int)
        woke[_wakes(line.control.active)] = 1
        hours, wakes = (
            np.add.reduceat(asleep, starts) * series.step_s / 3600,
            np.add.reduceat(woke, starts),
        )
        for made, y in ((slept, hours), (woken, wakes)):
            mark = Marks("line", days, y, line.policy, index, symbol="o", size=3)
            made.append(mark)
        rows += [
            (line.policy, k + 1, *pair)
            for k, pair in enumerate(zip(hours.tolist(), wakes.tolist(), strict=True))
        ]
    few = {float(at): str(at) for at in (0, 1, 2, 3, 4, 10, 20, 40)}
    return Chart(
        f"{series.name}: sleep and wake-ups by day",
        [
            Panel(slept, Axis("day"), Axis("node-hours asleep", ends=(0, None))),
            Panel(woken, Axis("day"), Axis("wake-ups", "symlog", ticks=few)),
        ],
        inches=(11, 5),
        one_x=True,
        header=("policy", "day", "node_hours_asleep", "wakeups"),
        rows=rows,
    )


def _wakes(active: Ints) -> Ints:
    """Return the steps in which nodes wake, except those of the warm-up."""
    steps = np.flatnonzero(np.diff(active) > 0) + 1
    return np.asarray(steps[steps >= WARM_UP])
