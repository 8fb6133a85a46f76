"""Mean JCT by what a scheduler knows of jobs: true or declared sizes, what it learns, or nothing.

Decisions come every minute. With `--sigmas` the true size of each job is that of the instance times
a lognormal factor of mean 1, so that jobs of an application differ; what is declared stays as it
is. Speeds are known at the levels oracle and declared, and learnt at history and none.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.study.harness import (
    Folder,
    markdown,
    numbers,
    packaged,
    policies,
    seeds,
    study,
    texts,
    words,
)
from ronda.instances.check.answer import check
from ronda.instances.instance import Cadence, Instance, Knowledge
from ronda.instances.outcome.metrics import summarise
from ronda.solvers.horizon.driver import run

INSTANCES = "pollux-1,pollux-2,pollux-3,pollux-4"
EVERY = Cadence(period_s=60.0, on_event=False)


def resized(instance: Instance, sigma: float, seed: int) -> Instance:
    """Return the instance with true sizes times ``exp(sigma z - sigma^2 / 2)``, z normal."""
    drawn = np.random.default_rng(seed).standard_normal(len(instance.jobs))
    factors = np.exp(sigma * drawn - 0.5 * sigma**2).tolist()
    jobs = []
    for job, factor in zip(instance.jobs, factors, strict=True):
        assert job.truth is not None
        jobs.append(replace(job, truth=replace(job.truth, work=job.truth.work * factor)))
    return replace(instance, jobs=tuple(jobs))


def measure(instance: str, policy: str, level: str, sigma: float, seed: int) -> dict[str, Any]:
    """Drive one policy over one instance at one level of knowledge."""
    found = packaged(instance)
    given = resized(found, sigma, seed) if sigma else found
    schedule = run(given, policy, cadence=EVERY, knowledge=cast(Knowledge, level))
    metrics = summarise(given, schedule)
    return {
        "mean_jct_s": metrics["mean_jct_s"],
        "p99_jct_s": metrics["p99_jct_s"],
        "restarts_a_job": float(metrics["restarts"]) / float(metrics["jobs"]),
        "violations": len(check(given, schedule)) + int(metrics["violations"]),
    }


def table(runs: pd.DataFrame) -> str:
    """Return mean JCT (s) by instance and their mean, a row for each policy and level; Markdown."""
    instances = list(dict.fromkeys(runs.instance))
    rows = []
    for (sigma, level, policy), own in runs.groupby(["sigma", "level", "policy"], sort=False):
        jct_s = own.groupby("instance").mean_jct_s.mean()
        cells = [f"{jct_s[name]:,.0f}" for name in instances]
        mean = [f"{jct_s.mean():,.0f}", f"{own.p99_jct_s.mean():,.0f}"]
        rows.append(
            [
                str(policy),
                str(level),
                f"{sigma:g}",
                *cells,
                *mean,
                f"{own.restarts_a_job.mean():.1f}",
            ]
        )
    header = ["policy", "knowledge", "sigma", *instances, "mean", "p99", "restarts a job"]
    return markdown(header, rows, words=2)


def compare(
    folder: Folder,
    instances: Sequence[str],
    policies: Sequence[str],
    levels: Sequence[str],
    sigmas: Sequence[float],
    seeds: Sequence[int],
) -> int:
    """Measure all cases; return 1 if a schedule breaks a rule."""
    cases = [
        {"instance": instance, "policy": policy, "level": level, "sigma": sigma, "seed": seed}
        for sigma, level, policy, instance in product(sigmas, levels, policies, instances)
        for seed in (seeds if sigma else seeds[:1])
    ]
    runs = folder.measure(cases, measure)
    folder.write(table(runs))
    return int((runs.violations > 0).any())


command = study(
    "knowledge",
    __doc__,
    compare,
    [
        texts("--instances", INSTANCES, "Packaged instances."),
        policies("prices,pollux-like"),
        words("--levels", get_args(Knowledge), "What policies know."),
        numbers("--sigmas", "0,0.5,1", "Of true sizes within an application.", zero=True),
        seeds("0"),
    ],
)
