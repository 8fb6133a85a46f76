"""What one controller did on a series, as a line of a table and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ronda.instances.demand import Demand
from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Table
from ronda.systems.helios.controllers import Control, controller
from ronda.systems.helios.outcome import NodeDraw, SleepOutcome, outcome

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
"""Figures of the second table."""


@dataclass(frozen=True, slots=True)
class ControllerLine:
    """A controller by its words, what it did, and what came of it."""

    policy: str
    control: Control
    outcome: SleepOutcome


def line_of(series: Demand, policy: str, draw: NodeDraw) -> ControllerLine:
    """Let a controller decide every step of a series."""
    control = controller(policy).control(series)
    return ControllerLine(policy, control, outcome(series, control.active, draw))


def as_json(series: Demand, line: ControllerLine) -> dict[str, Any]:
    """Return all figures of a line by name."""
    head = {"series": series.name, "policy": line.policy, "knowledge": line.control.knowledge}
    return head | asdict(line.outcome)


def as_tables(
    series: Demand, lines: Sequence[ControllerLine], draw: NodeDraw
) -> tuple[Table, Table]:
    """Return sleep and lack, and changes, waiting and energy, with a row for each controller."""
    records = [as_json(series, line) for line in lines]
    first = Table(
        f"{series.name}: {series.days:g} days of {max(series.total)} nodes",
        (
            *("policy", "knows", "sleeping nodes", "wake-ups/day", "nodes each"),
            *("used %", "of awake %", "lack steps", "lack nodes"),
        ),
        tuple(_sleep(line) for line in lines),
        ("lack: steps at whose start too few nodes were awake, and how many were missing",),
        tuple({n: v for n, v in each.items() if n not in CHANGES} for each in records),
    )
    second = Table(
        "changes, waiting, energy",
        (
            *("policy", "changes/day", "mean change", "median change"),
            *("waiting steps", "waiting node-min", "saved kWh/day"),
        ),
        tuple(_changes(series, line) for line in lines),
        (
            f"waiting: if a node takes {draw.wake_s:g} s to wake",
            f"assumed: a node draws {draw.idle_w:g} W idle, {draw.sleep_w:g} W asleep, "
            f"{draw.wake_w:g} W while it wakes; cooling is not counted",
        ),
        tuple({n: each[n] for n in ("policy", *CHANGES)} for each in records),
    )
    return first, second


def _sleep(line: ControllerLine) -> tuple[str, ...]:
    made = line.outcome
    return (
        line.policy,
        KNOWS[line.control.knowledge],
        f"{made.mean_sleeping_nodes:.2f}",
        f"{made.wakeups_per_day:.2f}",
        f"{made.nodes_per_wakeup:.2f}",
        percent(made.utilisation_before),
        percent(made.utilisation_after),
        f"{made.lack_intervals:,}",
        f"{made.lack_node_intervals:,}",
    )


def _changes(series: Demand, line: ControllerLine) -> tuple[str, ...]:
    made = line.outcome
    return (
        line.policy,
        f"{made.changes_per_day:.2f}",
        f"{made.mean_change_nodes:.2f}",
        f"{made.median_change_nodes:g}",
        f"{made.waiting_intervals:,}",
        f"{made.waiting_node_s / 60:,.0f}",
        f"{made.saved_j / 3.6e6 / series.days:,.0f}",
    )
