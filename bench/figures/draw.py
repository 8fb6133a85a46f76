"""Files of a chart: its picture, drawn by matplotlib without a display, and its numbers as CSV."""

import csv
import io
import warnings
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.instances.base import Floats
from ronda.instances.errors import printable
from ronda.instances.files.storage import write_bytes

# Okabe and Ito's palette, whose colours people with colour-blindness can tell apart
# (https://jfly.uni-koeln.de/color/).
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
SHADES = {"ink": "black", "grey": "#8C8C8C", "limit": "#B00020"}


def save_chart(chart: Chart, path: Path, *, svg: bool = False) -> Path:
    """Write a chart as PNG (and SVG) and its numbers as CSV next to it; return the path of the PNG.

    The suffixes are added to `path`.
    """
    figure, numbers = drawn(chart), io.StringIO()
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = ([printable(x) if isinstance(x, str) else x for x in row] for row in chart.rows)
    csv.writer(numbers).writerows((chart.header, *shown))
    write_bytes(path.with_suffix(".csv"), numbers.getvalue().encode())
    for kind in ("png", "svg") if svg else ("png",):
        save_picture(figure, path.with_suffix(f".{kind}"), kind)
    return path.with_suffix(".png")


def drawn(chart: Chart) -> Figure:
    """Return the picture of a chart, with one legend below its panels."""
    figure = Figure(figsize=chart.inches, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.05)  # type: ignore[union-attr, call-arg]
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
        _finish(axes, panel, inner=chart.one_x and k // chart.columns < rows - 1)
    if keys:
        longest_in = 0.55 + 0.065 * max(map(len, keys))  # the longest entry at a font size of 8
        fit = max(1, min(4 if len(keys) <= 8 else 6, int(chart.inches[0] / longest_in)))
        how: dict[str, Any] = {"loc": "outside lower center", "fontsize": 8, "frameon": False}
        figure.legend([*keys.values()], [*keys], ncols=fit, **how)
    figure.suptitle(chart.title, fontsize=11)
    return figure


def _draw(axes: Axes, marks: Marks, panel: Panel, order: float) -> Any:
    """Draw marks and return the artist that represents them in the legend."""
    shade = colour(marks.colour)
    x, x_end, y, y_end = (
        np.asarray(values, dtype=float) / axis.unit
        for axis, pair in ((panel.x, (marks.x, marks.x_end)), (panel.y, (marks.y, marks.y_end)))
        for values in pair
    )
    look: dict[str, Any] = {"alpha": marks.alpha, "zorder": order}
    dash = marks.dash
    if dash == "-" and isinstance(marks.colour, int):  # a new dash when colours repeat
        dash = LINES[marks.colour // len(PALETTE) % len(LINES)]
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
    y_bars, x_bars = (
        None if lengths is None else np.nan_to_num(np.array(lengths, dtype=float)) / axis.unit
        for lengths, axis in ((marks.y_bars, panel.y), (marks.x_bars, panel.x))
    )
    return axes.errorbar(
        x,
        y,
        y_bars,
        x_bars,
        **lines | {"linestyle": "none" if alone else dash},
        **look,
        drawstyle="steps-post" if marks.kind == "step" else "default",
        marker=MARKERS[symbol % len(MARKERS)] if isinstance(symbol, int) else symbol,
        markersize=marks.size,
        markerfacecolor="white" if marks.hollow else shade,
        elinewidth=1,
    )


def _edges(corners: Floats, panel: Panel) -> Any:
    """Return the width of each box's white edge, 0 where it would hide a small box; shape (n,)."""
    spans = [
        np.inf if None in axis.ends else float(np.ptp(axis.ends)) / axis.unit  # type: ignore[arg-type]
        for axis in (panel.x, panel.y)
    ]
    return 0.3 * (np.ptp(corners, axis=1) > np.array(spans) / (300, 250)).all(axis=1)


def _finish(axes: Axes, panel: Panel, *, inner: bool) -> None:
    """Set the scales, ends and ticks of the axes, and write their titles and notes."""
    for name, axis in (("x", panel.x), ("y", panel.y)):
        _scale(axes, name, axis)
    for place, note in panel.notes.items():
        at = axes.get_yaxis_transform()
        axes.text(1.005, place, note, fontsize=8, va="center", transform=at)
    if panel.title:
        axes.set_title(panel.title, fontsize=10 if len(panel.title) < 60 else 8.5, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, labelbottom=not inner)
    axes.set_xlabel("" if inner else panel.x.title, fontsize=9)
    axes.set_ylabel(panel.y.title, fontsize=9)
    if panel.grid:
        axes.grid(visible=True, linewidth=0.4, alpha=0.5)


def _scale(axes: Axes, name: str, axis: Axis) -> None:
    scales: dict[str, tuple[str, dict[str, Any]]] = {
        "log2": ("log", {"base": 2}),
        "symlog": ("symlog", {"linthresh": 4}),
    }
    side = axes.xaxis if name == "x" else axes.yaxis
    scale, how = scales.get(axis.scale, (axis.scale, {}))
    getattr(axes, f"set_{name}scale")(scale, **how)
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


def colour(of: int | str) -> str:
    """Return the colour for an index of the palette, a shade's name or a hexadecimal number."""
    return PALETTE[of % len(PALETTE)] if isinstance(of, int) else SHADES.get(of, of)


def save_picture(figure: Figure, picture: Path, kind: str = "png") -> None:
    """Write a picture whole or not at all."""
    drawn = io.BytesIO()
    about = {"Date": None} if kind == "svg" else {}  # equal numbers give equal files
    for text in figure.findobj(Text):
        # Show text literally: ``$`` begins no formula. Logarithmic axes have no labels yet.
        if said := text.get_text():
            text.set_text("\n".join(map(printable, said.split("\n"))))
            text.set_parse_math(False)
    with rc_context({"svg.hashsalt": picture.stem}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names may have any glyph
        figure.savefig(drawn, format=kind, dpi=150, metadata=about)
    write_bytes(picture, drawn.getvalue())
