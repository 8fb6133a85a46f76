"""Rounds that many GPU types couple: prices, whole models, relaxations and random parts.

Each measurement is one of ``python -m lab.speed pools`` in a process of its own, on one thread.
Seconds are of a processor. What a solver falls short of is the least bound that any of them proved
for the round; a relaxation has a bound and no answer. HiGHS and the other solvers of models get the
limit by the clock.
"""

import json
from itertools import product
from typing import Any

import pandas as pd

from lab.harness import Folder, limit, markdown, numbers, seeds, study, words
from lab.program import apart
from ronda.instances.errors import InputError

SOLVERS = ("prices", "highs", "cp-sat", "simplex", "ipm", "pdlp", "pop-4", "pop-16")
GAPS = (0.5, 1e-2, 1e-3, 1e-4)
"""That prices are asked for, the first for any answer; the others get the last one."""

FIELDS = ("objective", "bound", "cpu_s", "peak_rss_mib")


def measure(
    seed: int, jobs: int, types: int, solver: str, gap: float, limit_s: float
) -> dict[str, Any]:
    """Return what one solver found for one round; nothing but the seconds if it was killed."""
    asked = {"jobs": jobs, "types": types, "solver": solver, "gap": gap, "seed": seed}
    more = [word for key, value in asked.items() for word in (f"--{key}", f"{value}")]
    done = apart("-m", "lab.speed", "pools", "--here", "--limit", f"{limit_s}", *more)
    if done.returncode > 0:
        raise InputError("--solvers", solver, "a solver that solves the round")
    line = json.loads(done.stdout) if done.returncode == 0 else {}
    return {field: line.get(field) for field in FIELDS}


def table(lines: pd.DataFrame) -> str:
    """Return processor seconds, MiB and shortfalls, by size, solver and gap; means over seeds."""
    least = lines.groupby(["jobs", "types", "seed"]).bound.transform("min")
    lines = lines.assign(short=1.0 - lines.objective.astype(float) / least)
    sizes = lines.groupby(["jobs", "types", "solver", "gap"], sort=False)
    rows = [
        [
            *(f"{jobs:,}", f"{types}", f"{solver}", f"{gap:g}"),
            *(f"{own.cpu_s.mean():.3g}", f"{own.peak_rss_mib.max():,.0f}"),
            "–" if own.short.isna().all() else f"{own.short.max():.1e}",
        ]
        for (jobs, types, solver, gap), own in sizes
    ]
    header = ["jobs", "types", "solver", "gap asked", "seconds", "MiB", "falls short by at most"]
    return markdown(header, rows, words=3)


def experiment(
    folder: Folder,
    seeds: tuple[int, ...],
    jobs: tuple[float, ...],
    types: tuple[float, ...],
    solvers: tuple[str, ...],
    limit_s: float,
) -> None:
    """Measure all sizes with all solvers, and print the table."""
    asked = [(one, gap) for one in solvers for gap in (GAPS if one == "prices" else GAPS[-1:])]
    cases = [
        {"seed": seed, "jobs": int(n), "types": int(r), "solver": solver, "gap": gap}
        for n, r, (solver, gap), seed in product(jobs, types, asked, seeds)
    ]
    folder.write(table(folder.measure([case | {"limit_s": limit_s} for case in cases], measure)))


command = study(
    "pools",
    __doc__,
    experiment,
    [
        numbers("--jobs", "1000", "Of each round."),
        numbers("--types", "16,64", "GPU types."),
        words("--solvers", SOLVERS, "Who solves."),
        seeds("1"),
        limit(60.0, "Seconds of each, by the clock."),
    ],
)
