"""A chart as the page draws it: Plotly's traces and layout.

Instead of a colour, a trace has a `policy`, which is an index into the palette, because the page's
script knows the colours of its themes.
"""

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Numbers, Panel
from ronda.bench.report.parts import floats
from ronda.instances.base import Floats

SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
SHADES = {"ink": "#8c8c8c", "grey": "#8c8c8c", "limit": "#c0392b"}

Plotly = dict[str, Any]


def plotly(chart: Chart, most: int = 160) -> tuple[list[Plotly], Plotly]:
    """Return the traces and the layout of a chart; lines have at most `most` points."""
    traces: list[Plotly] = []
    layout: Plotly = {}
    shapes, notes = list[Plotly](), list[Plotly]()
    for k, (panel, domains) in enumerate(zip(chart.panels, _domains(chart), strict=True)):
        y = f"y{k + 1 if k else ''}"
        x = "x" if chart.one_x else y.replace("y", "x")
        for name, axis, other, domain in ((x, panel.x, y, domains[0]), (y, panel.y, x, domains[1])):
            made = layout[f"{name[0]}axis{name[1:]}"] = _axis(
                axis, "D2" if len(chart.panels) == 1 else 1
            )
            if len(chart.panels) > 1:
                made |= {"domain": domain, "anchor": other}
        for height, text in panel.notes.items():
            at = {"x": 1.005, "y": height, "xref": f"{x} domain", "yref": y}
            notes.append({"text": escape(text), "xanchor": "left", "showarrow": False} | at)
        if panel.title and len(chart.panels) > 1:
            at = {"x": 0, "y": 1, "xref": f"{x} domain", "yref": f"{y} domain"}
            look = {"xanchor": "left", "yanchor": "bottom", "showarrow": False}
            notes.append({"text": escape(panel.title)} | at | look)
        for marks in panel.marks:
            if marks.kind == "rule":
                shapes.append(_rule(marks, panel, x, y))
            else:
                traces += (
                    trace | ({"xaxis": x, "yaxis": y} if len(chart.panels) > 1 else {})
                    for trace in _traces(marks, panel, most)
                )
    last = {trace["name"]: k for k, trace in enumerate(traces)}
    for k, trace in enumerate(traces):
        trace["showlegend"] = trace["name"] != "" and last[trace["name"]] == k
    layout |= {"shapes": shapes} if shapes else {}
    return traces, layout | ({"annotations": notes} if notes else {})


def _domains(chart: Chart) -> Iterator[tuple[list[float], list[float]]]:
    """Yield the ranges of width and height that each panel occupies."""
    weights = [panel.weight for panel in chart.panels[:: chart.columns]]
    whole, wide = sum(weights), 0.85 if chart.columns > 1 else 1.0
    gap = 0.2 * min(weights) if len(weights) > 1 else 0.0
    for k in range(len(chart.panels)):
        row, column = divmod(k, chart.columns)
        below, last = sum(weights[row + 1 :]), row == len(weights) - 1
        high = [(below + (0.0 if last else gap)) / whole, (below + weights[row]) / whole]
        yield [column / chart.columns, (column + wide) / chart.columns], high


def _axis(axis: Axis, dtick: str | int) -> Plotly:
    made: Plotly = {"title": {"text": axis.title}}
    low, high = (None if end is None else end / axis.unit for end in axis.ends)
    if axis.scale != "linear":
        made |= {"type": "log", "dtick": dtick}
        low, high = (None if end is None else float(np.log10(end)) for end in (low, high))
    if axis.percent:
        made["tickformat"] = ".2~%" if axis.scale == "log" else ".0%"
    if axis.ticks:
        texts = [escape(text) for text in axis.ticks.values()]
        made |= {"tickvals": [*axis.ticks], "ticktext": texts}
    if low is not None and high is not None:
        made["range"] = [high, low] if axis.down else [low, high]
    elif axis.down:
        made["autorange"] = "reversed"
    elif low is not None:
        made["autorangeoptions"] = {"include": low, "minallowed": low}
    return made


def _rule(marks: Marks, panel: Panel, x: str, y: str) -> Plotly:
    """Return a line across a panel as a shape."""
    level = len(marks.y) > 0
    at = float(marks.y[0]) / panel.y.unit if level else float(marks.x[0]) / panel.x.unit
    along, across = ("x", "y") if level else ("y", "x")
    line = {"dash": DASHES[marks.dash], "width": marks.width}
    if marks.colour != "ink":
        line["color"] = SHADES[str(marks.colour)]
    named = {"name": escape(marks.name), "showlegend": True} if marks.name else {}
    refs = {"x": x, "y": y}
    refs[along] += " domain"
    ends = {f"{along}0": 0, f"{along}1": 1, f"{across}0": at, f"{across}1": at}
    return {"type": "line", "xref": refs["x"], "yref": refs["y"], "line": line} | ends | named


def _traces(marks: Marks, panel: Panel, most: int) -> Iterator[Plotly]:
    """Yield the trace of marks; for a filled area with a base, yield the base first."""
    own, filled = isinstance(marks.colour, int), marks.kind in {"area", "band"}
    shade = SHADES.get(str(marks.colour), marks.colour)
    at = np.arange(len(marks.x))
    if marks.kind not in {"points", "boxes"} and len(at) > most:
        at = np.unique(np.linspace(0, len(at) - 1, most).astype(at.dtype))

    def values(numbers: Numbers, axis: Axis) -> Floats:
        return np.asarray(numbers, dtype=float)[at] / axis.unit

    x, y = values(marks.x, panel.x), values(marks.y, panel.y)
    made: Plotly = {"name": escape(marks.name), "hoverinfo": "skip"}
    made |= {"policy": marks.colour} if own else {}
    told: Plotly = {}
    if marks.told:
        told |= {"hovertemplate": f"{marks.told}<extra>{made['name']}</extra>", "hoverinfo": "all"}
    if marks.texts:
        told["text"] = [escape(marks.texts[k]) for k in at.tolist()]
    if marks.kind == "boxes":
        wide, high = values(marks.x_end, panel.x) - x, values(marks.y_end, panel.y) - y
        made |= {"type": "bar", "orientation": "h", "base": floats(x), "x": floats(wide)}
        made |= {"y": floats(y + high / 2), "width": floats(high), "marker": {"color": shade}}
        yield made | {"opacity": marks.alpha, "textposition": "none"} | told
        return
    made |= {"type": "scatter", "x": floats(x), "y": floats(y)}
    made |= {"legendgroup": made["name"]} if marks.name else {}
    if marks.kind == "points":
        marker: Plotly = {"size": 1.4 * marks.size, "opacity": marks.alpha}
        if isinstance(marks.symbol, int):
            marker["symbol"] = SYMBOLS[marks.symbol % len(SYMBOLS)] + "-open" * marks.hollow
        made |= {"mode": "markers", "marker": marker}
    else:
        line: Plotly = {"width": 0 if filled else marks.width}
        line |= {"shape": "hv"} if marks.kind in {"step", "area"} else {}
        line |= {"dash": DASHES[marks.dash]} if marks.dash != "-" else {}
        made |= {"mode": "lines", "line": line if own else line | {"color": shade}}
    if len(marks.y_end):
        yield made | {"y": floats(values(marks.y_end, panel.y))}
    if filled:
        made |= {"fill": "tonexty" if len(marks.y_end) else "tozeroy", "shade": marks.alpha}
    for key, bars, axis in (("error_x", marks.x_bars, panel.x), ("error_y", marks.y_bars, panel.y)):
        if bars is not None and np.nan_to_num(bars).any():
            below, above = (floats(values(lengths, axis)) for lengths in bars)
            made[key] = {"type": "data", "array": above, "arrayminus": below, "thickness": 1}
            made[key]["symmetric"] = False
    yield made | told
