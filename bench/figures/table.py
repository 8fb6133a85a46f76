"""The table of a comparison: one block per instance, one row per policy, means over the seeds."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from ronda.bench.runs.results import Result


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the metric it shows, its title, and how a number is written.

    `best` says whether the smallest number is the best one and is to stand out; metrics that are
    neither good nor bad in themselves have no best.
    """

    key: str
    title: str
    write: Callable[[float], str]
    best: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one place of the table."""

    text: str
    best: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A policy on an instance. `note` says what is wrong with it, if anything."""

    label: str
    runs: int
    note: str
    means: dict[str, float]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """All policies on one instance."""

    instance: str
    jobs: int
    bound_mean_jct_s: float
    rows: tuple[Row, ...]


def seconds(value: float) -> str:
    """Write seconds: whole from a hundred on, four significant digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def milliseconds(value: float) -> str:
    """Write seconds as milliseconds with three significant digits."""
    return f"{value * 1e3:,.0f}" if value >= 0.1 else f"{value * 1e3:.3g}"


def joules(value: float) -> str:
    """Write joules in the unit that leaves one to three digits before the point."""
    if value == 0:
        return "–"  # an instance without power data
    for size, unit in ((1e12, "TJ"), (1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")):
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} J"


def percent(value: float) -> str:
    """Write a share as percent with one decimal."""
    return f"{value * 100:,.1f}"


def count(value: float) -> str:
    """Write a number of things, or the mean of some."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


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
)


def blocks(results: Iterable[Result]) -> tuple[Block, ...]:
    """Arrange results by instance and policy, in the order in which they come.

    Numbers are means over the seeds of a policy. The mean JCT of several seeds carries their
    standard deviation. Only policies that ended on every seed, without a violation, can be best.
    """
    grouped: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for result in results:
        policies = grouped.setdefault((result.instance, result.fingerprint), {})
        policies.setdefault(result.label, []).append(result)
    return tuple(_block(name, policies) for (name, _), policies in grouped.items())


def _block(instance: str, policies: dict[str, list[Result]]) -> Block:
    """Make the block of an instance."""
    fair = {label: _note(runs) == "" for label, runs in policies.items()}
    means = {label: _means(runs) for label, runs in policies.items()}
    lowest: dict[str, float] = {}
    for column in COLUMNS:
        values = [means[p][column.key] for p in policies if fair[p] and column.key in means[p]]
        if column.best and len(values) > 1 and min(values) < max(values):
            lowest[column.key] = min(values)
    rows = []
    for label, runs in policies.items():
        cells = [
            Cell(
                _text(column, runs, means[label]), fair[label] and _is(lowest, column, means[label])
            )
            for column in COLUMNS
        ]
        rows.append(Row(label, len(runs), _note(runs), means[label], tuple(cells)))
    known = [m for m in means.values() if m]
    return Block(
        instance,
        int(max((m["jobs"] for m in known), default=0)),
        max((m.get("bound_mean_jct_s", 0.0) for m in known), default=0.0),
        tuple(rows),
    )


def _is(lowest: dict[str, float], column: Column, means: dict[str, float]) -> bool:
    """Tell whether a policy is the best in a column."""
    return column.key in lowest and means.get(column.key) == lowest[column.key]


def _means(runs: list[Result]) -> dict[str, float]:
    """Return the mean over the seeds of every number, if there is any run that ended."""
    ended = [run.metrics for run in runs if run.ok]
    keys = [k for k, v in ended[0].items() if isinstance(v, (int, float))] if ended else []
    return {key: fmean(float(metrics[key]) for metrics in ended) for key in keys}


def _text(column: Column, runs: list[Result], means: dict[str, float]) -> str:
    """Write one number."""
    if column.key not in means:
        return "–"
    text = column.write(means[column.key])
    values = [float(run.metrics[column.key]) for run in runs if run.ok]
    if column.key == "mean_jct_s" and len(values) > 1:
        text += f" ± {column.write(stdev(values))}"
    return text


def _note(runs: list[Result]) -> str:
    """Say what went wrong in a policy's runs; empty if nothing did."""
    failed = Counter(str(run.status) for run in runs if not run.ok)
    words = [f"{number} of {len(runs)} {status}" for status, number in failed.items()]
    broken = sum(bool(run.metrics.get("violations")) for run in runs if run.ok)
    if broken:
        words.append(f"{broken} of {len(runs)} with violations")
    return ", ".join(words)


def title(block: Block) -> str:
    """Write the heading of a block."""
    words = [block.instance]
    if block.jobs:
        words.append(f"{block.jobs:,} jobs")
    if block.bound_mean_jct_s > 0:
        words.append(f"no scheduler can reach a mean JCT below {block.bound_mean_jct_s:,.0f} s")
    return " · ".join(words)


def row_label(row: Row) -> str:
    """Write the name of a row: the policy, how many seeds, and what is wrong."""
    seeds = f"{row.runs} seeds" if row.runs > 1 else ""
    extra = ", ".join(filter(None, (seeds, row.note)))
    return f"{row.label} ({extra})" if extra else row.label


def markdown(tables: Iterable[Block]) -> str:
    """Write the blocks as Markdown."""
    lines = []
    for block in tables:
        lines += [f"### {title(block)}", ""]
        lines.append("| policy | " + " | ".join(column.title for column in COLUMNS) + " |")
        lines.append("|---" + "|--:" * len(COLUMNS) + "|")
        for row in block.rows:
            texts = (f"**{cell.text}**" if cell.best else cell.text for cell in row.cells)
            lines.append(f"| {row_label(row)} | " + " | ".join(texts) + " |")
        lines.append("")
    return "\n".join(lines)
