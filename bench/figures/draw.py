"""Files of a chart: its picture by matplotlib, without a display, and its numbers as CSV."""

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ronda.bench.figures.chart import Axis, Chart, Marks, Numbers, Panel
from ronda.bench.figures.style import MARKERS, colour, legend_below, line, new_figure, save, tidy
from ronda.instances.arrays import Floats

SHADES = {"ink": "black", "grey": "#8C8C8C", "limit": "#B00020"}


def save_chart(chart: Chart, path: Path, *, svg: bool = False) -> Path:
    """Write a chart as PNG (and SVG), and its numbers as CSV next to it; returns the PNG's path.

    The suffixes are added to the path.
    """
    save(drawn(chart), path, chart.header, chart.rows, svg=svg)
    return path.with_name(f"{path.name}.png")


def drawn(chart: Chart) -> Figure:
    """Return the picture of a chart, with one legend below its panels."""
    figure = new_figure(*chart.inches)
    rows = -(-len(chart.panels) // chart.columns)
    share: Any = "col" if chart.one_x else False
    grid = figure.subplots(rows, chart.columns, squeeze=False, sharex=share)
    keys: dict[str, Artist] = {}
    for k, (axes, panel) in enumerate(zip_longest(grid.flat, chart.panels)):
        if panel is None:
            axes.set_axis_off()
            continue
        for place, marks in enumerate(panel.marks):
            key = _draw(axes, marks, panel, 2.0 + place / 100)
            if marks.name and len(marks.x) + len(marks.y):
                keys[marks.name] = key
        inner = chart.one_x and k // chart.columns < rows - 1
        _finish(axes, panel, inner=inner)
    for name, key in keys.items():
        key.set_label(name)
    if keys:
        legend_below(figure, [*keys.values()], 4 if len(keys) <= 8 else 6)
    figure.suptitle(chart.title, fontsize=11)
    return figure


def _draw(axes: Axes, marks: Marks, panel: Panel, order: float) -> Any:
    """Draw marks; returns what stands for them in the legend."""
    shade = shade_of(marks.colour)
    x, x_end, y, y_end = (
        np.asarray(values, dtype=float) / axis.unit
        for axis, pair in ((panel.x, (marks.x, marks.x_end)), (panel.y, (marks.y, marks.y_end)))
        for values in pair
    )
    look: dict[str, Any] = {"alpha": marks.alpha, "zorder": order}
    dash = line(marks.colour) if isinstance(marks.colour, int) and marks.dash == "-" else marks.dash
    lines: dict[str, Any] = {"color": shade, "linewidth": marks.width, "linestyle": dash}
    if marks.kind == "rule":
        cross = axes.axhline if len(y) else axes.axvline
        return cross(float([*y, *x][0]), **lines, **look)
    if marks.kind == "boxes":
        corners: Any = np.array([[x, y], [x_end, y], [x_end, y_end], [x, y_end]]).transpose(2, 0, 1)
        fill: dict[str, Any] = {"facecolor": shade}
        edges: dict[str, Any] = {"edgecolor": "white", "linewidth": _edges(corners, panel)}
        if marks.hatch:
            fill = {"facecolor": "none", "edgecolor": shade, "hatch": "//////"}
            edges = {"linewidth": 0.0}
        axes.add_collection(PolyCollection(corners, rasterized=True, **fill, **edges, **look))
        axes.autoscale_view()
        return Patch(alpha=marks.alpha, **fill)
    if marks.kind in {"area", "band"}:
        step: Any = "post" if marks.kind == "area" else None
        base = y_end if len(y_end) else 0.0
        return axes.fill_between(x, y, base, step=step, color=shade, linewidth=0, **look)
    alone, symbol = marks.kind == "points", marks.symbol
    return axes.errorbar(
        x,
        y,
        _bars(marks.y_bars, panel.y.unit),
        _bars(marks.x_bars, panel.x.unit),
        **lines | {"linestyle": "none" if alone else dash},
        **look,
        drawstyle="steps-post" if marks.kind == "step" else "default",
        marker=MARKERS[symbol % len(MARKERS)] if isinstance(symbol, int) else symbol,
        markersize=marks.size,
        markerfacecolor="white" if marks.hollow else shade,
        elinewidth=1,
    )


def shade_of(colour_of: int | str) -> str:
    """Return a colour for matplotlib."""
    return colour(colour_of) if isinstance(colour_of, int) else SHADES.get(colour_of, colour_of)


def _edges(corners: Floats, panel: Panel) -> Floats:
    """Return the width of each box's white edge: none where it would hide a small box."""
    if not len(corners):
        return np.zeros(0)
    spans = [
        abs((axis.ends[1] or 0.0) - (axis.ends[0] or 0.0)) / axis.unit
        for axis in (panel.x, panel.y)
    ]
    wide, high = np.ptp(corners, axis=1).T
    return np.where((wide > spans[0] / 300) & (high > spans[1] / 250) & (spans[0] > 0), 0.3, 0.0)


def _bars(lengths: tuple[Numbers, Numbers] | None, unit: float) -> Floats | None:
    return None if lengths is None else np.nan_to_num(np.array(lengths, dtype=float)) / unit


def _finish(axes: Axes, panel: Panel, *, inner: bool) -> None:
    """Set scales, ends and marks of the axes, and write what stands at them."""
    for name, axis in (("x", panel.x), ("y", panel.y)):
        _scale(axes, name, axis)
    for place, note in panel.notes.items():
        at = axes.get_yaxis_transform()
        axes.text(1.005, place, note, fontsize=8, va="center", transform=at)
    if panel.title:
        axes.set_title(panel.title, fontsize=10 if len(panel.title) < 60 else 8.5, loc="left")
    tidy(axes, "" if inner else panel.x.title, panel.y.title, grid=panel.grid)
    if inner:
        axes.tick_params(labelbottom=False)


def _scale(axes: Axes, name: str, axis: Axis) -> None:
    scales: dict[str, tuple[str, dict[str, Any]]] = {
        "log2": ("log", {"base": 2}),
        "symlog": ("symlog", {"linthresh": 4}),
    }
    side = axes.xaxis if name == "x" else axes.yaxis
    scale, how = scales.get(axis.scale, (axis.scale, {}))
    set_scale: Callable[..., Any] = getattr(axes, f"set_{name}scale")
    set_scale(scale, **how)
    low, high = (None if end is None else end / axis.unit for end in axis.ends)
    getattr(axes, f"set_{name}lim")(low, high)
    first, last = getattr(axes, f"get_{name}lim")()
    if axis.ticks:
        places = [place for place in axis.ticks if first <= place <= last]
        side.set_ticks(places, [axis.ticks[place] for place in places])
    elif scale == "log":
        base = how.get("base", 10)
        few = (1.0, 2.0, 5.0) if base == 10 and last < 300 * first else (1.0,)
        side.set_major_locator(LogLocator(base, few))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    else:
        side.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
    if axis.percent:
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:z.4g} %"))
    side.set_minor_formatter(NullFormatter())
    if axis.down:
        side.set_inverted(True)
