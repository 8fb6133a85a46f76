"""Plans for up to a million tasks on a hundred thousand nodes, with a bound, beside other ways.

Each measurement is one of ``python -m lab.speed nodes`` in a process of its own, on one thread, and
counts from arrays to a checked plan. Three tables come out:

    nodes           empty nodes: prices, best fit, and greedy at relaxation prices
    nodes-running   a share of the jobs runs, and moves cost; with a budget of disruptions, too
    nodes-highs     few nodes: one model of whole slots on each, in HiGHS, which ignores groups

What a plan falls short of is the bound that prices prove for its round.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from lab.harness import Folder, limit, markdown, numbers, option, seeds, study, words
from lab.program import apart
from lab.speed.nodes import FAMILIES, RULES
from ronda.bench.tables import fill_file
from ronda.instances.errors import InputError
from ronda.instances.tables.numbers import percent

SOLVERS = ("prices", "best-fit", "price-greedy", "highs")
GAPS = {"prices": (1.5e-3,), "highs": (0.03, 0.01)}
FEW, MANY = 200, 10_000
"""The most nodes that HiGHS gets, and that all are measured on for every seed: above, tasks that
are placed one by one and rounds in which jobs run are measured for the first seed only."""

FIELDS = (
    *("objective", "bound", "gap", "total_s", "cpu_s", "peak_rss_mib"),
    *("moved", "stopped", "violations"),
)
SECTIONS = ("nodes", "nodes-running", "nodes-highs")


def measure(**case: Any) -> dict[str, Any]:
    """Return what one solver found; nothing if it was killed."""
    asked = {key: case[key] for key in ("family", "nodes", "seed", "running", "solver")}
    asked["gap"] = case["gap_asked"]
    more = [word for key, value in asked.items() for word in (f"--{key}", f"{value}")]
    if case["budget"] >= 0:
        most = round(case["budget"] * FAMILIES[case["family"]][1] * case["nodes"])
        more += ["--most-disrupted", f"{most}"]
    if case["solver"] == "highs":
        more += ["--limit", f"{case['limit_s']}"]
    jobs = f"{FAMILIES[case['family']][1] * case['nodes']}"
    done = apart("-m", "lab.speed", "nodes", "--here", "--jobs", jobs, *more)
    if done.returncode > 0:
        raise InputError("--solvers", case["solver"], "a solver that solves the round")
    line = json.loads(done.stdout) if done.returncode == 0 else {}
    return {field: line.get(field) for field in FIELDS}


def cases_of(
    families: tuple[str, ...],
    nodes: tuple[float, ...],
    running: tuple[float, ...],
    budget: float,
    solvers: tuple[str, ...],
    seeds: tuple[int, ...],
) -> Iterator[dict[str, Any]]:
    """Yield what is measured: small sizes and cheap solvers first."""
    for n, share, solver, family, seed in product(
        nodes, (0.0, *running), reversed(solvers), families, seeds
    ):
        if (solver == "highs" and (n > FEW or share)) or (solver == "price-greedy" and share):
            continue
        if (n <= FEW and share) or (n > MANY and seed != seeds[0] and (share or solver in RULES)):
            continue
        limited = (budget,) if share and solver == "prices" and seed == seeds[0] else ()
        for gap, most in product(GAPS.get(solver, (0.5,)), (-1.0, *limited)):
            asked = {"family": family, "nodes": int(n), "seed": seed, "running": share}
            yield asked | {"budget": most, "solver": solver, "gap_asked": gap}


def tables_of(lines: pd.DataFrame) -> dict[str, str]:
    """Return the three tables, Markdown: medians of seconds over seeds, the worst of the rest."""
    key = ["family", "nodes", "seed", "running"]
    prices = lines[(lines.solver == "prices") & (lines.budget < 0)]
    least = prices.set_index(key).bound.rename("least")
    lines = lines.join(least, on=key)
    lines["short"] = 1.0 - lines.objective.astype(float) / lines.least.astype(float)
    empty, runs = lines[lines.running == 0.0], lines[lines.running > 0.0]
    few, many = empty[empty.nodes <= FEW], empty[empty.nodes > FEW]
    return dict(zip(SECTIONS, (_beside(many), _running(runs), _highs(few)), strict=True))


def _beside(lines: pd.DataFrame) -> str:
    rows = []
    for _, own in lines.groupby(["family", "nodes"], sort=False):
        ours, fit, greedy = (own[own.solver == name] for name in SOLVERS[:3])
        broken = f"{own.violations.sum():.0f}"
        rows.append([*_size(own), *_ours(ours), *_other(fit), *_other(greedy), broken])
    header = ["round", "nodes", "tasks", "s", "clock (s)", "gap (%)", "MiB"]
    header += ["best fit short (%)", "its s", "greedy short (%)", "its s", "violations"]
    return markdown(header, rows)


def _running(lines: pd.DataFrame) -> str:
    rows = []
    key = ["family", "nodes", "running", "budget"]
    for _, own in lines.groupby(key, sort=False):
        if not (own.solver == "prices").any():
            continue
        family, nodes, share, budget = (own[name].iloc[0] for name in key)
        same = lines[(lines.family == family) & (lines.nodes == nodes) & (lines.running == share)]
        ours = own[own.solver == "prices"]
        allowed = "any" if budget < 0 else f"{budget * FAMILIES[family][1] * nodes:,.0f}"
        rows.append(
            [
                *_size(own),
                *(f"{percent(share, '.0f')} %", allowed),
                *_ours(ours),
                *(f"{ours[name].mean():,.0f}" for name in ("moved", "stopped")),
                _other(same[same.solver == "best-fit"])[0],
                f"{own.violations.sum():.0f}",
            ]
        )
    header = ["round", "nodes", "tasks", "running", "disrupted at most", "s", "clock (s)"]
    header += ["gap (%)", "MiB", "moved", "stopped", "all stay, best fit short (%)", "violations"]
    return markdown(header, rows)


def _highs(lines: pd.DataFrame) -> str:
    rows = []
    for _, own in lines.groupby(["family", "nodes"], sort=False):
        ours, cells = own[own.solver == "prices"], list[str]()
        for gap in GAPS["highs"]:
            mine = own[(own.solver == "highs") & (own.gap_asked == gap)]
            cells += [_seconds(mine.cpu_s), _worst(mine.gap)]
        rows.append([*_size(own), *_ours(ours)[:3:2], *cells])
    header = ["round", "nodes", "tasks", "prices (s)", "gap (%)"]
    for gap in GAPS["highs"]:
        header += [f"HiGHS to {gap:.0%} (s)", "its gap (%)"]
    return markdown(header, rows)


def _size(own: pd.DataFrame) -> list[str]:
    family, nodes = own.family.iloc[0], int(own.nodes.iloc[0])
    return [f"{family}", f"{nodes:,}", f"{FAMILIES[family][1] * nodes:,}"]


def _seconds(seconds: "pd.Series[float]") -> str:
    median = float(np.median(seconds.astype(float))) if len(seconds) else np.nan
    return "–" if np.isnan(median) else f"{median:.2g}" if median < 10 else f"{median:.0f}"


def _ours(own: pd.DataFrame) -> list[str]:
    mib = "–" if own.peak_rss_mib.isna().all() else f"{own.peak_rss_mib.max():,.0f}"
    return [_seconds(own.cpu_s), _seconds(own.total_s), _worst(own.gap), mib]


def _worst(gap: "pd.Series[float]") -> str:
    return "–" if gap.isna().all() else percent(float(gap.astype(float).max()), ".2f")


def _other(own: pd.DataFrame) -> list[str]:
    short = "–" if own.short.isna().all() else percent(float(own.short.mean()), ".1f")
    return [short, _seconds(own.cpu_s)]


def experiment(
    folder: Folder,
    seeds: tuple[int, ...],
    families: tuple[str, ...],
    nodes: tuple[float, ...],
    running: tuple[float, ...],
    budget: float,
    solvers: tuple[str, ...],
    limit_s: float,
    into: Path | None,
) -> None:
    """Measure all rounds with all solvers, and write the tables."""
    pages = [] if into is None else [into]
    for page, section in product(pages, SECTIONS):
        fill_file(page, section)  # refuses a page without the marks before any work
    cases = list(cases_of(families, nodes, running, budget, solvers, seeds))
    lines = folder.measure([{**case, "limit_s": limit_s} for case in cases], measure)
    tables = tables_of(lines)
    folder.write("\n".join(tables.values()))
    for page, (section, table) in product(pages, tables.items()):
        fill_file(page, section, table)


command = study(
    "nodes",
    __doc__,
    experiment,
    [
        words("--families", tuple(FAMILIES), "Kinds of rounds."),
        numbers("--nodes", "50,100,200,1000,10000,100000", "Sizes of the clusters."),
        numbers("--running", "0.45,0.7", "Shares of the jobs that run, besides none."),
        option("--budget", type=float, default=0.05, help="Of disruptions, as a share of jobs."),
        words("--solvers", SOLVERS, "Who places."),
        seeds("0-2"),
        limit(120.0, "Seconds of HiGHS."),
        option("--into", type=click.Path(path_type=Path), help="A page with sections for them."),
    ],
)
