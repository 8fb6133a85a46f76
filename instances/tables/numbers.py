"""Formats of numbers in tables."""

from collections.abc import Iterable
from math import isnan


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
