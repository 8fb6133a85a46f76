"""The description of a picture: its panels, axes and marks, and the numbers that belong to it.

`within` and `distribution` describe the share of jobs or decisions whose time is at most a value.
It depends on no plotting library. `ronda.bench.figures.draw` makes files of a chart, and
`ronda.bench.report.plotly` makes the page's version.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ronda.instances.base import Floats, Ints

Numbers = Sequence[float] | Floats | Ints

Scale = Literal["linear", "log", "log2", "symlog"]

UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis with its title, scale and ends (None: where the data end).

    `ticks` are texts by position that replace the axis's own numbers. An axis with `down` grows
    downwards or to the left. Ends and values are divided by `unit` when they are drawn; the values
    of a `percent` axis are shares.
    """

    title: str = ""
    scale: Scale = "linear"
    ends: tuple[float | None, float | None] = (None, None)
    ticks: Mapping[float, str] = field(default_factory=dict)
    down: bool = False
    unit: float = 1.0
    percent: bool = False


def time_axis(end_s: float) -> Axis:
    """Return a time axis from 0 to `end_s`, in a unit that suits its length."""
    unit_s, unit = next((pair for pair in UNITS if end_s >= 3 * pair[0]), UNITS[-1])
    return Axis(f"time ({unit})", ends=(0.0, max(end_s, 1e-9)), unit=unit_s)


def thinner(index: int, number: int) -> float:
    """Return the width of one of several lines; later lines are thinner, so all stay visible."""
    return 1.2 + 1.4 * (number - 1 - index) / max(number, 2)


def named(names: Iterable[str]) -> Axis:
    """Return an axis with names at 0, 1, 2 and so on, from the top down."""
    return Axis(ticks=dict(enumerate(names)), down=True)


@dataclass(frozen=True, slots=True)
class Marks:
    """Data that are drawn in the same style, at positions of shape (n,) on both axes.

    A `line` joins its points. A `step` stays level up to the next point. An `area` fills the space
    between a step and the step at `y_end` (0 without one), and a `band` fills the space between two
    lines. `points` are not joined. `boxes` reach from (x, y) to (x_end, y_end), filled or
    `hatch`ed. A `rule` crosses the panel at its only x or y.

    The legend shows each `name` only once. `colour` is an index into the palette, a shade (ink,
    grey, limit) or a hexadecimal number; lines change their `dash` where the palette repeats.
    `x_bars` and `y_bars` are the lengths of intervals below and above the points. `symbol` is an
    index into the symbols, or a symbol of matplotlib in files only; lines without one have no
    markers. The page shows `told` next to the pointer: it is a Plotly template in which ``%{text}``
    is the point's entry in `texts`.
    """

    kind: Literal["line", "step", "area", "band", "points", "boxes", "rule"]
    x: Numbers = ()
    y: Numbers = ()
    name: str = ""
    colour: int | str = "ink"
    x_end: Numbers = ()
    y_end: Numbers = ()
    alpha: float = 1.0
    width: float = 1.2
    dash: str = "-"
    symbol: int | str | None = None
    size: float = 6.0
    hollow: bool = False
    hatch: bool = False
    x_bars: tuple[Numbers, Numbers] | None = None
    y_bars: tuple[Numbers, Numbers] | None = None
    told: str = ""
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """Marks on a pair of axes; later marks lie above earlier ones.

    `notes` are texts to the right of the panel, by height. `weight` is the panel's height relative
    to other panels on the page.
    """

    marks: Sequence[Marks]
    x: Axis = Axis()
    y: Axis = Axis()
    title: str = ""
    grid: bool = True
    notes: Mapping[float, str] = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture made of panels, row by row, and its numbers: a header and rows.

    `inches` are the width and height of a file. With `one_x`, panels in the same column share the x
    axis.
    """

    title: str
    panels: Sequence[Panel]
    columns: int = 1
    inches: tuple[float, float] = (7.0, 4.2)
    one_x: bool = False
    header: Sequence[str] = ()
    rows: Iterable[Sequence[Any]] = ()


def within(name: str, index: int, values: Numbers, count: int, told: str = "") -> Marks:
    """Return the share of `count` items that are at most each value, rising from 0; shape (n,)."""
    x = np.sort(np.asarray(values, dtype=float))
    share = np.arange(len(x) + 1) / max(count, 1)
    x, share = np.append(x[:1], x), share[0 if len(x) else 1 :]
    return Marks("step", x, share, name, index, width=2.0, told=told)


def distribution(lines: Sequence[Marks], x: str, y: str) -> Panel:
    """Return the panel for lines of `within`, on a logarithmic axis if values differ widely."""
    positive = [value for line in lines for value in line.x if value > 0]
    scale: Scale = "log" if positive and max(positive) > 20 * min(positive) else "linear"
    share = Axis(y, ends=(0.0, 1.02), percent=True)
    return Panel(lines, Axis(x, scale), share)
