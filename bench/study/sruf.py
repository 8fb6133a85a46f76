"""Searches against the least SRUF: ``python -m ronda.bench.study.sruf --seeds 0-19``.

Generated snapshots (`ronda.bench.study.sruf_snapshot.generate`) of every size and seed, each
searched by `ronda.bench.study.sruf_searches`; the gap is to the optimum of dynamic programming.
Every run adds a JSON line to ``sruf.jsonl`` in the folder, and runs that have one are not repeated.
The table goes to stdout and ``sruf.md``.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median

import msgspec

from ronda.bench.runs.provenance import host
from ronda.bench.runs.results import read_records
from ronda.bench.runs.specs import parse_seeds
from ronda.bench.study.sruf_searches import SEARCHES, timed
from ronda.bench.study.sruf_snapshot import SIZES, generate, optimum
from ronda.instances.base import Record
from ronda.instances.errors import InputError, RondaError
from ronda.instances.files.storage import store
from ronda.solvers.versions import versions


class Run(Record, frozen=True, kw_only=True):
    """One search of one snapshot.

    Attributes
    ----------
    gpus, jobs, seed, search, limit_s
        What was asked for.
    score, optimum, gap
        What was found, the least score, and ``score / optimum - 1``.
    wall_s, evaluations
        What it took.
    versions, host
        What ran it, and where.
    """

    gpus: int
    jobs: int
    seed: int
    search: str
    limit_s: float
    score: float
    optimum: float
    gap: float
    wall_s: float
    evaluations: int
    versions: dict[str, str] = {}
    host: dict[str, object] = {}

    @property
    def key(self) -> tuple[int, int, int, str, float]:
        """What was asked for."""
        return (self.gpus, self.jobs, self.seed, self.search, self.limit_s)


def measure(gpus: int, jobs: int, seed: int, search: str, limit_s: float) -> Run:
    """Search one snapshot."""
    problem = generate(gpus, jobs, seed)
    best = float(problem.score(optimum(problem)))
    score, wall_s, evaluations = timed(SEARCHES[search], problem, seed, limit_s)
    return Run(
        gpus=gpus,
        jobs=jobs,
        seed=seed,
        search=search,
        limit_s=limit_s,
        score=score,
        optimum=best,
        gap=score / best - 1.0,
        wall_s=wall_s,
        evaluations=evaluations,
        versions=versions(),
        host=host(),
    )


def read(path: Path) -> list[Run]:
    """Return the runs of a file (`ronda.bench.runs.results.read_records`)."""
    return read_records(path, Run, "a line of this bench")


def table(runs: Sequence[Run]) -> str:
    """Return gaps and times by size and search, in Markdown."""
    lines = [
        "| GPUs, jobs | search | seeds | mean gap (%) | median | worst | mean time (s) |",
        "| --- | --- | --: | --: | --: | --: | --: |",
    ]
    for gpus, jobs, search in dict.fromkeys((r.gpus, r.jobs, r.search) for r in runs):
        own = [r for r in runs if (r.gpus, r.jobs, r.search) == (gpus, jobs, search)]
        gaps = [100 * r.gap for r in own]
        numbers = f"{fmean(gaps):.2f} | {median(gaps):.2f} | {max(gaps):.2f}"
        took = fmean(r.wall_s for r in own)
        lines.append(f"| {gpus}, {jobs} | {search} | {len(own)} | {numbers} | {took:.3g} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and print the table; return the exit code."""
    from rich.console import Console
    from rich.progress import track

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-19", help="as in 0-19 or 0,3,5")
    parser.add_argument("--searches", default=",".join(SEARCHES), help="separated by commas")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds for each search")
    parser.add_argument("--out", type=Path, default=Path("sruf-out"), help="folder")
    asked = parser.parse_args(arguments)
    try:
        todo = _todo(asked.seeds, asked.searches, asked.limit)
        path = asked.out / "sruf.jsonl"
        runs = {run.key: run for run in read(path)}
        asked.out.mkdir(parents=True, exist_ok=True)
        missing, console = [key for key in todo if key not in runs], Console(stderr=True)
        for key in track(missing, "searches", console=console, transient=True):
            runs[key] = measure(*key)
            store(path, b"".join(msgspec.json.encode(run) + b"\n" for run in runs.values()))
        made = table([runs[key] for key in todo])
        store(asked.out / "sruf.md", made.encode())
    except RondaError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    sys.stdout.write(made)
    return 0


def _todo(seeds: str, searches: str, limit_s: float) -> list[tuple[int, int, int, str, float]]:
    """Return the keys of all runs that are asked for."""
    names = [name.strip() for name in searches.split(",")]
    unknown = next((name for name in names if name not in SEARCHES), None)
    if unknown is not None:
        raise InputError("--searches", repr(unknown), "one of " + ", ".join(SEARCHES))
    if not limit_s > 0:
        raise InputError("--limit", f"{limit_s:g}", "a number of seconds above 0")
    every = product(SIZES, names, parse_seeds(seeds))
    return [(gpus, jobs, seed, name, limit_s) for (gpus, jobs), name, seed in every]


if __name__ == "__main__":
    sys.exit(main())
