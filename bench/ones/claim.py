"""ONES against its baselines: JCT, execution and queueing time, in simulation.

Makes an instance for each seed, runs every policy on it (side by side, each in a process; what has
run is kept), and writes a table with bootstrap intervals, box plots and distributions.
docs/ones.md explains how the policies are treated.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.figures.style import box, colour, new_figure, save, tidy
from ronda.bench.runs.compare import Comparison, failed
from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import Case, cases
from ronda.bench.runs.worker import Limits
from ronda.bench.statistics import Interval, bootstrap_interval
from ronda.bench.study.harness import (
    Folder,
    jobs,
    markdown,
    option,
    policies,
    seeds,
    study,
    words,
)
from ronda.instances.arrays import Floats
from ronda.instances.files.json import fingerprint, write
from ronda.instances.files.names import file_name
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.schedule import Schedule
from ronda.instances.traces.ones import BATCHES, ones_workload

CHECKPOINTS = ("fifo", "sjf", "srtf", "tiresias", "optimus")
"""Policies of systems that change a running job only through a checkpoint."""

PERIODS_S = {"optimus": 60.0}
"""How often policies decide that are not meant for ONES's ticks (Pollux's artifact: 60 s)."""

MEASURES = ("JCT", "execution", "queueing")
PUBLISHED = {"tiresias": (0.574, 0.677, 0.191), "optimus": (0.528, 0.509, 0.553)}
"""By how much ONES cuts the means of `MEASURES` in its artifact's result files (50 jobs)."""

SHORTEST_S = 1.0
"""Where the logarithmic axis begins: queueing times of 0 lie on its edge."""


def make_cases(
    folder: Path, jobs: int, seeds: Sequence[int], policies: Sequence[str], batches: Sequence[str]
) -> Iterator[tuple[str, Case]]:
    """Write the instances and yield (user's batch, case) for every run.

    Each seed makes its own workload and is the seed of the run. Policies of `CHECKPOINTS` get it
    without scaling in place.
    """
    for batch in batches:
        for seed in seeds:
            plain = ones_workload(jobs, seed, user_batch=batch)
            kinds = {False: plain, True: _checkpoints_only(plain)}
            for label in policies:
                name = label.partition("(")[0]
                instance = kinds[name in CHECKPOINTS]
                path = folder / "instances" / f"{file_name(instance.name)}.json.zst"
                if not path.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write(instance, path)
                loaded = {str(path): (instance, fingerprint(instance))}
                for case in cases(
                    loaded, (label,), (seed,), time_limit_s=None, period_s=PERIODS_S.get(name)
                ):
                    yield batch, case


def _checkpoints_only(instance: Instance) -> Instance:
    """Return the workload on a system that cannot scale a running job in place."""
    jobs = tuple(
        replace(job, costs=job.costs and replace(job.costs, scale_s=None)) for job in instance.jobs
    )
    return replace(instance, name=f"{instance.name}-checkpoints", jobs=jobs)


def collect(comparison: Comparison, listed: Sequence[tuple[str, Case]]) -> pd.DataFrame:
    """Return a row for each job: batch, policy, seed and `MEASURES`; of seeds that all have run."""
    parts = []
    for batch, case in listed:
        result = comparison.file.get(case.key)
        if result is None or not result.ok:
            continue
        figures = job_figures(comparison.layout.read(case.key, Schedule))
        times = (figures.jct_s, figures.jct_s - figures.queue_s, figures.queue_s)
        run = {"batch": batch, "policy": case.label, "seed": case.seed}
        parts.append(pd.DataFrame(run | dict(zip(MEASURES, times, strict=True))))
    if not parts:
        return pd.DataFrame()
    kinds = len({(batch, case.label) for batch, case in listed})
    runs = pd.concat(parts)
    done = runs.drop_duplicates(["batch", "policy", "seed"]).groupby("seed").size()
    return runs[runs.seed.isin(done[done == kinds].index)]


def cut(ones: Floats, other: Floats, axis: int = -1) -> Floats:
    """Return by how much ONES's mean over seeds is below that of another policy, relative to it."""
    return np.asarray(1.0 - ones.mean(axis=axis) / other.mean(axis=axis))


def table(times: pd.DataFrame) -> str:
    """Return the means with intervals, and by how much ONES cuts them, as Markdown.

    A measure that is 0 for some seed has no cut.
    """
    header = ["policy", *(f"{measure} (s)" for measure in MEASURES)]
    header += [*(f"ONES cuts {measure} by (%)" for measure in MEASURES), "in its artifact (%)"]
    parts = []
    for _, own in times.groupby("batch", sort=False):
        means = own.groupby(["policy", "seed"], sort=False)[list(MEASURES)].mean()
        rows = [_row(policy, means) for policy in own.policy.unique()]
        parts.append(f"### {_title(own)}\n\n{markdown(header, rows)}")
    return "\n".join(parts)


def _row(policy: str, means: pd.DataFrame) -> list[str]:
    """Return the cells of a policy, from the means by policy and seed."""
    own = means.loc[policy]
    cells = [policy, *(_cell(1.0, bootstrap_interval(np.mean, own[name])) for name in MEASURES)]
    for name in MEASURES:
        if policy == "ones" or "ones" not in means.index or not (own[name] > 0).all():
            cells.append("–")
        else:
            found = bootstrap_interval(cut, means.loc["ones"][name], own[name])
            cells.append(_cell(100.0, found))
    said = PUBLISHED.get(policy)
    return [*cells, " / ".join(f"{100 * share:.0f}" for share in said) if said else "–"]


def _cell(unit: float, found: Interval) -> str:
    value, low, high = (unit * number for number in found)
    return f"{value:,.0f}" if np.isnan(low) else f"{value:,.0f} [{low:,.0f}, {high:,.0f}]"


def _title(times: pd.DataFrame) -> str:
    seeds = times.seed.nunique()
    jobs = len(times) // (seeds * times.policy.nunique())
    plural = "s" if seeds > 1 else ""
    return f"{jobs} jobs, {seeds} seed{plural}, user's batch: {times.batch.iloc[0]}"


def boxes(times: pd.DataFrame, path: Path) -> None:
    """Draw quartiles, whiskers of 1.5 interquartile ranges, no outliers; dots are means."""
    figure = new_figure(10, 3.8)
    labels = list(times.policy.unique())
    rows: list[tuple[object, ...]] = []
    for axes, measure in zip(figure.subplots(1, 3), MEASURES, strict=True):
        for index, label in enumerate(labels):
            each = times[times.policy == label][measure]
            box(axes, index, each, index, width=0.6)
            axes.plot(index, each.mean(), "ko", markersize=4)
            rows.append((measure, label, each.mean(), *each.quantile((0.25, 0.5, 0.75))))
        axes.set_xticks(range(len(labels)), labels, rotation=20)
        axes.set_ylim(bottom=0)
        axes.set_title(f"{measure} (s)", fontsize=10)
        axes.yaxis.grid(visible=True, linewidth=0.4, alpha=0.5)
        tidy(axes)
    title = f"ONES workload, {_title(times)}; boxes: quartiles, dots: means, no outliers"
    figure.suptitle(title, fontsize=10)
    save(figure, path, ("measure", "policy", "mean_s", "q25_s", "median_s", "q75_s"), rows)


def distributions(times: pd.DataFrame, path: Path) -> None:
    """Draw the share of jobs within a time, on a logarithmic axis; all times stand beside."""
    figure = new_figure(10, 3.6)
    for axes, measure in zip(figure.subplots(1, 3, sharey=True), MEASURES, strict=True):
        for index, (label, own) in enumerate(times.groupby("policy", sort=False)):
            seconds = own[measure].clip(lower=SHORTEST_S)
            axes.ecdf(seconds, color=colour(index), linewidth=1.5, label=str(label))
        axes.set_xscale("log")
        axes.set_xlim(left=SHORTEST_S)
        axes.set_ylim(0, 1.02)
        tidy(axes, f"{measure} (s)", grid=True)
    figure.axes[0].set_ylabel("share of jobs", fontsize=9)
    figure.axes[0].legend(fontsize=8, frameon=False, loc="upper left")
    figure.suptitle(f"ONES workload, {_title(times)}", fontsize=10)
    save(figure, path, list(times.columns), times.itertuples(index=False))


def tell(case: Case, share: float, result: Result | None) -> None:
    """Say on stderr how each run ended."""
    if share == 1.0 and result is not None:
        said = result.metrics.get("mean_jct_s", result.message)
        click.echo(f"{case.instance} {case.label}: {result.status} {said}", err=True)


def compare(
    folder: Folder,
    seeds: Sequence[int],
    jobs: int,
    policies: Sequence[str],
    batch: Sequence[str],
    processes: int,
) -> int:
    """Run what is missing; write table and figures."""
    listed = list(make_cases(folder.path, jobs, seeds, policies, batch))
    comparison = Comparison(folder.path, Limits(), processes, watch=tell)
    results = comparison.run([case for _, case in listed])
    times = collect(comparison, listed)
    if len(times):
        folder.write(table(times))
        for kind, own in times.groupby("batch"):
            boxes(own, folder.path / f"boxes-{kind}")
            distributions(own, folder.path / f"cdf-{kind}")
    return 1 if failed(results) else 0


command = study(
    "ones-claim",
    __doc__,
    compare,
    [
        seeds("0-19"),
        jobs(50),
        policies("ones,tiresias,optimus,fifo"),
        words("--batch", tuple(BATCHES), "What users ask for."),
        option("--processes", type=click.IntRange(1), default=2, help="Runs side by side."),
    ],
)
