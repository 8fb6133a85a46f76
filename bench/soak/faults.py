"""What faults cost each policy: mean JCT, GPU-hours that failures lose, and energy.

Every policy is driven over philly-energy-small, in which nothing breaks, and over the same with
faults drawn as those of the packaged instance philly-faults (its own is seed 1): all kinds of them,
or one kind alone.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.study.harness import Folder, limit, markdown, policies, seeds, study, texts
from ronda.instances.check.answer import check
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load
from ronda.instances.generate import Breakage, broken
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import summarise
from ronda.solvers.horizon.driver import run

KINDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "all": ("",),
    "nodes": ("node_failures", "repair_s", "drain", "notice_s", "checkpoint_s"),
    "jobs": ("job_failures", "retries", "checkpoint_s"),
    "speeds": ("slow", "stragglers", "speed_error", "power_error"),
    "reports": ("silence", "report_s", "decision_s"),
}
"""The kinds of faults, and how the names of their parameters begin."""

FIGURES = ("mean_jct_s", "lost_gpu_h", "energy_mj")


@lru_cache(maxsize=16)
def world(kind: str, seed: int) -> Instance:
    """Return the instance with the faults of a kind and seed."""
    if kind not in KINDS:
        raise InputError("--kinds", kind, f"one of {', '.join(KINDS)}")
    plain, packaged = load("philly-energy-small"), load("philly-faults")
    assert isinstance(plain, Instance)
    assert isinstance(packaged, Instance)
    drawn = packaged.made["breakage"].items()
    breakage = Breakage(**{k: v for k, v in drawn if k.startswith(KINDS[kind])})
    return broken(plain, breakage, seed)


def measure(policy: str, kind: str, seed: int, limit_s: float) -> dict[str, Any]:
    """Drive one policy through the faults of one seed and kind."""
    given = world(kind, seed)
    schedule = run(given, policy, seed=seed, time_limit_s=limit_s)
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
    """Return the figures without and with faults, a row for each policy and kind; Markdown.

    With faults: the mean over seeds, and the least and greatest ratio of mean JCT to that without.
    """
    rows = []
    for (policy, kind), own in runs[runs.kind != "none"].groupby(["policy", "kind"], sort=False):
        sound = runs[(runs.policy == policy) & (runs.kind == "none")].iloc[0]
        ratio = own.mean_jct_s / sound.mean_jct_s
        mean = own[[*FIGURES, "failures"]].mean()
        rows.append(
            [
                str(policy),
                str(kind),
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
    header = ["policy", "faults", "mean JCT (s)", "with faults", "ratio", "failures"]
    more = ["lost GPU-hours", "energy (MJ)", "with faults", "violations"]
    return markdown([*header, *more], rows, words=2)


def draw(runs: pd.DataFrame, folder: Folder) -> None:
    """Draw the three figures of each policy: a bar without faults, a dot for each seed with."""
    names = list(dict.fromkeys(runs.policy))
    titles = ("mean JCT (s)", "GPU-hours lost by failures", "energy (MJ)")
    figure = new_figure(10.5, 3.4)
    for axes, name, title in zip(figure.subplots(1, 3), FIGURES, titles, strict=True):
        for index, policy in enumerate(names):
            own = runs[runs.policy == policy]
            bar, dots = own[own.kind == "none"][name], own[own.kind != "none"][name].to_numpy()
            axes.bar(index, bar.iloc[0], width=0.6, color=colour(index), alpha=0.35)
            at = index + np.linspace(-0.2, 0.2, len(dots)) if len(dots) > 1 else [index]
            axes.plot(at, dots, ".", markersize=5, color=colour(index))
            axes.hlines(dots.mean(), index - 0.3, index + 0.3, color=colour(index))
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        tidy(axes, "", title)
    figure.suptitle("philly-energy-small: bars without faults, dots with those of a seed each")
    rows = [tuple(row) for row in runs[["policy", "seed", *FIGURES]].itertuples(index=False)]
    save(figure, folder.path / "faults", ("policy", "seed", *FIGURES), rows)


def compare(
    folder: Folder,
    policies: Sequence[str],
    kinds: Sequence[str],
    seeds: Sequence[int],
    limit_s: float,
) -> int:
    """Measure all cases; return 1 if a plan or a schedule breaks a rule."""
    asked = [("none", 0), *product(kinds, seeds)]
    cases = [
        {"policy": policy, "kind": kind, "seed": seed, "limit_s": limit_s}
        for policy, (kind, seed) in product(policies, asked)
    ]
    runs = folder.measure(cases, measure)
    folder.write(table(runs))
    draw(runs[runs.kind.isin(("none", kinds[0]))], folder)
    return int((runs.violations > 0).any())


command = study(
    "faults",
    __doc__,
    compare,
    [
        policies("fifo,srtf,tiresias,milp,prices,evolve"),
        texts("--kinds", "all", "All faults, or of nodes, jobs, speeds or reports; first drawn."),
        seeds("1-10"),
        limit(10.0, "Seconds for each decision."),
    ],
)
