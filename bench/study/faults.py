"""What faults cost each policy: mean JCT, GPU-hours that failures lose, and energy.

Every policy is driven over philly-energy-small, in which nothing breaks, and over the same with
faults drawn as those of the packaged instance philly-faults (its own is seed 1).
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.study.harness import Folder, limit, markdown, policies, seeds, study
from ronda.instances.check.answer import check
from ronda.instances.files.catalogue import load
from ronda.instances.generate import Breakage, broken
from ronda.instances.instance import Instance
from ronda.instances.metrics import summarise
from ronda.solvers.horizon.driver import run

SOUND = -1
"""Stands for a seed where nothing breaks."""

FIGURES = ("mean_jct_s", "lost_gpu_h", "energy_mj")


@cache
def world(seed: int) -> Instance:
    """Return the instance with the faults of a seed."""
    plain, packaged = load("philly-energy-small"), load("philly-faults")
    assert isinstance(plain, Instance)
    assert isinstance(packaged, Instance)
    breakage = Breakage(**packaged.made["breakage"])
    return plain if seed == SOUND else broken(plain, breakage, seed)


def measure(policy: str, seed: int, limit_s: float) -> dict[str, Any]:
    """Drive one policy through the faults of one seed."""
    given = world(seed)
    schedule = run(given, policy, seed=max(seed, 0), time_limit_s=limit_s)
    figures = summarise(given, schedule)
    return {
        "mean_jct_s": figures["mean_jct_s"],
        "lost_gpu_h": float(figures.get("lost_gpu_s", 0.0)) / 3600,
        "energy_mj": float(figures["energy_j"]) / 1e6,
        "failures": figures.get("failures", 0),
        "failed_jobs": figures.get("failed_jobs", 0),
        "fallbacks": sum(record.status == "fallback" for record in schedule.rounds),
        "violations": len(check(given, schedule)) + int(figures["violations"]),
    }


def table(runs: pd.DataFrame) -> str:
    """Return the figures without and with faults, a row for each policy; Markdown.

    With faults: the mean over seeds, and the least and greatest ratio of mean JCT to that without.
    """
    rows = []
    for policy, own in runs.groupby("policy", sort=False):
        sound, with_faults = own[own.seed == SOUND].iloc[0], own[own.seed != SOUND]
        ratio = with_faults.mean_jct_s / sound.mean_jct_s
        mean = with_faults[[*FIGURES, "failures"]].mean()
        rows.append(
            [
                str(policy),
                f"{sound.mean_jct_s:,.0f}",
                f"{mean.mean_jct_s:,.0f}",
                f"{ratio.mean():.3f} ({ratio.min():.2f}-{ratio.max():.2f})",
                f"{mean.failures:.0f}",
                f"{mean.lost_gpu_h:.1f}",
                f"{sound.energy_mj:,.0f}",
                f"{mean.energy_mj:,.0f}",
                f"{own.violations.sum()}",
            ]
        )
    header = ["policy", "mean JCT (s)", "with faults", "ratio", "failures", "lost GPU-hours"]
    return markdown([*header, "energy (MJ)", "with faults", "violations"], rows)


def draw(runs: pd.DataFrame, folder: Folder) -> None:
    """Draw the three figures of each policy: a bar without faults, a dot for each seed with."""
    names = list(dict.fromkeys(runs.policy))
    titles = ("mean JCT (s)", "GPU-hours lost by failures", "energy (MJ)")
    figure = new_figure(10.5, 3.4)
    for axes, name, title in zip(figure.subplots(1, 3), FIGURES, titles, strict=True):
        for index, policy in enumerate(names):
            own = runs[runs.policy == policy]
            bar, dots = own[own.seed == SOUND][name], own[own.seed != SOUND][name].to_numpy()
            axes.bar(index, bar.iloc[0], width=0.6, color=colour(index), alpha=0.35)
            at = index + np.linspace(-0.2, 0.2, len(dots)) if len(dots) > 1 else [index]
            axes.plot(at, dots, ".", markersize=5, color=colour(index))
            axes.hlines(dots.mean(), index - 0.3, index + 0.3, color=colour(index))
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        tidy(axes, "", title)
    figure.suptitle("philly-energy-small: bars without faults, dots with those of a seed each")
    rows = [tuple(row) for row in runs[["policy", "seed", *FIGURES]].itertuples(index=False)]
    save(figure, folder.path / "faults", ("policy", "seed", *FIGURES), rows)


def compare(folder: Folder, policies: Sequence[str], seeds: Sequence[int], limit_s: float) -> int:
    """Measure all cases; return 1 if a plan or a schedule breaks a rule."""
    cases = [
        {"policy": policy, "seed": seed, "limit_s": limit_s}
        for policy, seed in product(policies, (SOUND, *seeds))
    ]
    runs = folder.measure(cases, measure)
    folder.write(table(runs))
    draw(runs, folder)
    return int((runs.violations > 0).any())


command = study(
    "faults",
    __doc__,
    compare,
    [
        policies("fifo,srtf,tiresias,milp,prices,evolve"),
        seeds("1-10"),
        limit(10.0, "Seconds for each decision."),
    ],
)
