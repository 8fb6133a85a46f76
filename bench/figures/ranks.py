"""Mean ranks of policies over instances, and which of them are not told apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.bench.statistics import Ranks


def draw_ranks(labels: Sequence[str], found: Ranks, instances: int, path: Path) -> None:
    """Draw mean ranks, the best on top, each with half of the critical difference on both sides."""
    order = sorted(range(len(labels)), key=lambda k: (found.mean[k], k))
    figure = new_figure(6.4, 1.4 + 0.32 * len(labels))
    axes = figure.subplots()
    for place, k in enumerate(order):
        look: dict[str, Any] = {"color": colour(k), "marker": marker(k), "markersize": 8}
        axes.errorbar(found.mean[k], place, xerr=found.critical / 2, **look)
    axes.set_yticks(range(len(labels)), [labels[k] for k in order])
    axes.invert_yaxis()
    tidy(axes, f"mean rank over {instances} instances; 1 is best", grid=True)
    title = f"Lines that overlap: not told apart (Nemenyi, 5 %); Friedman p = {found.p:.2g}"
    axes.set_title(title, fontsize=10)
    rows = [(labels[k], found.mean[k], found.critical, found.p) for k in order]
    save(figure, path, ("policy", "mean_rank", "critical_difference", "friedman_p"), rows)
