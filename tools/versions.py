"""``python -m tools.versions``: what each version of ronda makes of the same runs."""

import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import msgspec
import numpy as np

from lab.program import CONTEXT, run_program
from ronda.bench.figures.columns import METRICS
from ronda.bench.runs.results import RESULTS, Result, results_in
from ronda.bench.suites.diff import TIMED, FigureChange, change
from ronda.bench.tables import fill_file
from ronda.cli.command import Taught
from ronda.cli.options import FOLDER, into_option, json_option
from ronda.cli.output import display, emit
from ronda.instances.base import Index, Name, Record
from ronda.instances.errors import InputError
from ronda.instances.files import canonical, storage
from ronda.instances.files import json as files
from ronda.instances.instance import DECLARED, Knowledge
from ronda.instances.tables.table import Best, Table
from tools.registry.records import DATA

PART = "versions"
"""The name of the marks between which a page has the tables."""

FILE = "versions.json"

FIGURES = ("mean_jct_s", TIMED)
"""The figures that are kept of a run: less is better."""


class VersionRun(Record, frozen=True, kw_only=True):
    """A run: its workload, seed and limits, and its figures, or in words why it failed."""

    fingerprint: str
    seed: Index
    time_limit_s: float | None = None
    period_s: float | None = None
    failed: str = ""
    mean_jct_s: float | None = None
    median_solve_s: float | None = None

    @property
    def of(self) -> tuple[Any, ...]:
        """The subject of the run: runs of two versions with the same one are compared."""
        return self.fingerprint, self.seed, self.time_limit_s, self.period_s


class VersionRecord(Record, frozen=True, kw_only=True):
    """The runs of a policy on an instance, with its changes, by a version; `date` of the last."""

    instance: Name
    policy: Name
    knowledge: Knowledge
    version: Name
    commit: str
    date: str
    cpu: str
    runs: tuple[VersionRun, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The subject of a record, by which they are sorted; versions by their numbers."""
        release, rest = re.findall(r"^([\d.]*)(.*)", self.version)[0]
        order = [int(digits) for digits in release.split(".") if digits], not rest, rest
        return self.instance, self.policy, self.knowledge, order

    @property
    def title(self) -> tuple[str, str]:
        """The instance and the policy, as tables call them."""
        known = "" if self.knowledge == DECLARED else f" [{self.knowledge}]"
        return self.instance, f"{self.policy}{known}"

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return sum(bool(run.failed) for run in self.runs)

    def figures(self, name: str) -> list[float]:
        """Return a figure of each run that has it."""
        told = (getattr(run, name) for run in self.runs if not run.failed)
        return [value for value in told if value is not None]


class VersionHistory(Record, frozen=True, kw_only=True):
    """The file: one record of each instance, policy, knowledge and version."""

    format: Literal["ronda/versions/1"] = "ronda/versions/1"
    records: tuple[VersionRecord, ...] = ()

    def with_records(self, new: Iterable[VersionRecord]) -> "VersionHistory":
        """Return it sorted and with new records, each in the place of the one of the same key."""
        kept = {str(record.key): record for record in (*self.records, *new)}
        return VersionHistory(records=tuple(sorted(kept.values(), key=lambda each: each.key)))


def load(folder: Path) -> VersionHistory:
    """Return the history in a folder."""
    path = folder / FILE
    return files.parse(storage.read_bytes(path), storage.label(path), VersionHistory)


def store(history: VersionHistory, folder: Path) -> None:
    """Write the file, a line a record."""
    lines = b",\n".join(canonical.encode(record) for record in history.records)
    head = f'{{"format":"{history.format}","records":[\n'.encode()
    storage.write_bytes(folder / FILE, head + lines + b"\n]}\n")


def measured(results: Iterable[Result], date: str) -> list[VersionRecord]:
    """Return the records of a comparison's results."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for run in results:
        policy = run.label.removesuffix(f" [{run.level}]")
        version = run.versions.get("ronda", "unknown")
        groups.setdefault((run.workload, policy, run.level, version), []).append(run)
    return [
        VersionRecord(
            instance=instance,
            policy=policy,
            knowledge=own[0].level,
            version=version,
            commit=", ".join(sorted({run.commit for run in own})),
            date=date,
            cpu=", ".join(sorted({str(run.host.get("cpu", "")) for run in own})),
            runs=tuple(map(_kept, own)),
        )
        for (instance, policy, _, version), own in groups.items()
    ]


def _kept(run: Result) -> VersionRun:
    failed = run.fault
    return VersionRun(
        fingerprint=run.fingerprint,
        seed=run.seed,
        time_limit_s=run.time_limit_s,
        period_s=run.period_s,
        failed=failed,
        **{name: None if failed else run.metrics.get(name) for name in FIGURES},
    )


class JudgedRecord(NamedTuple):
    """A record, the changes of its figures from the last version before that has the row, if any.

    `newly` counts the runs that fail and did not; without pairs of runs there are no changes.
    """

    record: VersionRecord
    before: str
    changes: dict[str, FigureChange]
    newly: int

    def text(self, figure: str) -> str:
        """Return the cell of the table of a figure."""
        own, write = self.record.figures(figure), METRICS[figure].write
        spread = f" ± {write(float(np.std(own, ddof=1)))}" if len(own) > 1 else ""
        parts = [f"{write(float(np.mean(own)))}{spread}"] if own else []
        if self.record.failed:
            new = f", {self.newly} new" if self.newly else ""
            parts.append(f"{self.record.failed} of {len(self.record.runs)} failed{new}")
        if self.before:
            parts.append(self.changes[figure].text if self.changes else "not compared")
        return Best("; ".join(parts)) if self.worse(figure) else "; ".join(parts)

    def worse(self, figure: str) -> bool:
        """Whether it is a regression: beyond noise, or by a run that fails and did not."""
        return bool(self.newly) or (
            figure in self.changes and self.changes[figure].verdict == "worse"
        )

    def fields(self) -> dict[str, Any]:
        """Return it for programs."""
        told = {n: c.ratio._asdict() | {"verdict": c.verdict} for n, c in self.changes.items()}
        about = {"before": self.before, "newly_failed": self.newly, "changes": told}
        return {**msgspec.to_builtins(self.record), **about}


def judged(history: VersionHistory) -> list[JudgedRecord]:
    """Hold every record against the version before it."""
    found, last = [], dict[tuple[str, str], VersionRecord]()
    for new in history.with_records(()).records:
        old = last.get(new.title)
        last[new.title] = new
        there = {run.of: run for run in old.runs} if old else {}
        pairs = [(there[run.of], run) for run in new.runs if run.of in there]
        newly = sum(bool(b.failed) and not a.failed for a, b in pairs)
        changes = {name: _changed(pairs, name) for name in FIGURES} if pairs else {}
        if old and pairs and old.cpu != new.cpu and changes[TIMED].verdict in {"better", "worse"}:
            changes[TIMED] = FigureChange(changes[TIMED].ratio, "noise")
        found.append(JudgedRecord(new, old.version if old else "", changes, newly))
    return found


def _changed(pairs: Sequence[tuple[VersionRun, VersionRun]], name: str) -> FigureChange:
    """Return how a figure changed over the runs that ended on both sides."""
    both = [pair for pair in pairs if not pair[0].failed and not pair[1].failed]
    told = [[getattr(run, name) for run in pair] for pair in both]
    before, after = np.array(told, dtype=float).reshape(-1, 2).T
    return change(before, after, timed=name == TIMED)


def tables_of(found: Sequence[JudgedRecord]) -> list[Table]:
    """Return a table for each figure: a row for each policy on an instance, a column a version."""
    records = [each.record for each in found]
    versions = list(dict.fromkeys(r.version for r in sorted(records, key=lambda r: r.key[-1])))
    tables = []
    for figure in FIGURES:
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for each in found:
            rows.setdefault(each.record.title, {})[each.record.version] = each.text(figure)
        cells = tuple((*row, *(own.get(v, "–") for v in versions)) for row, own in rows.items())
        notes = (*_regressions(found, figure, versions), *_origins(records, versions))
        tables.append(
            Table(METRICS[figure].title, ("instance", "policy", *versions), cells, tuple(notes))
        )
    return tables


def _regressions(found: Sequence[JudgedRecord], figure: str, versions: Sequence[str]) -> list[str]:
    """Name the regressions, or say that there are none, or can be none."""
    if len(versions) < 2:
        return [f"{v} is the only version measured: nothing to compare with" for v in versions]
    worse = [each for each in found if each.worse(figure)]
    titles = [(" ".join(each.record.title), each.record.version, each.before) for each in worse]
    words = [f"regression: {title} in {new}, from {old}" for title, new, old in titles]
    return words or ["no regression beyond noise"]


def _origins(records: Sequence[VersionRecord], versions: Sequence[str]) -> Iterable[str]:
    """Yield how many runs there are of each version, of which days and commits."""
    for version in versions:
        own = [record for record in records if record.version == version]
        days, commits = (sorted({getattr(r, n) for r in own}) for n in ("date", "commit"))
        runs = sum(len(record.runs) for record in own)
        yield f"{version}: {runs} runs, {', '.join(days)}, {', '.join(commits)}"


@click.command(
    cls=Taught,
    context_settings=CONTEXT,
    examples=(
        "python -m tools.versions                 the tables of what is known; reads no results",
        "python -m tools.versions out --data tools/data --into docs/benchmarks/versions.md",
    ),
)
@click.argument("folders", metavar="[DIR]...", type=FOLDER, nargs=-1)
@click.option(
    "--data",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder of versions.json, such as tools/data; without it none is changed.",
)
@into_option(PART)
@json_option
def command(
    folders: tuple[Path, ...], data: Path | None, into: tuple[Path, ...], as_json: bool
) -> None:
    """Add the results of comparisons to those of earlier versions, and show what became worse.

    Each DIR is a folder of `ronda compare`. What was known of the same instance, policy, knowledge
    and version is replaced. A figure is a regression if it is worse beyond noise, as in `ronda
    bench diff`, or a run fails that did not.
    """
    if folders and data is None:
        raise InputError("--data", "none", "the folder of the results that are to change")
    for page in into:
        fill_file(page, PART)  # one without the marks is told before any work
    folder = data or DATA
    new = not (folder / FILE).exists() and folder.is_dir() and folders
    history = VersionHistory() if new else load(folder)
    for each in folders:
        results = results_in(each)
        day = datetime.fromtimestamp((each / RESULTS).stat().st_mtime, UTC)
        history = history.with_records(measured(results, f"{day:%Y-%m-%d}"))
    if folders:
        store(history, folder)
    found = judged(history)
    tables = tables_of(found)
    for page in into:
        fill_file(page, PART, "\n".join(table.markdown() for table in tables))
    if as_json:
        emit({"records": [each.fields() for each in found]})
    else:
        display(*tables)


if __name__ == "__main__":
    sys.exit(run_program(command, "python -m tools.versions"))
