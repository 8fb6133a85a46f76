"""A picture said once: what it shows, whether a file or the page draws it.

Nothing here knows a library that draws: `ronda.bench.figures.draw` makes files of a chart,
`ronda.bench.report.plotly` what the page draws.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ronda.instances.arrays import Floats, Ints

Numbers = Sequence[float] | Floats | Ints

UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title, scale and ends (None: as the data have it).

    `ticks` are its marks by place, where it does not find them by itself; `down` turns it over.
    Values are divided by `unit`; those of a `percent` axis are shares.
    """

    title: str = ""
    scale: str = "linear"
    ends: tuple[float | None, float | None] = (None, None)
    ticks: Mapping[float, str] = field(default_factory=dict)
    down: bool = False
    unit: float = 1.0
    percent: bool = False


def time_axis(end_s: float) -> Axis:
    """Return an axis of time from 0 to an end, in the unit that suits its length."""
    unit_s, unit = next((pair for pair in UNITS if end_s >= 3 * pair[0]), UNITS[-1])
    return Axis(f"time ({unit})", ends=(0.0, max(end_s, 1e-9)), unit=unit_s)


def thinner(index: int, number: int) -> float:
    """Return the width of one of some lines: later ones are thinner and leave the others seen."""
    return 1.2 + 1.4 * (number - 1 - index) / max(number, 2)


def named(names: Iterable[str], title: str = "") -> Axis:
    """Return an axis of names from the top down, at 0, 1, 2 and so on."""
    return Axis(title, ticks=dict(enumerate(names)), down=True)


@dataclass(frozen=True, slots=True)
class Marks:
    """Data that are drawn alike.

    A `line` joins its points, a `step` stays level up to the next one, an `area` is a step filled
    from `y_end` (0 if there is none), a `band` one between two lines; `points` stand alone. `boxes`
    reach from (x, y) to (x_end, y_end). A `rule` crosses the panel at its one x or y.

    `name` stands in the legend; marks of one name stand there once. `colour` is a place in the
    palette, or a shade by name or in hexadecimal. `x_bars` and `y_bars` are lengths of intervals
    below and above. `symbol` is a place among the symbols; of a line, None leaves them out. `told`
    is how the page tells a point, as Plotly's template; `texts` are texts in it, one a point.
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
    """Marks on a pair of axes; later ones lie above.

    `notes` stand at the right, by height; `weight` is the panel's height beside others on the page.
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
    """A picture of panels, row by row, and its numbers: a header and rows.

    `inches` are width and height of a file. Panels below each other share the x axis if `one_x`.
    """

    title: str
    panels: Sequence[Panel]
    columns: int = 1
    inches: tuple[float, float] = (7.0, 4.2)
    one_x: bool = False
    header: Sequence[str] = ()
    rows: Iterable[Sequence[Any]] = ()
