"""What the page says in words and tables: a summary in sentences, the runs, and how it was made."""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from ronda.bench.figures.columns import COLUMNS, METRICS
from ronda.bench.figures.table import Best, Table, milliseconds, percent, seconds
from ronda.bench.report.folder import KINDS, Reported
from ronda.bench.runs.results import Result

Cells = list[tuple[str, bool, float | None]]
"""Of a row: texts, whether each is the best, and by what number a column is sorted."""


MOST_TABLES = 5
"""Tables of single workloads that stand open."""


def cells(table: Table) -> list[Cells]:
    """Return the rows of a table with the numbers by which they are sorted."""
    keys = {column.title: column.key for column in METRICS.values()}
    made = []
    for k, row in enumerate(table.rows):
        record = table.records[k] if k < len(table.records) else {}
        made.append(
            [
                (text, isinstance(text, Best), _number(record.get(keys.get(name, "")), text))
                for name, text in zip(table.header, row, strict=True)
            ]
        )
    return made


def folded(found: Reported, tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """Return the tables to show, and those of single workloads if there are many: to fold."""
    names = {name for r in found.results for name in (r.instance, r.workload)}
    own = [table for table in tables if table.title.partition(" · ")[0] in names]
    if len(own) <= MOST_TABLES:
        return list(tables), []
    return [table for table in tables if table not in own], own


def has_best(table: Table) -> bool:
    """Return whether a number of it stands out."""
    return any(isinstance(text, Best) for row in table.rows for text in row)


def explained(table: Table) -> str:
    """Return what intervals in a table are, unless its notes say it."""
    said = any(note.startswith("±") for note in table.notes)
    spread = any(" ± " in text for row in table.rows for text in row)
    return "±: standard deviation of the runs." if spread and not said else ""


def _number(known: Any, text: str) -> float | None:
    """Return what a cell is sorted by: its number, or the first that its text holds."""
    if isinstance(known, int | float):
        return float(known) if isfinite(known) else None
    found = re.match(r"[×$]?(-?[\d.]+(?:e-?\d+)?)", text.replace(",", ""))
    try:
        return float(found[1]) if found else None
    except ValueError:
        return None


def runs(found: Reported) -> Table:
    """Return a row for each run."""
    shown = [c for c in COLUMNS if any(c.key in r.metrics for r in found.results)]
    rows = tuple(
        (
            r.workload,
            r.label,
            str(r.seed),
            str(r.status),
            *(c.write(v) if (v := r.metrics.get(c.key)) is not None else "–" for c in shown),
            seconds(r.wall_s),
        )
        for r in found.results
    )
    header = ("workload", "policy", "seed", "ended", *(c.title for c in shown), "wall time (s)")
    records = tuple(r.metrics | {"wall_s": r.wall_s} for r in found.results)
    return Table("", header, rows, (), records)


def failures(found: Reported) -> list[str]:
    """Return what went wrong, a line for each run."""
    made = [f"{r.title}: {r.status}: {r.message}" for r in found.results if not r.ok]
    broken = ((r, r.metrics.get("violations")) for r in found.results)
    return made + [f"{r.title}: it breaks {n} rules" for r, n in broken if n]


def contents(found: Reported) -> str:
    """Return what the folder is of, in a sentence."""
    seeds = {result.seed for result in found.results}
    counts = (
        (len(found.labels), "policy", "policies"),
        (len(found.workloads), "workload", "workloads"),
        (len(seeds), "seed", "seeds"),
    )
    many = ", ".join(f"{n:,} {one if n == 1 else more}" for n, one, more in counts)
    runs = len(found.results)
    return f"{many}: {runs:,} run{'s' * (runs != 1)} of ronda {KINDS[found.kind]}."


def summary(found: Reported) -> list[str]:
    """Return the findings in sentences: who is best on each workload, and how fast."""
    made = []
    for name, every in found.workloads.items():
        good = [r for r in every if r.ok and "mean_jct_s" in r.metrics]
        if len({r.label for r in good}) < 2:
            continue
        labels = dict.fromkeys(r.label for r in good)
        jct = {label: _mean(good, label, "mean_jct_s") for label in labels}
        best, second, *_ = sorted(jct, key=jct.__getitem__)
        text = f"{name}: {best} has the shortest mean JCT, {seconds(jct[best])} s"
        if (gap := _mean(good, best, "gap_mean_jct")) is not None:
            text += f", {percent(gap)} % above what no scheduler can beat"
        more = percent(jct[second] / jct[best] - 1)
        text += f"; {second} follows with {seconds(jct[second])} s ({more} % more)."
        if (median_s := _mean(good, best, "median_solve_s")) is not None:
            text += f" In the median {best} decides within {milliseconds(median_s)} ms."
        made.append(text)
    return made


def _mean(good: Sequence[Result], label: str, metric: str) -> Any:
    values = [r.metrics[metric] for r in good if r.label == label and metric in r.metrics]
    return sum(values) / len(values) if values else None


def provenance(found: Reported) -> dict[str, list[str]]:
    """Return where the numbers come from: different versions, commits and machines, each once."""
    hosts = [r.host for r in found.results if r.host]
    versions = [", ".join(f"{n} {v}" for n, v in r.versions.items()) for r in found.results]
    machines = [", ".join(f"{n.replace('_', ' ')} {v}" for n, v in host.items()) for host in hosts]
    limits = [
        f"{_limit(r.time_limit_s)} a decision, {_limit(r.timeout_s)} and "
        f"{'no limit' if r.memory_mib is None else f'{r.memory_mib:,.0f} MiB'} a run"
        for r in found.results
    ]
    made = {
        "versions": versions,
        "commit": [r.commit for r in found.results],
        "machine": machines,
        "limits": limits,
    }
    unknown = ["not recorded by this command"]
    return {n: list(dict.fromkeys(filter(None, each))) or unknown for n, each in made.items()}


def _limit(limit_s: float | None) -> str:
    return "no limit" if limit_s is None else f"{limit_s:g} s"


def configurations(found: Reported) -> Table:
    """Return a row for each policy with all its effective parameters."""
    known = {
        (r.label, r.policy, ", ".join(f"{k}={v}" for k, v in r.config.items()) or "none", r.level)
        for r in found.results
    }
    order = {label: k for k, label in enumerate(found.labels)}
    rows = tuple(sorted(known, key=lambda row: (order[row[0]], *row[1:])))
    return Table("", ("as written", "policy", "effective parameters", "knowledge"), rows)
