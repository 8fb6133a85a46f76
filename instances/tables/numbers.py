"""Formats of numbers in tables."""

from collections.abc import Iterable
from datetime import datetime
from math import isnan
from zoneinfo import ZoneInfo

DATED_S = 1e9
"""A clock of the Unix epoch is at least here; others count from a trace's own start."""


def seconds(value: float) -> str:
    """Format seconds: as a whole number from 100 on, else with four digits; NaN as a dash."""
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:z.4g}"


def hours(value: float) -> str:
    """Format seconds as hours."""
    return seconds(value / 3600)


def milliseconds(value: float) -> str:
    """Format seconds as milliseconds with three significant digits."""
    return f"{value * 1e3:,.0f}" if value >= 0.1 else f"{value * 1e3:z.3g}"


def joules(value: float) -> str:
    """Format joules in the unit that leaves one to three digits before the decimal point."""
    if value == 0 or isnan(value):
        return "–"  # an instance without power data
    for size, unit in ((1e12, "TJ"), (1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")):
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} J"


def moment(unix_s: float, zone: str) -> str:
    """Format seconds since 1970 as a date in a time zone, or as a day of a trace's own clock."""
    if unix_s > DATED_S:
        return f"{datetime.fromtimestamp(unix_s, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}"
    day, second = divmod(round(unix_s), 86400)
    return f"day {day}, {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def percent(value: float, digits: str = ",.1f") -> str:
    """Format a fraction as a percentage, without the percent sign."""
    return f"{value * 100:z{digits}}"


def fine_percent(value: float) -> str:
    """Format a small fraction as a percentage with two significant digits."""
    return percent(value, ".2g")


def fine(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:z.3g}"


def count(value: float) -> str:
    """Format a count or a mean of counts."""
    return f"{value:z,.0f}" if value == round(value) else f"{value:z,.2f}"


def on_nodes(placement: Iterable[tuple[int, int]]) -> str:
    """Format the pairs (node, number of GPUs) of a placement."""
    return " ".join(f"{node}×{gpus}" for node, gpus in placement)
