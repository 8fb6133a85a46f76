"""Mean ranks of policies over instances, and groups of policies that cannot be told apart."""

from collections.abc import Sequence

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, named
from ronda.bench.statistics import Ranks


def ranks(labels: Sequence[str], found: Ranks, instances: int) -> Chart:
    """Show mean ranks, best on top, each with half the critical difference on both sides."""
    order = sorted(range(len(labels)), key=lambda k: (found.mean[k], k))
    half = [found.critical / 2]
    points = [
        Marks("points", [found.mean[k]], [place], x_bars=(half, half), colour=k, symbol=k, size=8)
        for place, k in enumerate(order)
    ]
    return Chart(
        f"Lines that overlap: not told apart (Nemenyi, 5 %); Friedman p = {found.p:.2g}",
        [
            Panel(
                points,
                Axis(f"mean rank over {instances} instances; 1 is best"),
                named(labels[k] for k in order),
            )
        ],
        inches=(6.4, 1.4 + 0.32 * len(labels)),
        header=("policy", "mean_rank", "critical_difference", "friedman_p"),
        rows=[(labels[k], found.mean[k], found.critical, found.p) for k in order],
    )
