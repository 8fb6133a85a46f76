"""Whether long and wide jobs get their turn, and what that costs the mean.

Windows are cut from traces of rigid jobs: jobs in a row, from one that is drawn, with
submissions spread until they bring the load. One job in `--every` becomes a gang of half to nine
tenths of the cluster, and runs for as long as before. Every policy is held against ``srtf`` on the
same window, by mean JCT and by waits: all the time that a job has no GPUs.
"""

from collections.abc import Sequence
from typing import Any

import click
import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.bench.study.harness import Folder, jobs, markdown, option, policies, study, texts
from ronda.instances.check.answer import check
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import job_figures
from ronda.solvers.horizon.driver import run

TRACES = "venus-vcvgl,venus-vcvly"
RIVAL = "srtf"
PATIENCES = ("100", "30", "10", "3", "1")
POLICIES = ",".join([RIVAL, *(f"prices(patience={each})" for each in PATIENCES)])
LOADS = (0.8, 1.2)
GANGS = (0.5, 0.9)
"""The least and the greatest: of windows' loads, and of what share of the cluster gangs are."""

FLOOR_S, LOST = 60.0, 1.01
"""Shorter waits count as this long; a window is lost if a figure is this much of the rival's."""

FIGURES = ("mean_jct_s", "longest_s", "p999_s")


def window(trace: Instance, count: int, load: float, every: int, seed: int) -> Instance:
    """Return `count` jobs of a trace at a load, one of `every` widened (0: none)."""
    rng, gpus = np.random.default_rng([seed, 7]), trace.cluster.gpus
    first = int(rng.integers(max(1, len(trace.jobs) - count + 1)))
    own = trace.jobs[first : first + count]
    widths = np.array([job.gpus for job in own])
    wide = rng.permutation(len(own))[: len(own) // every] if every else np.empty(0, dtype=int)
    widths[wide] = np.round(gpus * rng.uniform(*GANGS, len(wide)))
    work = np.array([job.truth.work for job in own if job.truth is not None])
    submit_s = np.array([job.submit_s for job in own]) - own[0].submit_s
    spread = float(widths @ work) / (gpus * load * float(submit_s[-1]))
    made = tuple(
        replace(job, gpus=int(n), submit_s=float(round(when * spread, 3)))
        for job, n, when in zip(own, widths.tolist(), submit_s.tolist(), strict=True)
    )
    return replace(trace, name=f"{trace.name}-{seed}", jobs=made, reference={}, made={})


def measure(
    trace: str, seed: int, load_: float, count: int, every: int, policy: str
) -> dict[str, Any]:
    """Drive one policy over one window."""
    found = load(trace)
    if not isinstance(found, Instance) or any(job.truth is None for job in found.jobs):
        raise InputError("--traces", trace, "an instance of rigid jobs")
    given = window(found, count, load_, every, seed)
    schedule = run(given, policy, time_limit_s=None)
    figures = job_figures(schedule)
    return {
        "mean_jct_s": float(figures.jct_s.mean()),
        "longest_s": float(figures.queue_s.max()),
        "p999_s": float(np.percentile(figures.queue_s, 99.9)),
        "widest_s": float(max(figures.queue_s[_wide(given)], default=0.0)),
        "restarts": int(figures.restarts.sum()),
        "violations": len(check(given, schedule)),
    }


def _wide(given: Instance) -> list[int]:
    """Return the jobs that want half the cluster or more."""
    return [k for k, job in enumerate(given.jobs) if job.gpus >= GANGS[0] * given.cluster.gpus]


def ratios(runs: pd.DataFrame) -> pd.DataFrame:
    """Return each figure over that of the rival in the same window, by policy and window."""
    at = runs.set_index(["policy", "trace", "seed"])[list(FIGURES)]
    rival = at.loc[RIVAL]
    others = [name for name in runs.policy.unique() if name != RIVAL]
    found: pd.DataFrame = pd.concat(
        {name: at.loc[name].clip(lower=FLOOR_S) / rival.clip(lower=FLOOR_S) for name in others}
    )
    return found


def mean_ratio(column: "pd.Series[float]") -> float:
    """Return the geometric mean of ratios."""
    return float(np.exp(np.log(column.to_numpy()).mean()))


def table(found: pd.DataFrame) -> str:
    """Return, by policy, geometric means and worst of the ratios, and windows lost; Markdown."""
    rows = []
    for policy, own in found.groupby(level=0, sort=False):
        cells = []
        for name in FIGURES:
            lost = int((own[name] > LOST).sum())
            cells += [f"{mean_ratio(own[name]):.3f}", f"{own[name].max():.2f}", f"{lost}"]
        rows.append([f"`{policy}`", *cells])
    header = [
        cell
        for words in ("mean JCT", "longest wait", "p99.9 of waits")
        for cell in (f"{words} / {RIVAL}", "worst", "windows lost")
    ]
    return markdown(["policy", *header], rows)


def draw(folder: Folder, found: pd.DataFrame) -> None:
    """Draw mean JCT against the longest wait, both over the rival's, a point for each policy."""
    figure = new_figure(5.6, 4.2)
    axes, rows = figure.subplots(), []
    for k, (policy, own) in enumerate(found.groupby(level=0, sort=False)):
        x = mean_ratio(own.longest_s)
        y = mean_ratio(own.mean_jct_s)
        axes.plot(x, y, marker(k), color=colour(k), label=str(policy))
        rows.append((str(policy), x, y))
    axes.plot(1.0, 1.0, "*", color="0.3", label=RIVAL)
    tidy(axes, f"longest wait / {RIVAL}", f"mean JCT / {RIVAL}", grid=True)
    axes.legend(fontsize=8, frameon=False)
    save(figure, folder.path / "starvation", ("policy", "longest", "mean_jct"), rows)


def compare(
    folder: Folder,
    traces: Sequence[str],
    policies: Sequence[str],
    windows: int,
    jobs: int,
    every: int,
) -> int:
    """Measure all cases; return 1 if a schedule breaks a rule."""
    loads = np.round(np.linspace(*LOADS, windows), 3).tolist()
    cases = [
        {
            "trace": traces[seed % len(traces)],
            "seed": seed,
            "load_": loads[seed],
            "count": jobs,
            "every": every,
            "policy": policy,
        }
        for seed in range(windows)
        for policy in dict.fromkeys((RIVAL, *policies))
    ]
    runs = folder.measure(cases, measure)
    found = ratios(runs)
    folder.write(table(found))
    draw(folder, found)
    return int((runs.violations > 0).any())


command = study(
    "starvation",
    __doc__,
    compare,
    [
        texts("--traces", TRACES, "Packaged instances or files, with rigid jobs."),
        policies(POLICIES),
        option("--windows", type=click.IntRange(2), default=20, help="Number of windows."),
        jobs(250),
        option("--every", type=click.IntRange(0), default=50, help="Jobs to one gang; 0: no gang."),
    ],
)
