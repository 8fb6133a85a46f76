"""One description gives the file's picture and the page's chart: the same numbers in both."""

import numpy as np
import pytest

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, named
from ronda.bench.figures.draw import drawn
from ronda.bench.report.plotly import plotly

HOUR = Axis("hours", ends=(0.0, 7200.0), unit=3600.0)
WATTS = Axis("watts", "log")


def both(*marks, x=HOUR, y=WATTS):
    """Return the axes of the file, and the traces and the layout of the page."""
    chart = Chart("a chart", [Panel(marks, x, y)])
    (axes,) = drawn(chart).axes
    return axes, *plotly(chart)


def test_lines_steps_and_points_stand_at_the_same_places():
    """In the axis's unit, with their names; a hollow point is one in both."""
    kinds = ("line", "step", "points")
    axes, traces, layout = both(
        *(Marks(kind, [0, 3600], [10, 100], kind, k, symbol=k) for k, kind in enumerate(kinds)),
        Marks("points", [3600], [20], "points", 2, symbol=2, hollow=True),
    )
    for line, trace in zip(axes.get_lines(), traces, strict=True):
        assert line.get_xdata().tolist() == trace["x"]
        assert line.get_ydata().tolist() == trace["y"]
    assert [trace["policy"] for trace in traces] == [0, 1, 2, 2]
    assert [trace["showlegend"] for trace in traces] == [True, True, False, True]
    assert [trace.get("line", {}).get("shape") for trace in traces[:2]] == [None, "hv"]
    assert axes.get_lines()[1].get_drawstyle() == "steps-post"
    assert traces[3]["marker"]["symbol"] == "triangle-up-open"
    assert axes.get_lines()[3].get_markerfacecolor() == "white"
    legend = axes.get_figure().legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [*kinds]
    assert axes.get_xlim() == (0, 2)
    assert layout["xaxis"]["range"] == [0, 2]
    assert (axes.get_yscale(), layout["yaxis"]["type"]) == ("log", "log")


def test_bars_are_lengths_in_the_unit_of_their_axis():
    """From 1 h, half an hour to the left and one to the right; what is not known has none."""
    bars = ([1800.0, np.nan], [3600.0, np.nan])
    axes, (trace,), _ = both(Marks("points", [3600, 3600], [1, 2], x_bars=bars))
    ends = axes.collections[0].get_segments()
    assert [end.tolist() for end in ends] == [[[0.5, 1], [2, 1]], [[1, 2], [1, 2]]]
    assert (trace["error_x"]["arrayminus"], trace["error_x"]["array"]) == ([0.5, None], [1.0, None])


def test_areas_boxes_and_rules_cover_the_same():
    """An area stands on its base, a box from corner to corner; a rule crosses the panel."""
    area = Marks("area", [0, 3600], [4, 2], "area", "grey", y_end=[1, 1])
    box = Marks("boxes", [0], [2], "box", "#112233", [1800], [3])
    axes, (base, top, bar), layout = both(area, box, Marks("rule", y=[5], name="rule"))
    assert (base["y"], top["y"], top["fill"]) == ([1, 1], [4, 2], "tonexty")
    shape = axes.collections[0].get_paths()[0].vertices
    assert (shape.min(axis=0).tolist(), shape.max(axis=0).tolist()) == ([0, 1], [1, 4])
    corners = axes.collections[1].get_paths()[0].vertices
    assert (corners.min(axis=0).tolist(), corners.max(axis=0).tolist()) == ([0, 2], [0.5, 3])
    assert (bar["base"], bar["x"], bar["y"], bar["width"]) == ([0], [0.5], [2.5], [1])
    assert [line.get_ydata() for line in axes.get_lines()] == [[5, 5]]
    assert (layout["shapes"][0]["y0"], layout["shapes"][0]["xref"]) == (5, "x domain")


def test_names_stand_from_the_top_down():
    """With what is HTML in a name escaped for the page, and read letter by letter in the file."""
    axes, _, layout = both(Marks("points", [0, 0], [0, 1]), y=named(["a", "<b>"]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "<b>"]
    assert axes.yaxis_inverted()
    assert layout["yaxis"]["ticktext"] == ["a", "&lt;b&gt;"]
    assert layout["yaxis"]["autorange"] == "reversed"


def test_long_lines_are_thinned_for_the_page_alone():
    """Both ends are kept."""
    x = np.arange(1.0, 1001.0)
    axes, (trace,), _ = both(Marks("line", x, x), x=Axis("n"))
    assert len(axes.get_lines()[0].get_xdata()) == 1000
    assert len(trace["x"]) == 160
    assert (trace["x"][0], trace["x"][-1]) == (1, 1000)


@pytest.mark.parametrize("columns", [1, 2])
def test_panels_do_not_overlap_on_the_page(columns):
    """Two by two, or four below each other."""
    panels = [Panel([Marks("line", [0, 1], [0, 1])], title=str(k)) for k in range(4)]
    _, layout = plotly(Chart("", panels, columns))
    boxes = [(layout[f"xaxis{n}"]["domain"], layout[f"yaxis{n}"]["domain"]) for n in ("", 2, 3, 4)]
    for k, (x, y) in enumerate(boxes):
        assert 0 <= x[0] < x[1] <= 1
        assert 0 <= y[0] < y[1] <= 1
        for left, low in boxes[k + 1 :]:
            assert left[0] >= x[1] or low[1] <= y[0]
    assert [note["text"] for note in layout["annotations"]] == ["0", "1", "2", "3"]
