"""Greedy rules against the optimum: ``python -m ronda.bench.study.one_round``.

Over generated rounds, the mean JCT by PowerFlow's relative rule and by the two-price rule beside
the optimum of the same question (`ronda.bench.study.energy_snapshot`), which the price engine
certifies (`ronda.solvers.prices.engine`: dual bound and core MILP). Every job is served; the energy
budget is a share of what the full-speed greedy without an eye for energy uses. One JSON line a
round and budget; rounds that are there already, with a proof, are not computed again.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.progress import track

from ronda.bench.runs.provenance import host
from ronda.bench.study.energy_snapshot import (
    EnergySnapshot,
    by_relative_rule,
    by_two_prices,
    energy_snapshot,
    exact_problem,
    full_speed_j,
)
from ronda.bench.study.one_round_figure import draw, table
from ronda.bench.study.one_round_lines import Line, read_lines
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.search import Search
from ronda.solvers.versions import versions

GAP = 1e-4
FEWEST, MOST = 20, 400
GPUS_PER_JOB = (1.6, 3.2)
"""Of the clusters, in turn."""


def size(seed: int) -> tuple[int, int]:
    """Return the jobs (20 to 400, even in logarithm) and the GPUs of a round."""
    rng = np.random.default_rng([seed, 20230413])
    jobs = round(FEWEST * (MOST / FEWEST) ** float(rng.random()))
    return jobs, 8 * -(-round(jobs * GPUS_PER_JOB[seed % 2]) // 8)


def measure(seed: int, shares: Sequence[float], limit_s: float) -> Iterator[Line]:
    """Compare on one round, at each share of the reference's energy."""
    jobs, gpus = size(seed)
    case = energy_snapshot(generate.round(jobs, gpus, "loose", seed))
    reference_j = full_speed_j(case)
    for share in shares:
        budget_j = share * reference_j
        began = time.perf_counter()
        rules = [by_relative_rule(case, budget_j), by_two_prices(case, budget_j)]
        greedy_s = time.perf_counter() - began
        means = [None if chosen is None else case.mean_s(chosen) for chosen in rules]
        known = [mean for mean in means if mean is not None]
        found = _exact(case, budget_j, limit_s, min(known, default=None))
        yield Line(
            seed=seed,
            share=share,
            jobs=jobs,
            gpus=gpus,
            budget_j=budget_j,
            reference_j=reference_j,
            relative_s=means[0],
            prices_s=means[1],
            greedy_s=greedy_s,
            **found,
        )


def _exact(
    case: EnergySnapshot, budget_j: float, limit_s: float, known_s: float | None
) -> dict[str, Any]:
    """Solve the question to the gap, with the price engine's certificate.

    The best answer is no worse than `known_s`, which a rule has found.
    """
    problem, rows = exact_problem(case, budget_j)
    began = time.perf_counter()
    found = solve_separable(problem, Search(gap=GAP, deadline=Deadline(limit_s)))
    line: dict[str, Any] = {"options": len(rows), "solve_s": time.perf_counter() - began}
    if found.chosen is None:
        infeasible = found.stop is StopReason.INFEASIBLE
        return line | {"status": "infeasible" if infeasible else "limit", "optimum_s": known_s}
    optimum_s = case.mean_s(rows[found.chosen])
    if known_s is not None:
        optimum_s = min(optimum_s, known_s)
    bound_s = min(optimum_s, -found.bound / problem.jobs)
    proven = optimum_s - bound_s <= GAP * optimum_s
    return line | {
        "status": "proven" if proven else "limit",
        "optimum_s": optimum_s,
        "bound_s": bound_s,
    }


def compare(rounds: int, shares: Sequence[float], limit_s: float, out: Path) -> list[Line]:
    """Measure the rounds that the file lacks, or has without a proof; return all asked for."""
    there = {(line.seed, line.share): line for line in read_lines(out) if line.status != "limit"}
    if out.exists():
        whole = out.read_bytes().rfind(b"\n") + 1
        os.truncate(out, whole)
    out.parent.mkdir(parents=True, exist_ok=True)
    asked = [(seed, share) for seed in range(rounds) for share in shares]
    with out.open("ab") as file:
        for seed in track(range(rounds), "rounds", disable=not sys.stderr.isatty()):
            missing = [share for share in shares if (seed, share) not in there]
            for line in measure(seed, missing, limit_s):
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                there[seed, line.share] = line
    return [there[key] for key in asked]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, draw, and print one JSON object per budget and rule; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m ronda.bench.study.one_round",
        description=(__doc__ or "").partition("\n\n")[2],
    )
    parser.add_argument("--rounds", type=int, default=100, help="how many (default: 100)")
    parser.add_argument(
        "--budgets", default="1.0,0.8,0.7,0.6", help="shares of the reference's energy"
    )
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for each optimum")
    parser.add_argument("--out", type=Path, required=True, help="file of results, JSON lines")
    parser.add_argument("--picture", type=Path, help="the box plot, a PNG file")
    given = parser.parse_args(arguments)
    try:
        shares = [float(word) for word in given.budgets.split(",")]
        if given.rounds < 1 or not given.limit > 0 or not all(share > 0 for share in shares):
            raise ValueError
    except ValueError:
        found = f"--rounds {given.rounds} --budgets {given.budgets} --limit {given.limit:g}"
        print(f"error: {found}: expected numbers above 0", file=sys.stderr)
        return 2
    try:
        lines = compare(given.rounds, shares, given.limit, given.out)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for row in table(lines):
        print(json.dumps(row | {"host": host(), "versions": versions()}))
    if given.picture is not None:
        draw(lines, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
