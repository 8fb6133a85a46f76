"""The table of a comparison: one block an instance, one row a policy, means over the seeds."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isnan
from statistics import fmean, stdev

from ronda.bench.figures.table import (
    Best,
    Table,
    count,
    fine_percent,
    joules,
    milliseconds,
    percent,
    seconds,
)
from ronda.bench.runs.results import Result


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its metric, its title, how a number is written, and whether the least is `best`."""

    key: str
    title: str
    write: Callable[[float], str]
    best: bool = False


COLUMNS = (
    Column("mean_jct_s", "mean JCT (s)", seconds, best=True),
    Column("p95_jct_s", "p95 JCT (s)", seconds, best=True),
    Column("p99_jct_s", "p99 JCT (s)", seconds, best=True),
    Column("mean_queue_s", "queueing (s)", seconds, best=True),
    Column("makespan_s", "makespan (s)", seconds, best=True),
    Column("energy_j", "energy", joules, best=True),
    Column("gpu_utilisation", "GPUs used (%)", percent),
    Column("gap_mean_jct", "gap to bound (%)", percent, best=True),
    Column("restarts_per_job", "restarts/job", count),
    Column("rounds", "decisions", count),
    Column("median_solve_s", "median solve (ms)", milliseconds, best=True),
    Column("p99_solve_s", "p99 solve (ms)", milliseconds, best=True),
    Column("overruns", "overruns", count),
    Column("mean_round_gap", "round gap (%)", fine_percent, best=True),
    Column("proven_rounds", "rounds proven (%)", percent),
)

SEARCHES = (
    Column("mean_best_s", "time to the best (s)", seconds, best=True),
    Column("mean_best_gpu_s", "GPU-seconds to it", seconds, best=True),
    Column("missed_sweeps", "sweeps without it", count),
    Column("discarded_jobs", "trials given up", count),
)
"""Of instances with sweeps: until a loss within 1 % of the least was reported."""


@dataclass(frozen=True, slots=True)
class Row:
    """A policy on an instance: its runs, one a seed, and the means of their numbers."""

    label: str
    runs: tuple[Result, ...]
    means: dict[str, float]

    @classmethod
    def of(cls, label: str, runs: Iterable[Result]) -> "Row":
        """Return the row of some runs; without one that ended it has no means."""
        runs = tuple(runs)
        ended = [run.metrics for run in runs if run.ok]
        keys = [k for k, v in ended[0].items() if isinstance(v, (int, float))] if ended else []
        means = {key: fmean(float(metrics[key]) for metrics in ended) for key in keys}
        return cls(label, runs, means)

    @property
    def note(self) -> str:
        """What went wrong in its runs; empty if nothing did."""
        total = len(self.runs)
        failed = Counter(str(run.status) for run in self.runs if not run.ok)
        words = [f"{number} of {total} {status}" for status, number in failed.items()]
        broken = sum(bool(run.metrics.get("violations")) for run in self.runs if run.ok)
        if broken:
            words.append(f"{broken} of {total} with violations")
        return ", ".join(words)

    @property
    def knowledge(self) -> str:
        """Where it has the sizes of jobs from; – if no run ended."""
        return next((str(r.metrics.get("knowledge", "–")) for r in self.runs if r.ok), "–")

    @property
    def title(self) -> str:
        """The policy, how many seeds, and what is wrong."""
        seeds = f"{len(self.runs)} seeds" if len(self.runs) > 1 else ""
        extra = ", ".join(filter(None, (seeds, self.note)))
        return f"{self.label} ({extra})" if extra else self.label

    def text(self, column: Column) -> str:
        """Write one mean; that of the mean JCT with the standard deviation over seeds."""
        if column.key not in self.means:
            return "–"
        text = column.write(self.means[column.key])
        values = [float(run.metrics[column.key]) for run in self.runs if run.ok]
        if column.key == "mean_jct_s" and len(values) > 1:
            text += f" ± {column.write(stdev(values))}"
        return text


@dataclass(frozen=True, slots=True)
class Block:
    """All policies on one instance."""

    instance: str
    rows: tuple[Row, ...]

    @property
    def jobs(self) -> int:
        """Jobs of the instance; 0 if no run ended."""
        return int(self._most("jobs"))

    @property
    def bound_mean_jct_s(self) -> float:
        """Mean JCT that no scheduler can beat, in seconds; 0 if none is known."""
        return self._most("bound_mean_jct_s")

    def _most(self, key: str) -> float:
        return max((row.means.get(key, 0.0) for row in self.rows), default=0.0)

    @property
    def title(self) -> str:
        """The instance, its jobs and its bound."""
        words = [self.instance]
        if self.jobs:
            words.append(f"{self.jobs:,} jobs")
        if self.bound_mean_jct_s > 0:
            words.append(f"no scheduler can reach a mean JCT below {self.bound_mean_jct_s:,.0f} s")
        return " · ".join(words)

    def table(self) -> Table:
        """Return its table; only policies that ended well on every seed can be best."""
        searches = any("missed_sweeps" in row.means for row in self.rows)
        shown = COLUMNS + SEARCHES * searches
        columns = [self._column(column) for column in shown]
        names = [row.title for row in self.rows]
        known = [row.knowledge for row in self.rows]
        header = ("policy", "sizes", *(column.title for column in shown))
        return Table(self.title, header, tuple(zip(names, known, *columns, strict=True)))

    def _column(self, column: Column) -> list[str]:
        fair = [row.means.get(column.key) if not row.note else None for row in self.rows]
        values = [value for value in fair if value is not None and not isnan(value)]
        least = min(values) if column.best and values and min(values) < max(values) else None
        texts = [row.text(column) for row in self.rows]
        return [
            Best(text) if least is not None and value == least else text
            for value, text in zip(fair, texts, strict=True)
        ]


def blocks(results: Iterable[Result]) -> tuple[Block, ...]:
    """Arrange results by instance and policy, in the order in which they come."""
    grouped: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for result in results:
        policies = grouped.setdefault((result.instance, result.fingerprint), {})
        policies.setdefault(result.label, []).append(result)
    return tuple(
        Block(name, tuple(Row.of(label, runs) for label, runs in policies.items()))
        for (name, _), policies in grouped.items()
    )
