"""The picture of a log's pools: GPUs wanted, in use and there over time, and the overloads."""

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, time_axis
from ronda.instances.base import Floats
from ronda.instances.traces.audit.answer import Audit
from ronda.instances.traces.audit.pools import PoolUse

MOST = 6
"""The most pools that are drawn, those with most work."""

SPANS = 900
"""The number of equal times of which the means are drawn."""


def audited(title: str, found: Audit) -> Chart:
    """Show the GPUs wanted if no job waited, in use, and there, and shade the overloads."""
    pools = found.pools[:MOST]
    end_s = max(found.read.recorded.until_s, *(float(pool.time_s[-1]) for pool in pools), 1.0)
    rows = (
        (pool.name, *row)
        for pool in pools
        for row in np.stack([pool.time_s, pool.wanted, pool.behind]).T.tolist()
    )
    return Chart(
        f"{title}, from {found.when(0.0)}",
        [_panel(pool, found, end_s) for pool in pools],
        inches=(9.0, 1.9 * len(pools) + 1.0),
        one_x=True,
        header=("pool", "time_s", "wanted", "behind_gpu_s"),
        rows=rows,
    )


def _panel(pool: PoolUse, found: Audit, end_s: float) -> Panel:
    edges = np.linspace(0.0, end_s, SPANS + 1)
    wanted = _means(pool.time_s, pool.wanted, edges)
    held = _means(pool.held_s, pool.held, edges) if len(pool.held_s) else np.zeros(0)
    most = float(max(wanted.max(), held.max(initial=0.0), pool.gpus or 0.0, 1.0))
    top = 1.08 * most if pool.gpus is None else min(1.08 * most, 3.0 * pool.gpus)
    late = pool.overloads
    marks = [
        Marks(
            "boxes",
            [each.start_s for each in late],
            np.zeros(len(late)),
            "work is behind under any scheduler",
            "limit",
            x_end=[each.end_s for each in late],
            y_end=np.full(len(late), top),
            alpha=0.15,
        ),
        Marks("area", edges[: len(held)], held, "in use", 0, alpha=0.6),
        Marks("step", edges[:-1], np.minimum(wanted, top), "wanted, if no job waited", 1),
    ]
    if pool.gpus is not None:
        least = " (seen in use)" if found.read.machines == "seen" else ""
        marks.append(Marks("rule", y=[pool.gpus], name=f"capacity{least}"))
    return Panel(marks, time_axis(end_s), Axis("GPUs", ends=(0.0, top)), pool.name, grid=False)


def _means(time_s: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the mean of a step function between each two edges; it ends with 0."""
    area = np.append(0.0, np.cumsum(values[:-1] * np.diff(time_s)))
    means: Floats = np.diff(np.interp(edges, time_s, area)) / np.diff(edges)
    return means
