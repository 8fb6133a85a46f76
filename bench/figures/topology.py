"""A picture of a cluster as a tree from left to right."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
from matplotlib.figure import Figure

from ronda.bench.figures.draw import colour, save_picture

if TYPE_CHECKING:
    Outline = nx.DiGraph[int]

KINDS = {
    "cluster": colour(7),
    "rack": colour(0),
    "node": colour(2),
}
ROW, GAP, LETTER = 0.55, 0.6, 0.074
"""The height of a row, the space between columns and the width of a letter, in inches."""


class _Box(NamedTuple):
    """The position of a label in inches: its left end, its right end and its middle."""

    left: float
    right: float
    y: float


def draw_topology(outline: "Outline", path: Path) -> None:
    """Draw an outline (`ronda.formulations.topology.outline`) into a PNG or SVG file."""
    texts = {v: outline.nodes[v]["label"].replace(": ", "\n") for v in outline}
    boxes = _boxes(outline, texts)
    width = max(box.right for box in boxes.values()) + GAP / 2
    height = ROW - min(box.y for box in boxes.values())
    figure = Figure(figsize=(width + GAP / 2, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-GAP / 2, width), ylim=(ROW / 2 - height, ROW / 2))
    axes.set_axis_off()
    for above, below in outline.edges:
        start, end = boxes[above], boxes[below]
        middle = end.left - GAP / 2
        path_x, path_y = (start.left, middle, middle, end.left), (start.y, start.y, end.y, end.y)
        # A line begins below its label, which hides it up to where the label really ends.
        axes.plot(path_x, path_y, color="#888888", linewidth=1)
    for v, text in texts.items():
        edge = KINDS[outline.nodes[v]["kind"]]
        frame = {"boxstyle": "round", "facecolor": "white", "edgecolor": edge}
        axes.text(boxes[v].left, boxes[v].y, text, fontsize=9, va="center", bbox=frame)
    save_picture(figure, path, path.suffix[1:].lower())


def _boxes(outline: "Outline", texts: dict[int, str]) -> dict[int, _Box]:
    depth = nx.single_source_shortest_path_length(outline, 0)
    width = {v: LETTER * max(map(len, text.split("\n"))) for v, text in texts.items()}
    left = [0.0]
    for column in range(max(depth.values()) + 1):
        left.append(left[-1] + GAP + max(width[v] for v in outline if depth[v] == column))
    row, leaves = dict[int, float](), 0
    for v in nx.dfs_postorder_nodes(outline, 0):
        below = [row[part] for part in outline.successors(v)]
        row[v] = (below[0] + below[-1]) / 2 if below else leaves
        leaves += not below
    return {v: _Box(left[depth[v]], left[depth[v]] + width[v], -ROW * row[v]) for v in outline}
