"""Policies for searches on measured learning curves: TaskSet's and Titan's, one search at a time.

Each seed draws some configurations of every search of `sweep-taskset` and `sweep-titan`, in random
order, submits them at once, and gives them one node of 4 GPUs. What counts is the GPU time until a
loss is reported within 1 % of the least that any trial of the draw ends at. A policy that gives up
before is charged the GPU time of training all trials, which is what it would take to be sure.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.statistics import bootstrap_interval, half_width, paired_ratio
from ronda.bench.study.harness import Folder, markdown, packaged, policies, seeds, study
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import job_figures, summarise
from ronda.instances.outcome.searched import Searched, searched
from ronda.solvers.horizon.driver import run

SETS = ("sweep-taskset", "sweep-titan")
DRAWN = {"sweep-taskset": 40, "sweep-titan": 28}
GPUS = 4
SHARES = np.linspace(0.0, 0.5, 41)
"""Of the GPU time of training all trials: where regret is looked at."""
RIVALS = ("hermes", "asha", "hypersched")


def search(given: Instance, sweep: str, seed: int, trials: int) -> Instance:
    """Return some trials of one sweep in a random order, on one node."""
    rng = np.random.default_rng([seed, *sweep.encode()])
    own = [job for job in given.jobs if job.sweep == sweep]
    chosen = rng.permutation(len(own))[:trials].tolist()
    node = replace(given.cluster.node_groups[0], count=1, gpus_per_node=GPUS)
    return replace(
        given,
        name=f"{given.name}-{sweep}-{seed}",
        cluster=replace(given.cluster, node_groups=(node,)),
        jobs=tuple(replace(own[k], submit_s=0.0) for k in chosen),
        sweeps={sweep: given.sweeps[sweep]},
    )


def measure(instance: str, sweep: str, policy: str, seed: int) -> dict[str, Any]:
    """Return time and GPU time to the best, and regret over shares of the whole GPU time."""
    return found_by(policy, *drawn(instance, sweep, seed), sweep, seed)


def found_by(
    policy: str, given: Instance, everything: float, sweep: str, seed: int
) -> dict[str, Any]:
    """Return these figures of a policy; to train all trials takes `everything`, in GPU-seconds."""
    schedule = run(given, policy, seed=seed)
    found, figures = searched(given, schedule, sweep), summarise(given, schedule)
    best_s, best_gpu_s = found.within()
    missed = isnan(best_gpu_s)
    return {
        "missed": missed,
        "best_s": None if missed else best_s,
        "best_gpu_s": everything if missed else best_gpu_s,
        "whole_gpu_s": everything,
        "preemptions": figures["preemptions"],
        "paused_gpu_s": figures["paused_gpu_s"],
        "discarded": figures["discarded_jobs"],
        "regret": regrets(found, everything),
    }


@lru_cache(maxsize=16)
def drawn(instance: str, sweep: str, seed: int) -> tuple[Instance, float]:
    """Return a draw of a search, and the GPU-seconds of training all its trials on one GPU each."""
    given = search(packaged(instance), sweep, seed, DRAWN[instance])
    return given, float(job_figures(run(given, "fifo")).gpu_s.sum())


def regrets(found: Searched, everything: float) -> list[float]:
    """Return the regret, at most 1, when shares of the whole GPU time have been used."""
    index = np.searchsorted(found.gpu_s, SHARES * everything, side="right") - 1
    best = np.where(index >= 0, found.best[np.maximum(index, 0)], np.inf)
    regret = (best - found.least) / (found.least or 1.0)
    return [float(x) for x in np.clip(regret, 0.0, 1.0)]


def table(lines: pd.DataFrame, names: Sequence[str]) -> str:
    """Return GPU time to the best by policy, relative to `sweep`, and what it takes."""
    rows = []
    for instance, own in lines.groupby("instance", sort=False):
        mean = {
            p: each.set_index(["sweep", "seed"]).best_gpu_s for p, each in own.groupby("policy")
        }
        for name in names:
            each = own[own.policy == name]
            cells = [f"{each.best_gpu_s.mean() / 3600:.2f}", f"{each.missed.mean():.0%}"]
            if "sweep" in mean and name != "sweep":
                ours, other = mean["sweep"].align(mean[name])
                ratio = bootstrap_interval(paired_ratio, other.to_numpy(), ours.to_numpy())
                cells.append(f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})")
            else:
                cells.append("")
            times = each.best_s.astype(float) / 3600
            cells += [f"{times.mean():.2f}", f"{each.preemptions.mean():.0f}"]
            cells.append(f"{each.discarded.mean():.0f}")
            rows.append([str(instance), name, *cells])
    header = ["instance", "policy", "GPU hours to the best", "missed", "this / sweep (95 %)"]
    header += ["hours, if found", "preemptions", "given up"]
    return markdown(header, rows, words=2)


def draw(lines: pd.DataFrame, names: Sequence[str], folder: Folder) -> None:
    """Draw regret over GPU time, means over searches and seeds with 95 % intervals."""
    sets = list(dict.fromkeys(lines.instance))
    figure = new_figure(4.2 * len(sets), 3.6)
    panels = np.atleast_1d(figure.subplots(1, len(sets)))
    rows = []
    for axes, instance in zip(panels, sets, strict=True):
        own = lines[lines.instance == instance]
        for k, name in enumerate(names):
            curves = np.array([*own[own.policy == name].regret])
            mean = curves.mean(axis=0)
            half = np.array([half_width(column) for column in curves.T.tolist()])
            axes.plot(100 * SHARES, mean, color=colour(k), label=name)
            axes.fill_between(
                100 * SHARES, mean - half, mean + half, color=colour(k), alpha=0.15, linewidth=0
            )
            rows += [
                (instance, name, float(s), float(m), float(h))
                for s, m, h in zip(SHARES, mean, half, strict=True)
            ]
        axes.set_title(instance, fontsize=10)
        axes.set_yscale("log")
        axes.set_ylim(0.003, 1.2)
        tidy(axes, "GPU time (% of training all)", "regret", grid=True)
    panels[-1].legend(fontsize=8, frameon=False)
    save(figure, folder.path / "sweeps", ("instance", "policy", "share", "regret", "half"), rows)


def compare(folder: Folder, seeds: Sequence[int], policies: Sequence[str]) -> None:
    """Measure all policies on all searches."""
    cases = [
        {"instance": instance, "sweep": sweep, "policy": policy, "seed": seed}
        for seed, instance in product(seeds, SETS)
        for sweep, policy in product(packaged(instance).sweeps, policies)
    ]
    lines = folder.measure(cases, measure)
    folder.write(table(lines, policies))
    draw(lines, policies, folder)


command = study(
    "sweeps",
    __doc__,
    compare,
    [seeds("0-9"), policies("sweep,hermes,asha,hypersched,hyperband,fifo")],
)
