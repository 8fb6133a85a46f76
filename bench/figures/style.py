"""What all figures share: colours, units of the time axis, and saving with their numbers."""

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ronda.instances.errors import printable
from ronda.instances.files.storage import store

# Okabe and Ito's palette, which people with colour-blindness can tell apart
# (https://jfly.uni-koeln.de/color/).
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
BUDGET = "#B00020"

DPI = 150


def colour(index: int) -> str:
    """Return the colour of the policy with this index."""
    return PALETTE[index % len(PALETTE)]


def line(index: int) -> str:
    """Return the line style of the policy with this index: a new one once colours repeat."""
    return LINES[index // len(PALETTE) % len(LINES)]


def marker(index: int) -> str:
    """Return the marker of the policy with this index."""
    return MARKERS[index % len(MARKERS)]


def look(index: int, number: int) -> dict[str, Any]:
    """Return how to draw one of some lines: later ones are thinner and leave the others seen."""
    width = 1.2 + 1.4 * (number - 1 - index) / max(number, 2)
    return {"color": colour(index), "linestyle": line(index), "linewidth": width}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure whose parts make room for each other (inches)."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.05)  # type: ignore[union-attr, call-arg]
    return figure


def tidy(axes: Axes, x: str = "", y: str = "", *, grid: bool = False) -> None:
    """Label the axes, draw a grid if asked for, and take away the lines that say nothing."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    if x:
        axes.set_xlabel(x, fontsize=9)
    if y:
        axes.set_ylabel(y, fontsize=9)
    if grid:
        axes.grid(visible=True, linewidth=0.4, alpha=0.5)


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int = 4) -> None:
    """Put a legend under all panels, in `columns` columns, or fewer if the figure is narrow."""
    labels = [str(handle.get_label()) for handle in handles]
    longest_in = 0.55 + 0.065 * max(map(len, labels), default=0)  # at a font size of 8
    fit = max(1, min(columns, int(figure.get_figwidth() / longest_in)))
    figure.legend(handles, labels, loc="outside lower center", ncols=fit, fontsize=8, frameon=False)


def time_axis(axes: Axes, end_s: float) -> None:
    """Label the x axis with time in the unit that suits its length."""
    units = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
    unit_s, unit = next((pair for pair in units if end_s >= 3 * pair[0]), units[-1])
    steps = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0.0, max(end_s, 1e-9) / unit_s)
    axes.set_xticks(np.array(steps) * unit_s)
    axes.set_xlim(0, max(end_s, 1e-9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / unit_s:g}"))
    axes.set_xlabel(f"time ({unit})", fontsize=9)


def save(
    figure: Figure,
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    svg: bool = False,
) -> None:
    """Write a figure as PNG (and SVG) and its numbers as CSV next to it, each whole or not at all.

    The suffixes are added to the path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = io.StringIO()
    shown = ([printable(x) if isinstance(x, str) else x for x in row] for row in rows)
    csv.writer(numbers).writerows((header, *shown))
    store(path.with_suffix(".csv"), numbers.getvalue().encode())
    for kind in ("png", "svg") if svg else ("png",):
        save_picture(figure, path.with_suffix(f".{kind}"), kind)


def save_picture(figure: Figure, picture: Path, kind: str = "png") -> None:
    """Write a picture whole or not at all."""
    drawn = io.BytesIO()
    about = {"Date": None} if kind == "svg" else {}  # equal numbers give equal files
    for text in figure.findobj(Text):
        _as_it_is(text)
    with rc_context({"svg.hashsalt": picture.stem}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a name may have any
        figure.savefig(drawn, format=kind, dpi=DPI, metadata=about)
    store(picture, drawn.getvalue())


def _as_it_is(text: Text) -> None:
    """Let a text of ours or of the data be drawn letter by letter: ``$`` begins no formula.

    The labels of ticks have no text yet; those of logarithmic axes become formulas.
    """
    if said := text.get_text():
        text.set_text("\n".join(map(printable, said.split("\n"))))
        text.set_parse_math(False)
