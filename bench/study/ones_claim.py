"""ONES's claim, in simulation: JCT, execution and queueing time against its baselines.

``python -m ronda.bench.study.ones_claim --out claim-50 --jobs 50 --seeds 0-19`` makes an instance
for each seed, runs every policy on it (side by side, each in a process; what has run is kept), and
writes a table with bootstrap intervals, box plots and distributions. docs/ones.md explains how the
policies are treated.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ronda.bench.runs.compare import Comparison, failed
from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import Case, cases, parse_seeds, split_policies
from ronda.bench.runs.worker import Limits
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError, RondaError
from ronda.instances.files.json import fingerprint, write
from ronda.instances.files.storage import store
from ronda.instances.instance import Instance
from ronda.instances.metrics import job_figures
from ronda.instances.schedule import Schedule
from ronda.instances.traces.ones import BATCHES, ones_workload

CHECKPOINTS = ("fifo", "sjf", "srtf", "tiresias", "optimus")
"""Policies of systems that change a running job only through a checkpoint."""

PERIODS_S = {"optimus": 60.0}
"""How often policies decide that are not meant for ONES's ticks (Pollux's artifact: 60 s)."""

MEASURES = ("JCT", "execution", "queueing")
PUBLISHED = {"tiresias": (0.574, 0.677, 0.191), "optimus": (0.528, 0.509, 0.553)}
"""By how much ONES cuts the means of `MEASURES` in its artifact's result files (50 jobs)."""

PERCENTILES = (2.5, 97.5)
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs of a policy on one kind of workload.

    Attributes
    ----------
    batch, label
        What users ask for (`BATCHES`), and the policy.
    seeds
        (S,) seeds of the workloads.
    seconds
        (3, S, J) JCT, execution (holding GPUs) and queueing time of every job.
    """

    batch: str
    label: str
    seeds: tuple[int, ...]
    seconds: Floats

    def means(self) -> Floats:
        """Return (3, S) means over jobs."""
        return np.asarray(self.seconds.mean(axis=2))


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
                path = folder / "instances" / f"{instance.name}.json.zst"
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
        job
        if job.costs is None
        else msgspec.structs.replace(job, costs=msgspec.structs.replace(job.costs, scale_s=None))
        for job in instance.jobs
    )
    return msgspec.structs.replace(instance, name=f"{instance.name}-checkpoints", jobs=jobs)


def collect(comparison: Comparison, listed: Iterable[tuple[str, Case]]) -> list[Runs]:
    """Return the times of every job, by user's batch and policy; seeds that all have run."""
    found: dict[tuple[str, str], dict[int, Floats]] = {}
    for batch, case in listed:
        times = found.setdefault((batch, case.label), {})
        result = comparison.file.get(case.key)
        if result is None or not result.ok:
            continue
        figures = job_figures(comparison.layout.read(case.key, Schedule))
        times[case.seed] = np.stack(
            (figures.jct_s, figures.jct_s - figures.queue_s, figures.queue_s)
        )
    common = set.intersection(*(set(times) for times in found.values())) if found else set()
    seeds = tuple(sorted(common))
    return [
        Runs(batch, label, seeds, np.stack([times[seed] for seed in seeds], axis=1))
        for (batch, label), times in found.items()
        if seeds
    ]


def mean(values: Floats) -> Floats:
    """Return the mean over the last axis."""
    return np.asarray(values.mean(axis=-1))


def estimate(statistic: Callable[..., Floats], *samples: Floats) -> tuple[float, float, float]:
    """Return a statistic of values by seed, and its bootstrap interval (percentiles, 95 %).

    Parameters
    ----------
    statistic
        Of samples whose last axis is that of the seeds.
    samples
        (S,) each; seeds are drawn for all of them together. With one seed the interval is NaN.
    """
    value = float(statistic(*samples))
    if len(samples[0]) < 2:
        return value, float("nan"), float("nan")
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(samples[0]), size=(RESAMPLES, len(samples[0])))
    low, high = np.percentile(statistic(*(sample[drawn] for sample in samples)), PERCENTILES)
    return value, float(low), float(high)


def cut(ones: Floats, other: Floats) -> Floats:
    """Return by how much ONES's mean over seeds is below that of another policy, relative to it."""
    return np.asarray(1.0 - mean(ones) / mean(other))


def table(runs: Sequence[Runs]) -> str:
    """Return the means with intervals, and by how much ONES cuts them, as Markdown.

    Nothing is said of a measure that is 0 for some seed.
    """
    lines = []
    for batch in dict.fromkeys(each.batch for each in runs):
        own = [each for each in runs if each.batch == batch]
        jobs, seeds = own[0].seconds.shape[2], len(own[0].seeds)
        lines += [f"### {jobs} jobs, {seeds} seeds, user's batch: {batch}", ""]
        heads = [f"{measure} (s)" for measure in MEASURES]
        heads += [f"ONES cuts {measure} by (%)" for measure in MEASURES]
        lines.append("| policy | " + " | ".join([*heads, "in its artifact (%)"]) + " |")
        lines.append("|---" + "|--:" * (len(heads) + 1) + "|")
        ones = next((each.means() for each in own if each.label == "ones"), None)
        for each in own:
            means = each.means()
            cells = [_cell(1.0, *estimate(mean, values)) for values in means]
            for k, values in enumerate(means):
                if ones is None or each.label == "ones" or not (values > 0).all():
                    cells.append("–")
                else:
                    cells.append(_cell(100.0, *estimate(cut, ones[k], values)))
            said = PUBLISHED.get(each.label)
            cells.append(" / ".join(f"{100 * share:.0f}" for share in said) if said else "–")
            lines.append(f"| {each.label} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(unit: float, value: float, low: float, high: float) -> str:
    """Write an estimate with its interval."""
    text = f"{unit * value:,.0f}"
    return text if np.isnan(low) else f"{text} [{unit * low:,.0f}, {unit * high:,.0f}]"


def tell(case: Case, share: float, result: Result | None) -> None:
    """Print each run as it ends."""
    del share
    if result is not None:
        said = result.metrics.get("mean_jct_s", result.message)
        sys.stdout.write(f"{case.instance} {case.label}: {result.status} {said}\n")
        sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and write tables and figures; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m ronda.bench.study.ones_claim", description="ONES against its baselines."
    )
    parser.add_argument("--out", type=Path, required=True, help="folder; runs in it are kept")
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seeds", default="0-19")
    parser.add_argument("--policies", default="ones,tiresias,optimus,fifo")
    parser.add_argument("--batch", default=",".join(BATCHES), help="what users ask for")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        seeds = parse_seeds(options.seeds)
        policies = split_policies(options.policies)
        batches = split_policies(options.batch)
        if options.processes < 1:
            raise InputError("--processes", str(options.processes), "at least 1")
        listed = list(make_cases(options.out, options.jobs, seeds, policies, batches))
        comparison = Comparison(options.out, Limits(), options.processes, watch=tell)
        results = comparison.run([case for _, case in listed])
        runs = collect(comparison, listed)
        if runs:
            from ronda.bench.study.ones_claim_figure import draw

            written = table(runs)
            store(options.out / "claim.md", written.encode())
            draw(runs, options.out / "figures")
            sys.stdout.write(written)
    except RondaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 1 if failed(results) else 0


if __name__ == "__main__":
    sys.exit(main())
