"""Sweeps among ordinary jobs on a cluster: alone, fused by HFHT's rule, or decided jointly.

`cluster-mixed` of every seed (`ronda.instances.generate.mixtures.mixed`), under no fusion (fifo,
srtf, prices), HFHT's full arrays in order of submission, and prices over classes as elastic jobs.
GPU-hours count an array once. The low energy is that if a GPU with one model of a
sweep drew only half of its watts above idle: such a model leaves its GPU mostly idle, and nobody
has measured by how much less it draws.

`sweep-hydro` is Hydro's study of 50 trials; `narrow` its models made 8 times narrower, of which two
are then trained at full width.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.statistics import half_width
from ronda.bench.study.harness import Folder, markdown, policies, seeds, study, words
from ronda.instances.files.catalogue import load
from ronda.instances.generate.mixtures import SWEPT, Swept, mixed, swept_profile
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import job_figures, summarise
from ronda.instances.schedule import Schedule
from ronda.solvers.horizon import run

POLICIES = "fifo,srtf,prices,hfht,prices+fused"
PARTS = ("cluster-mixed", "sweep-hydro")
NARROW = Swept("hydro-resnet18-8-RTX3090-24GB-", 256 / 50_000, 256.0, 0.8)
LONE = 0.5
"""Of its watts above idle, that a GPU with one model of a sweep may draw."""

FIGURES = {
    "gpu_hours": ("GPU-hours", 1.0),
    "mean_jct_s": ("mean JCT (s)", 1.0),
    "energy_j": ("energy (MJ)", 1e-6),
}


def measure(part: str, policy: str, seed: int, gpu_hours: float = 120.0) -> dict[str, Any]:
    """Return the figures of a run; of `sweep-hydro` when its last trial ends."""
    if part == "sweep-hydro":
        return _hydro(policy)
    instance = mixed(gpu_hours, seed=seed)
    schedule = run(instance, policy, seed=seed)
    found, figures = summarise(instance, schedule), job_figures(schedule)
    swept = np.array([job.fusible is not None for job in instance.jobs])
    return {
        "gpu_hours": float(figures.gpu_s.sum()) / 3600,
        "sweeps_jct_s": float(figures.jct_s[swept].mean()),
        "others_jct_s": float(figures.jct_s[~swept].mean()),
        "energy_low_j": schedule.energy.total_j - _saved_j(instance, schedule),
        **{name: found[name] for name in ("mean_jct_s", "energy_j", "restarts", "violations")},
    }


def _saved_j(instance: Instance, schedule: Schedule) -> float:
    """Return the joules less if GPUs with one model of a sweep drew less."""
    swept = {job.id for job in instance.jobs if job.profile in SWEPT}
    idle_w = [pool.gpu_type.idle_w for pool in instance.cluster.topology.pools]
    return sum(
        LONE * (s.option.power_w - idle_w[s.option.pool]) * (s.end_s - s.resume_s)
        for outcome in schedule.jobs
        for s in outcome.segments
        if outcome.id in swept and s.option.width == 1
    )


def _hydro(policy: str) -> dict[str, Any]:
    """Return when the study of 50 trials ends: at full width, and narrow with two full models."""
    full = load("sweep-hydro")
    assert isinstance(full, Instance)
    schedule = run(full, policy)
    (gpu_type,) = (kind.name for kind in full.cluster.gpu_types)
    (name,) = full.profiles
    narrow = replace(full, profiles={name: swept_profile(name, NARROW, gpu_type)})
    targets = replace(full, jobs=full.jobs[:2])
    first, then = run(narrow, policy), run(targets, policy)
    return {
        "makespan_s": schedule.end_s,
        "narrow_s": first.end_s,
        "targets_s": then.end_s,
        "mean_jct_s": float(job_figures(schedule).jct_s.mean()),
        "gpu_hours": float(job_figures(schedule).gpu_s.sum()) / 3600,
    }


def table(lines: pd.DataFrame) -> str:
    """Return the means over seeds with their confidence intervals, and ratios to prices."""
    own = lines[lines.part == "cluster-mixed"]
    base = own[own.policy == "prices"].set_index("seed")
    rows = []
    for policy, group in own.groupby("policy", sort=False):
        cells = []
        for name, (_, scale) in FIGURES.items():
            values = scale * group[name]
            cells.append(f"{values.mean():.4g} ± {half_width(values.tolist()):.2g}")
            if len(base):
                ratio = (group.set_index("seed")[name] / base[name]).dropna()
                cells.append(f"{np.exp(np.log(ratio).mean()):.2f}")
        low, restarts = 1e-6 * group.energy_low_j, f"{group.restarts.mean():.0f}"
        parts = [f"{group[f'{which}_jct_s'].mean():.0f}" for which in ("sweeps", "others")]
        rows.append([str(policy), *cells, f"{low.mean():.4g}", *parts, restarts])
    heads = [(title, *(["/ prices"] if len(base) else [])) for title, _ in FIGURES.values()]
    header = ["policy", *(word for pair in heads for word in pair), "energy, low (MJ)"]
    return markdown([*header, "sweeps' JCT", "others' JCT", "restarts"], rows)


def hydro_table(lines: pd.DataFrame) -> str:
    """Return when the study of 50 trials ends, and against one trial a GPU."""
    own = lines[lines.part == "sweep-hydro"].drop_duplicates("policy")
    serial = own[own.policy == "fifo"].makespan_s
    rows = []
    for line in own.to_dict("records"):
        both = line["narrow_s"] + line["targets_s"]
        ratios = [serial.iloc[0] / s if len(serial) else np.nan for s in (line["makespan_s"], both)]
        cells = [f"{line['makespan_s']:.0f}", f"{ratios[0]:.2f}", f"{line['narrow_s']:.0f}"]
        rows.append([str(line["policy"]), *cells, f"{both:.0f}", f"{ratios[1]:.2f}"])
    header = ["policy", "50 trials (s)", "fifo / this", "narrow (s)", "and 2 full (s)"]
    return markdown([*header, "fifo / this"], rows)


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw every seed's figures relative to prices, a panel for each figure."""
    own = lines[lines.part == "cluster-mixed"]
    names = list(dict.fromkeys(own.policy))
    figure = new_figure(9.2, 3.2)
    panels = figure.subplots(1, len(FIGURES), squeeze=False, sharey=False)[0]
    rows = []
    for (name, (title, scale)), axes in zip(FIGURES.items(), panels, strict=True):
        for at, policy in enumerate(names):
            group = own[own.policy == policy]
            values = scale * group[name]
            axes.bar(at, values.mean(), 0.7, color=colour(at), alpha=0.55)
            axes.plot([at] * len(values), values, "o", color="black", markersize=2.5)
            rows += [(name, policy, seed, v) for seed, v in zip(group.seed, values, strict=True)]
        axes.set_xticks(range(len(names)))
        axes.set_xticklabels([policy.replace("+", "\n+") for policy in names], fontsize=8)
        axes.set_ylim(bottom=0)
        tidy(axes, "", title)
    save(figure, folder.path / "cluster-mixed", ("figure", "policy", "seed", "value"), rows)


def compare(
    folder: Folder, seeds: Sequence[int], policies: Sequence[str], parts: Sequence[str]
) -> None:
    """Measure all policies on all seeds."""
    cases = [
        {"part": part, "policy": policy, "seed": seed}
        for part, seed, policy in product(parts, seeds, policies)
        if part == "cluster-mixed" or seed == seeds[0]
    ]
    lines = folder.measure(cases, measure)
    told = [table(lines)] if "cluster-mixed" in parts else []
    told += [hydro_table(lines)] if "sweep-hydro" in parts else []
    folder.write("\n".join(told))
    if "cluster-mixed" in parts:
        draw(lines, folder)


command = study(
    "cluster-mixed",
    __doc__,
    compare,
    [seeds("0-9"), policies(POLICIES), words("--parts", PARTS, "What to run.")],
)
