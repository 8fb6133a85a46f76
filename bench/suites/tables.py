"""The tables of a suite, with the default or the suite's own layout, and the figure of a suite."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from typing import Any

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.bench.figures.columns import COLUMNS, METRICS, SEARCHES
from ronda.bench.runs.results import Result
from ronda.bench.runs.single import eaten
from ronda.bench.suites.cells import FIXED, Cell, Expanded, written
from ronda.bench.suites.rows import (
    KINDS,
    SIZES,
    Pair,
    TableColumn,
    TableRow,
    given_up,
    least_mean_jct_s,
    partner,
)
from ronda.bench.suites.suite import Ratio, Suite, TableSpec
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import one_of, show
from ronda.instances.tables.table import Numbered, Table

Results = Mapping[str, Result]
"""Results by the key of their case."""

USUAL = (TableColumn(None), TableColumn(COLUMNS[0], "spread"), *map(TableColumn, COLUMNS[1:]))
"""The default columns of a comparison."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """The layout of a table before any run; every axis and column that it names exists."""

    cells: Sequence[Cell]
    columns: tuple[TableColumn, ...]
    rows: tuple[str, ...] = ("policy",)
    axis: str = ""
    across: Sequence[str] = ()
    inside: tuple[TableColumn, ...] = ()
    ratio: Ratio | None = None
    title: str = ""
    usual: bool = False  # a default table: one instance, with jobs, bound and number of seeds

    @property
    def base(self) -> dict[str, str]:
        """The axes of the base, and its values as text."""
        return {axis: written(v) for axis, v in self.ratio.to.items()} if self.ratio else {}

    def lines(self, results: Results) -> list[TableRow]:
        """Return the rows, in the order of their first runs."""
        base, bases, found = self.base, dict[Any, list[Result]](), dict[Any, list[Pair]]()
        ended = [
            (cell.at, self._same(cell), run)
            for cell in self.cells
            if (run := results.get(cell.case.key)) is not None
        ]
        for at, same, run in ended:
            if base and base.items() <= at.items():
                bases.setdefault(same, []).append(run)
        for at, same, run in ended:
            row = tuple(at.get(axis, "") for axis in self.rows)
            found.setdefault(row, []).append(Pair(run, partner(run, bases.get(same, [])), at))
        return [TableRow(row, tuple(pairs), self.ratio) for row, pairs in found.items()]

    def _same(self, cell: Cell) -> Any:
        """Return the key that a run shares with its partner.

        The key contains the workload's fingerprint, or the instance if the base has another change.
        """
        apart = {"instance", "seed", *self.base}
        rest = frozenset((axis, value) for axis, value in cell.at.items() if axis not in apart)
        if self.base.keys() <= {"policy", "knowledge"}:
            return rest, cell.case.fingerprint
        return rest, "" if "instance" in self.base else cell.case.instance

    def table(self, results: Results) -> Table:
        """Return the table; only policies that ended well on every seed can be best."""
        lines = self.lines(results)
        inner = replace(self, rows=(*self.rows, self.axis)).lines(results) if self.axis else ()
        across = {line.at: self._across(line) for line in inner}
        columns = [_cells(lines, shown, self.rows) for shown in self.columns]
        rows = tuple(
            (
                *line.at[:-1],
                Numbered(self._name(line), self._head(line)),
                *(across.get((*line.at, value), Numbered("")) for value in self.across),
                *cells,
            )
            for line, *cells in zip(lines, *columns, strict=True)
        )
        heads = [v if self.axis in FIXED else f"{self.axis} {v}" for v in self.across]
        titles = [shown.title(self.base) for shown in self.columns]
        title = self.title
        if self.usual:
            about = self.about(results)
            title += f" · {about['jobs']:,} jobs" if about["jobs"] else ""
            if (bound_s := about["bound_mean_jct_s"]) > 0:
                title += f" · clairvoyant bound on mean JCT {bound_s:,.0f} s"
                proofs = (run.metrics.get("bound_proof") for line in lines for run in line.runs)
                known = ", ".join(dict.fromkeys(filter(None, proofs)))
                title += f" ({known})" * bool(known)
        return Table(title, (*self.rows, *heads, *titles), rows, self._notes(lines))

    def _head(self, line: TableRow) -> dict[str, Any]:
        axes = dict(zip(self.rows, line.at, strict=True))
        return axes | {"runs": len(line.pairs), "note": line.note}

    def _name(self, line: TableRow) -> str:
        """Return a row's value on its last axis, with the number of runs and their problems."""
        what = "workloads" if line.resampled else "seeds"
        counted = f"{len(line.pairs)} {what}" if len(line.pairs) > 1 and self.usual else ""
        alone = sum(pair.base is None for pair in line.pairs) if self.ratio else 0
        unpaired = f"{alone} of {len(line.pairs)} without a pair" if alone else ""
        said = ", ".join(filter(None, (counted, line.note, given_up(line.runs), unpaired)))
        return f"{line.at[-1]} ({said})" if said else line.at[-1]

    def _across(self, line: TableRow) -> Numbered:
        """Return a cell of the axis `across`: the first column's value, and others in brackets."""
        first, *more = (shown.cell(line.value(shown)) for shown in self.inside)
        told = ", ".join(filter(None, [*more, line.note]))
        at = f"{self.axis}={line.at[-1]}: "
        numbers = {at + name: v for each in (first, *more) for name, v in each.numbers.items()}
        return Numbered(f"{first} ({told})" if told else first, numbers)

    def _notes(self, lines: Sequence[TableRow]) -> tuple[str, ...]:
        counts = {len(line.pairs) for line in lines}
        each = (run.metrics.get("notes", ()) for line in lines for run in line.runs)
        notes = [*dict.fromkeys(chain.from_iterable(each))]
        shares = defaultdict[str, list[float]](list)
        for run in chain.from_iterable(line.runs for line in lines):
            shares[run.label].append(run.metrics.get("restart_share") or 0.0)
        notes += eaten(shares)
        kinds = {shown.kind for shown in (*self.inside, *self.columns)}
        drawn = any(line.resampled for line in lines)
        if counts - {1} and "spread" in kinds:
            more = ": over resampled workloads of an instance, its standard error" if drawn else ""
            notes.append(f"±: standard deviation of the runs{more}")
        if not self.usual and counts - {1}:
            ends = sorted({min(counts), max(counts)})
            notes.append(f"a row is the mean of {' to '.join(map(str, ends))} runs")
        if self.inside:
            cells = ", ".join(shown.title(self.base) for shown in self.inside)
            notes.append(f"by {self.axis}: {cells}")
        if self.ratio is not None:
            words = ", ".join(f"{axis} {value}" for axis, value in self.base.items())
            how = {"geometric": "geometric means of ratios"}.get(self.ratio.mean, "ratios of means")
            notes.append(f"/: {how} to {words}, pair by pair, each instance once")
            if len({frozenset(run.fingerprint for run in line.runs) for line in lines}) > 1:
                notes.append("only ratios of rows over the same workloads say who is better")
            over = "resampled workloads, by their standard error" if drawn else "seeds"
            told = f"[]: 95 % interval by Student's t over instances; of one instance over {over}"
            notes += [told] * ("interval" in kinds)
            notes += [f"lost: above {self.ratio.lost_above:g}"] * ("lost" in kinds)
        return tuple(notes)

    def about(self, results: Results) -> dict[str, Any]:
        """Return a default table for programs: its instance and the rows."""
        rows = self.fields(results)
        return {
            "instance": self.title,
            "jobs": int(max((row.get("jobs", 0) for row in rows), default=0)),
            "bound_mean_jct_s": least_mean_jct_s(line.runs for line in self.lines(results)),
            "policies": rows,
        }

    def fields(self, results: Results) -> list[dict[str, Any]]:
        """Return the rows for programs: axes, means, and the displayed ratios."""
        ratios = [shown for shown in (*self.inside, *self.columns) if shown.is_ratio]
        return [
            self._head(line)
            | line.means()
            | {f"{s.metric.key}/{s.kind}": line.value(s).value for s in ratios if s.metric}
            for line in self.lines(results)
        ]


def _cells(lines: Sequence[TableRow], shown: TableColumn, axes: Sequence[str]) -> list[str]:
    """Return a column of the table; it highlights the least value among comparable policies.

    A policy with a failure, or one that gave something up, is never highlighted.
    """
    if shown.metric is None:
        return [line.sizes for line in lines]
    found = [line.value(shown) for line in lines]
    groups: dict[tuple[str, ...], dict[int, float]] = {}
    for k, (line, (value, *_)) in enumerate(zip(lines, found, strict=True)):
        at = zip(axes, line.at, strict=True)
        rest = tuple(value for axis, value in at if axis not in {"policy", "knowledge"})
        if isfinite(value) and not (line.note or given_up(line.runs)):
            groups.setdefault(rest, {})[k] = value
    best = {
        k
        for fair in groups.values()
        for k, value in fair.items()
        if value == min(fair.values()) < max(fair.values())
    }
    judged = shown.metric.best and not shown.is_ratio
    return [shown.cell(each, best=judged and k in best) for k, each in enumerate(found)]


def usual(expanded: Expanded, results: Results) -> list[Arranged]:
    """Return the default tables of a comparison: one for each instance and change.

    If there are several seeds, mean JCTs are compared with those of the first policy, seed by seed.
    """
    found: dict[str, list[Cell]] = {}
    for cell in expanded.cells:
        changes = (f"{axis} {value}" for axis, value in cell.at.items() if axis not in FIXED)
        labelled = replace(cell, at=cell.at | {"policy": cell.case.label, "knowledge": ""})
        found.setdefault(", ".join([cell.at["instance"], *changes]), []).append(labelled)
    made = []
    for name, cells in found.items():
        runs = (results[cell.case.key].metrics for cell in cells if cell.case.key in results)
        searches = SEARCHES if any("missed_sweeps" in run for run in runs) else ()
        columns, ratio = [*USUAL, *map(TableColumn, searches)], None
        base, *others = dict.fromkeys(cell.case.label for cell in cells)
        if others and len({cell.at["seed"] for cell in cells}) > 1:
            columns.insert(2, TableColumn(COLUMNS[0], "interval"))
            ratio = Ratio(to={"policy": base})
        made.append(Arranged(cells, tuple(columns), ratio=ratio, title=name, usual=True))
    return made


def arrange(
    suite: Suite, expanded: Expanded, place: str = ""
) -> tuple[Arranged, tuple[TableColumn, ...]]:
    """Return the table of a suite, and the columns of its figure.

    Raise InputError for an unknown axis, value or column.
    """
    table, axes, before = suite.table or TableSpec(), expanded.axes, f"{place}, " if place else ""
    for name, given in (("rows", table.rows), ("across", filter(None, [table.across]))):
        for axis in given:
            if axis not in axes:
                raise InputError(f"{before}table.{name}", show(axis), one_of(axes, axis))

    def columns(where: str, texts: Sequence[str]) -> tuple[TableColumn, ...]:
        return tuple(_shown(text, suite.ratio, f"{before}{where}") for text in texts)

    found = Arranged(
        expanded.cells,
        columns("table.columns", table.columns),
        table.rows,
        table.across,
        axes[table.across] if table.across else (),
        columns("table.cells", table.cells),
        suite.ratio,
        suite.about,
    )
    for axis, value in found.base.items():
        if value not in axes.get(axis, ()):
            known = one_of(axes[axis], value) if axis in axes else f"an axis: {one_of(axes, axis)}"
            raise InputError(f"{before}ratio.to.{axis}", show(value), known)
    if bool(table.across) != bool(table.cells):
        raise InputError(f"{before}table", "one of across and cells", "both, or neither")
    return found, columns("figure", suite.figure or ())


def _shown(text: str, ratio: Ratio | None, place: str) -> TableColumn:
    metric, slash, kind = text.partition("/")
    if text == SIZES:
        return TableColumn(None)
    if metric not in METRICS:
        known = one_of([*METRICS, SIZES], metric)
        raise InputError(place, show(text), f"METRIC or METRIC/KIND, METRIC {known}")
    if slash and kind not in KINDS:
        raise InputError(place, show(text), f"METRIC/KIND, KIND {one_of(KINDS, kind)}")
    if kind in KINDS[1:] and ratio is None:
        raise InputError(place, show(text), "a table [ratio] that says to what")
    return TableColumn(METRICS[metric], kind)


def points(arranged: Arranged, axes: Sequence[TableColumn], results: Results) -> Chart:
    """Show a point for each row, with two columns as its coordinates."""
    titles = [shown.title(arranged.base) for shown in axes]
    rows, marks = list[tuple[object, ...]](), list[Marks]()
    for k, line in enumerate(arranged.lines(results)):
        x, y = (line.value(shown).value for shown in axes)
        name = ", ".join(line.at)
        marks.append(Marks("points", [x], [y], name, k, symbol=k))
        rows.append((*line.at, x, y))
    return Chart(
        " and ".join(titles),
        [Panel(marks, Axis(titles[0]), Axis(titles[1]))],
        inches=(5.6, 4.2),
        header=(*arranged.rows, *titles),
        rows=rows,
    )
