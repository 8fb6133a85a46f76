"""The results of sleep controllers on a series, as a report."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ronda.instances.demand import Demand
from ronda.instances.models.power import NodeDraw
from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Report, Table
from ronda.systems.helios.controllers import Control, controller
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
