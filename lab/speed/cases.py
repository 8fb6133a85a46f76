"""The table of cases: what can be timed, with which options, and the line of each."""

import inspect
import math
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple, TypeVar

import click

from lab.program import Above0
from ronda.bench.runs.provenance import host
from ronda.bench.runs.runner import peak_rss_mib
from ronda.instances.generate import SEVERITIES
from ronda.solvers.versions import versions

FIELDS = (
    *("case", "jobs", "gpus", "options", "total_s", "build_s", "solve_s", "gap", "baseline_s"),
    *("ratio", "peak_rss_mib"),
)
"""Fields of every line; null where a case has no such number."""

OPTIONS: dict[str, dict[str, Any]] = {
    "baseline": {"is_flag": True, "help": "Measure the monolithic model, too."},
    "gap": {"type": Above0(below=1), "help": "Relative gap to reach."},
    "limit_s": {
        "type": Above0(),
        "help": "Seconds: of the baseline, in `pools` of the engine, in `deadlines` of a decision, "
        "in `nodes` of prices or highs.",
    },
    "seed": {"type": click.IntRange(0), "help": "Of what is generated."},
    "gpus": {"type": click.IntRange(1), "help": "As the severity says by default."},
    "severity": {"type": click.Choice(sorted(SEVERITIES)), "help": "How scarce things are."},
    "policy": {"help": "A policy, with its parameters."},
    "processor": {"is_flag": True, "help": "Let the limit count the time of this process alone."},
    "solver": {
        "help": "prices or highs; for pools cp-sat, ..., simplex, ipm, pdlp, or pop-4: parts; for "
        "nodes best-fit or price-greedy."
    },
    "types": {"type": click.IntRange(1), "help": "GPU types, each with a pool."},
    "family": {"type": click.Choice(["openb", "azure", "blocks"]), "help": "Of what is generated."},
    "nodes": {"type": click.IntRange(1), "help": "Of the cluster."},
    "running": {"type": click.FloatRange(0, 1), "help": "Share of the tasks that run now."},
    "most_disrupted": {"type": click.IntRange(0), "help": "The most that may stop or move."},
    "kind": {"type": click.Choice(["hosts", "awkward", "gangs"]), "help": "Kind of jobs."},
    "gpus_per_node": {"type": click.IntRange(1), "help": "Of each node."},
    "rounds": {"type": click.IntRange(1), "help": "Decisions, one after another."},
    "decisions": {"type": click.IntRange(1), "help": "Rounds, one after another."},
    "requests": {"type": click.IntRange(10), "help": "Rounds to post."},
    "clients": {"type": click.IntRange(1), "help": "That post at the same time."},
    "workers": {"type": click.IntRange(1), "help": "Processes that decide."},
}
"""What the parameters of cases mean on the command line."""

Measure = Callable[..., dict[str, Any]]
Found = TypeVar("Found")


class SpeedCase(NamedTuple):
    """A function of jobs and options that finds fields of a line, and its usual numbers of jobs."""

    measure: Measure
    jobs: str

    @property
    def options(self) -> dict[str, Any]:
        """The options besides ``--jobs``, with their defaults."""
        given = inspect.signature(self.measure).parameters.values()
        return {one.name: one.default for one in given if one.name != "jobs"}


CASES: dict[str, SpeedCase] = {}


def case(jobs: str = "") -> Callable[[Measure], Measure]:
    """Enter a function in the table by its name; its docstring is the help of its command."""

    def enter(measure: Measure) -> Measure:
        CASES[measure.__name__.removeprefix("measure_")] = SpeedCase(measure, jobs)
        return measure

    return enter


def line_of(name: str, jobs: int, options: dict[str, Any]) -> dict[str, Any]:
    """Carry out one measurement in this process and return its line."""
    found = CASES[name].measure(jobs, **options)
    line: dict[str, Any] = dict.fromkeys(FIELDS) | {"case": name, "jobs": jobs} | options | found
    if line["peak_rss_mib"] is None:
        line["peak_rss_mib"] = round(peak_rss_mib(), 1)
    if line["baseline_s"]:
        line["ratio"] = line["baseline_s"] / line["total_s"]
    return line | {"host": host(), "versions": versions()}


def timed(work: Callable[[], Found], repeats: int = 1) -> tuple[Found, float, float]:
    """Return what a call finds, and its median seconds: by the clock, and of this process."""
    wall_s, cpu_s = [math.nan] * repeats, [math.nan] * repeats
    for k in range(repeats):
        began, began_cpu = time.perf_counter(), time.process_time()
        found = work()
        wall_s[k], cpu_s[k] = time.perf_counter() - began, time.process_time() - began_cpu
    return found, median(wall_s), median(cpu_s)


def tell(text: str) -> None:
    """Say on stderr how far a measurement is."""
    print(text, file=sys.stderr, flush=True)
