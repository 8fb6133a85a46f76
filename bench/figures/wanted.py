"""What a trace asks of its cluster: GPUs wanted over time, as if every job began at once."""

from pathlib import Path

import numpy as np

from ronda.bench.figures.style import BUDGET, colour, new_figure, save, tidy
from ronda.bench.figures.usage import steps
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance


def wanted(instance: Instance) -> tuple[Floats, ...]:
    """Return (n,) seconds, ascending, and (n,) the GPUs wanted from each on, without queueing."""
    submit_s = np.array([job.submit_s for job in instance.jobs])
    gpus = np.array([job.gpus for job in instance.jobs], dtype=float)
    run_s = np.array([job.truth.work if job.truth else 0.0 for job in instance.jobs])
    return steps(np.concatenate([submit_s, submit_s + run_s]), np.concatenate([gpus, -gpus]))


def draw_wanted(instance: Instance, path: Path) -> None:
    """Draw the GPUs that rigid jobs want over time, and those of the cluster."""
    if path.suffix not in {".png", ".svg"}:
        raise InputError(str(path), "another suffix", ".png or .svg")
    seconds, gpus = wanted(instance)
    figure = new_figure(8.0, 3.2)
    axes = figure.subplots()
    axes.fill_between(seconds / 86400, gpus, step="post", color=colour(0), alpha=0.5, linewidth=0)
    axes.axhline(instance.cluster.gpus, color=BUDGET, linewidth=1.2)
    axes.annotate(
        f"{instance.cluster.gpus:,} GPUs",
        (1.0, instance.cluster.gpus),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=8,
        color=BUDGET,
    )
    axes.set_ylim(0)
    axes.set_xlim(0, seconds[-1] / 86400)
    tidy(axes, "days", "GPUs wanted, if none waited")
    axes.set_title(f"{instance.name}: {len(instance.jobs):,} jobs", fontsize=10)
    rows = list(zip(seconds.tolist(), gpus.tolist(), strict=True))
    save(figure, path, ("time_s", "gpus"), rows, svg=path.suffix == ".svg")
