"""Amounts, times and rows in an operator's words."""

import re
from collections.abc import Mapping
from math import inf

from ronda.instances.snapshots.snapshot import SeenJob

UNITS = {"gpus": "GPU", "cpu": "CPU", "jobs": "job", "tasks": "task", "pods": "pod slot"}
PLURALS = {of: f"{unit}s" for of, unit in UNITS.items()} | {"memory_gib": "memory"}


PODS = {"kueue", "kai", "kubernetes"}
"""The systems whose jobs are pods."""


def many(count: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{count:g} {noun}" + ("" if count == 1 else "s")


def a_piece(job: SeenJob, system: str) -> str:
    """Return the noun for one of the equal pieces of a job."""
    if system in PODS:
        return "pod"
    return "node" if job.own_nodes or job.slices is not None else "piece"


def amount(resource: str, value: float) -> str:
    """Return an amount of a resource, such as ``8 GPUs`` or ``64 GiB of memory``."""
    if resource == "memory_gib" and 0 < value < 1:
        return f"{value * 1024:.6g} MiB of memory"
    value = round(value, 6)
    if resource == WATTS:
        return f"{value:,.0f} W"
    if resource == "memory_gib":
        return f"{value:g} GiB of memory"
    if resource in UNITS:
        return many(value, UNITS[resource])
    return f"{value:g} {resource}"


def amounts(given: Mapping[str, float]) -> str:
    """Return amounts of several resources."""
    return ", ".join(amount(resource, value) for resource, value in given.items() if value)


def hours(seconds: float) -> str:
    """Return a length of time, such as ``2 h 30 min``."""
    if seconds == inf:
        return "an unknown time"
    if seconds < 60:
        return f"{max(0.0, seconds):.3g} s"
    days, rest = divmod(round(seconds / 60), 1440)
    whole, minutes = divmod(rest, 60)
    parts = [(days, "d"), (whole, "h"), (minutes, "min")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def when(in_s: float) -> str:
    """Return a time from now, such as ``in 2 h``."""
    if in_s == inf:
        return "never"
    return f"in {hours(in_s)}" if in_s > 0 else "now"


WATTS, POWER_CAP = "watts", "power cap"
"""The resource of the watts that jobs draw beyond an idle cluster, and the group of its limit."""

POWER_ROW = f"limit[{POWER_CAP},{WATTS}]"
"""The row of that limit."""


def in_row(row: str, of: str, value: float) -> str:
    """Return an amount as a limit counts it: licences by number, GPU time in hours."""
    if row.startswith("licence["):
        return f"{round(value, 6):g}"
    return many(round(value / 3600, 3), "GPU-hour") if row.startswith("run[") else amount(of, value)


ROWS = {
    "limit": "the limit of {who}",
    "jobs": "the limit on running jobs of {who}",
    "run": "the limit of {who} on the GPU time that jobs may still use",
    "firm": "the guarantee of {who} for jobs that may not be stopped",
    "tree": "the quota of {who} and all below it",
    "borrow": "the borrowing limit of {who}",
    "licence": "the limit of {who}",
    "array": "the limit of job array {who}",
}


def of_row(row: str, of: str) -> str:
    """Return the words for a limit by the name of its row, at the beginning of a sentence."""
    if row == POWER_ROW:
        return "The power cap, less an idle cluster,"
    found = re.fullmatch(r"(\w+)\[(.*)\]", row)
    if found is None or found[1] not in ROWS:
        return row
    who = found[2].removesuffix(f",{of}")
    words = ROWS[found[1]].format(who=who)
    return words[0].upper() + words[1:]
