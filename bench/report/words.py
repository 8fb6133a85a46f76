"""The page's words and tables: a summary in sentences, the runs, and their provenance."""

import re
from collections.abc import Sequence
from math import isfinite, isnan
from typing import Any

from ronda.bench.figures.columns import COLUMNS, METRICS
from ronda.bench.report.folder import KINDS, Reported, by_label, sound
from ronda.bench.runs.results import Result
from ronda.bench.suites.rows import Pair, TableColumn, TableRow, given_up, partner
from ronda.bench.suites.suite import Ratio
from ronda.instances.tables.numbers import milliseconds, percent, seconds
from ronda.instances.tables.table import Best, Table
from ronda.solvers.own import IN_FILE

Cells = list[tuple[str, bool, float | None]]
"""A row of cells: each has a text, whether it is the best, and a number to sort by."""

SIZES = {
    "oracle": "knows true sizes",
    "declared": "knows declared sizes",
    "history": "learns sizes",
    "none": "looks at no sizes",
}
"""The words for a policy's knowledge of sizes in a sentence."""

MOST_TABLES = 5
"""The most tables of single workloads that are shown unfolded."""


def cells(table: Table) -> list[Cells]:
    """Return the rows of a table with numbers to sort them by."""
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
    """Return the tables to show, and the tables of single workloads to fold if there are many."""
    names = {name for r in found.results for name in (r.instance, r.workload)}
    own = [table for table in tables if table.title.partition(" · ")[0] in names]
    if len(own) <= MOST_TABLES:
        return list(tables), []
    return [table for table in tables if table not in own], own


def has_best(table: Table) -> bool:
    """Return whether the table highlights a number."""
    return any(isinstance(text, Best) for row in table.rows for text in row)


def _number(known: Any, text: str) -> float | None:
    """Return the number to sort a cell by: the known one, or the first in its text."""
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
    rows = (
        {"workload": r.workload, "policy": r.label, "seed": r.seed, "ended": str(r.status)}
        | {c.title: "–" if (v := r.metrics.get(c.key)) is None else c.write(v) for c in shown}
        | {"wall time (s)": seconds(r.wall_s)}
        for r in found.results
    )
    return Table.of("", rows, (), (r.metrics | {"wall_s": r.wall_s} for r in found.results))


def failures(found: Reported) -> list[str]:
    """Return the failures, one line per run."""
    return [f"{run.title}: {run.fault}" for run in found.results if run.fault]


def contents(found: Reported) -> str:
    """Return a sentence about the contents of the folder."""
    if not found.results:
        return f"The answer of ronda {KINDS[found.kind]}."
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
    """Return the findings: each workload's best policy, how certain that is, and who knows sizes.

    The ranking has only policies whose runs all ended well and gave up no job, on every instance of
    the workload. The user's own policies are named whatever their rank.
    """
    made = []
    for name, every in found.workloads.items():
        runs, drawn = by_label(every), {run.fingerprint for run in every}
        jct_s = {
            label: _mean(own, "mean_jct_s")
            for label, own in sound(every).items()
            if {run.fingerprint for run in own} == drawn and "mean_jct_s" in own[0].metrics
            if not given_up(own)
        }
        if len(jct_s) < 2:
            continue
        best, *others = order = sorted(jct_s, key=jct_s.__getitem__)
        text = f"{name}: {best} ({_knows(runs[best])}) has the shortest mean JCT, "
        text += seconds(jct_s[best]) + " s"
        if (gap := _mean(runs[best], "gap_mean_jct")) is not None:
            text += f", {percent(gap)} % above a clairvoyant bound"
            text += f" ({proof})" if (proof := runs[best][0].metrics.get("bound_proof")) else ""
        if (median_s := _mean(runs[best], "median_solve_s")) is not None:
            text += f", and decides within {milliseconds(median_s)} ms in the median"
        for k, label in enumerate(others):
            own = re.match(IN_FILE, label)
            if k and not own:
                continue
            text += f". {'Your policy ' if own else ''}{label} ({_knows(runs[label])}) is number "
            text += f"{k + 2} of {len(order)} with {seconds(jct_s[label])} s, "
            text += _against(runs[label], runs[best])
        if left := [label for label in runs if label not in jct_s]:
            text += f". Not ranked, as runs failed, gave jobs up or are missing: {', '.join(left)}"
        made.append(f"{text}.")
    return made


def _knows(runs: Sequence[Result]) -> str:
    known = str(runs[0].metrics.get("knowledge"))
    return SIZES.get(known, "it is not known of what sizes")


def _against(ours: Sequence[Result], best: Sequence[Result]) -> str:
    """Say how many times longer `ours` takes than `best`, and whether that may be chance."""
    pairs = []
    for run in ours:
        same = [other for other in best if other.fingerprint == run.fingerprint]
        pairs.append(Pair(run, partner(run, same), {"seed": f"{run.seed}"}))
    row = TableRow((), tuple(pairs), Ratio(to={}))
    shown = TableColumn(METRICS["mean_jct_s"], "interval")
    ratio = row.value(shown)
    text = f"by pairs {shown.cell(ratio)} times as long"
    if isnan(ratio.low):
        return f"{text}, which of one pair may be chance"
    return f"{text}: they are not told apart" if ratio.low <= 1.0 <= ratio.high else text


def _mean(runs: Sequence[Result], metric: str) -> Any:
    values = [run.metrics[metric] for run in runs if metric in run.metrics]
    return sum(values) / len(values) if values else None


def provenance(found: Reported) -> dict[str, list[str]]:
    """Return the origin of the numbers: distinct versions, commits, machines and limits."""
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
