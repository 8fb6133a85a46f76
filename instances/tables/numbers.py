"""How numbers of tables are written."""

from collections.abc import Iterable
from math import isnan


def seconds(value: float) -> str:
    """Write seconds: whole from a hundred on, four significant digits below; NaN as a dash."""
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:z.4g}"


def hours(value: float) -> str:
    """Write seconds as hours."""
    return seconds(value / 3600)


def milliseconds(value: float) -> str:
    """Write seconds as milliseconds with three significant digits."""
    return f"{value * 1e3:,.0f}" if value >= 0.1 else f"{value * 1e3:z.3g}"


def joules(value: float) -> str:
    """Write joules in the unit that leaves one to three digits before the point."""
    if value == 0 or isnan(value):
        return "–"  # an instance without power data
    for size, unit in ((1e12, "TJ"), (1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")):
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} J"


def percent(value: float, digits: str = ",.1f") -> str:
    """Write a share as percent, without the sign."""
    return f"{value * 100:z{digits}}"


def fine_percent(value: float) -> str:
    """Write a small share as percent with two significant digits."""
    return percent(value, ".2g")


def fine(value: float) -> str:
    """Write a number with three significant digits."""
    return f"{value:z.3g}"


def count(value: float) -> str:
    """Write a number of things, or the mean of some."""
    return f"{value:z,.0f}" if value == round(value) else f"{value:z,.2f}"


def on_nodes(placement: Iterable[tuple[int, int]]) -> str:
    """Write pairs (node, GPUs there)."""
    return " ".join(f"{node}×{gpus}" for node, gpus in placement)
