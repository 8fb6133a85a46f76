"""What tuning by HFHT costs: GPU time of its algorithms, by how trials share the one GPU.

PointNet classification with automatic mixed precision, HFHT's search space of six fusion classes
(three batch sizes, with and without feature transform) and its two algorithms: random search (81
configurations of 10 epochs) and Hyperband (177 trial-runs, 579 epochs). The curves of one class
that were measured (batch 32) stand for all six, and classes of configurations are drawn, as are
the survivors of a wave: the GPU time of a seed is exact arithmetic on them, not a measurement.

`chosen` is what HFHT does not do: of each class as many trials are fused as pay, and the others run
side by side, alone or in slices with those of other classes; the least GPU time of every wave.

Units are epochs of one fp32 model alone on the same GPU. Profiling is what HFHT's dry runs need
to find k_max of every class, in training steps of one fp32 model alone.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, get_args

import numpy as np
import pandas as pd

from lab.fusion.curves import curves
from lab.fusion.waves import (
    FUSED_DRY_RUN,
    PROCESSES_DRY_RUN,
    best_wave_s,
    class_sizes,
    hyperband,
    profiling_s,
    random_search,
    tuning_s,
)
from lab.harness import Folder, markdown, seeds, study, words
from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.bench.figures.draw import save_chart
from ronda.instances.profile import Mode

CLASSES = 6
"""Batch sizes times feature transform."""

ALGORITHMS = {"random": random_search(), "hyperband": hyperband()}
GPUS = ("V100-16GB", "A100-40GB")
MODES = (*get_args(Mode), "chosen")
TITLES = {
    "exclusive": "serial",
    "packed": "MPS",
    "slices": "MIG",
    "fused": "fused (HFTA)",
    "chosen": "chosen",
}


def measure(gpu: str, algorithm: str, seed: int) -> dict[str, Any]:
    """Return the GPU time and the profiling of every mode that was measured on a GPU."""
    own = curves("hfta-pointnet_cls-amp", gpu)
    random = np.random.default_rng(seed)
    waves = class_sizes(ALGORITHMS[algorithm], CLASSES, random)
    found: dict[str, Any] = {}
    most = {mode: own.most(mode) for mode in own.sharings}
    for mode, sharing in own.sharings.items():
        found[mode] = tuning_s(waves, sharing, most[mode])
        dry_run = FUSED_DRY_RUN if mode == "fused" else PROCESSES_DRY_RUN
        profiled = 0.0 if mode == "exclusive" else profiling_s(sharing, most[mode], dry_run)
        found[f"{mode}_profiling"] = CLASSES * profiled
    found["chosen"] = sum(w.epochs * best_wave_s(n, own.sharings, most) for w, n in waves)
    found["chosen_profiling"] = sum(found[f"{mode}_profiling"] for mode in own.sharings)
    return found


def table(lines: pd.DataFrame) -> str:
    """Return GPU time, what serial and MPS take against it, and profiling; means over seeds."""
    rows = []
    for (algorithm, gpu), own in lines.groupby(["algorithm", "gpu"], sort=False):
        for mode in MODES:
            if mode not in own or own[mode].isna().any():
                continue
            time = own[mode]
            ratios = [own["exclusive"] / time, own["packed"] / time]
            span = f"{ratios[0].min():.2f}-{ratios[0].max():.2f}"
            cells = [f"{time.mean():.1f}", *(f"{r.mean():.2f}" for r in ratios), span]
            cells.append(f"{own[f'{mode}_profiling'].mean():.0f}")
            rows.append([str(algorithm), str(gpu), TITLES[mode], *cells])
    header = ["algorithm", "GPU", "mode", "epochs", "serial / this", "MPS / this", "over seeds"]
    return markdown([*header, "profiling (steps)"], rows, words=3)


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw the GPU time of each mode, as a share of serial."""
    groups = list(lines.groupby(["algorithm", "gpu"], sort=False))
    marks, rows = [], []
    for at, ((algorithm, gpu), own) in enumerate(groups):
        modes = [m for m in MODES if m in own and not own[m].isna().any()]
        for index, mode in enumerate(modes):
            share = float((own[mode] / own["exclusive"]).mean())
            rows.append((algorithm, gpu, mode, share))
            left = at + (index - (len(modes) - 1) / 2) * 0.18 - 0.08
            name, shade = TITLES[mode], MODES.index(mode)
            marks.append(Marks("boxes", [left], [0.0], name, shade, [left + 0.16], [share]))
    x = Axis(ticks={k: f"{a}\n{g}" for k, ((a, g), _) in enumerate(groups)})
    y = Axis("GPU time / serial", ends=(0.0, None))
    header = ("algorithm", "gpu", "mode", "share")
    panels = [Panel(marks, x, y, grid=False)]
    chart = Chart("", panels, inches=(7.2, 3.6), header=header, rows=rows)
    save_chart(chart, folder.path / "hfht")


def compare(folder: Folder, seeds: Sequence[int], gpus: Sequence[str]) -> None:
    """Measure both algorithms on the GPUs."""
    cases = [
        {"gpu": gpu, "algorithm": algorithm, "seed": seed}
        for algorithm, gpu, seed in product(ALGORITHMS, gpus, seeds)
    ]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    draw(lines, folder)


command = study(
    "hfht",
    __doc__,
    compare,
    [seeds("0-19"), words("--gpus", GPUS, "Where trials run.")],
)
