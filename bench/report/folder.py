"""A folder of results: its runs, its tables, and descriptions of missing parts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.runs.compare import Layout
from ronda.bench.runs.folder import kept, load_record, read_mark
from ronda.bench.runs.results import RESULTS, Result, Status, results_of
from ronda.bench.runs.specs import RunCase
from ronda.bench.suites.cells import Cell, Expanded
from ronda.bench.suites.tables import usual
from ronda.bench.tables import read_tables
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files.storage import label, read_bytes
from ronda.instances.instance import Instance
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.tables.table import Table

KINDS = {
    "comparison": "compare",
    "frontier": "frontier",
    "anytime": "anytime",
    "run": "run",
    "judgement": "judge",
    "drive": "slurm",
}
"""The kinds of folders, and the commands that make them."""

KEPT = ("judgement", "drive")
"""The kinds of one answer, a file and a section of the page, which a comparison may have beside."""


@dataclass
class Reported:
    """A folder of results with its `kind`, description and runs; `gaps` grow as it is read."""

    folder: Path
    kind: str
    about: dict[str, Any]
    results: tuple[Result, ...]
    gaps: list[str] = field(default_factory=list)
    _questions: dict[str, Instance | Round | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the page."""
        return self.folder.resolve().name

    @cached_property
    def workloads(self) -> dict[str, list[Result]]:
        """The runs by workload: an instance or a round, with its changes."""
        made: dict[str, list[Result]] = {}
        for result in self.results:
            made.setdefault(result.workload, []).append(result)
        return made

    @cached_property
    def labels(self) -> list[str]:
        """The policies as the user wrote them."""
        return list(dict.fromkeys(result.label for result in self.results))

    def tables(self) -> list[Table]:
        """Return the tables as the command printed them, or else tables of the runs."""
        try:
            there = read_tables(self.folder)
        except (msgspec.DecodeError, InputError, TypeError, KeyError):
            self.gaps.append("tables.json is damaged; the tables are made of all runs instead")
            there = []
        if there or self.kind not in {"comparison", "run"}:
            return there
        cells = [
            Cell(_at(run), RunCase(source="", **{name: getattr(run, name) for name in _SPEC}))
            for run in self.results
        ]
        pairs = zip(cells, self.results, strict=True)
        results = {cell.case.key: result for cell, result in pairs}
        made = usual(Expanded(self.folder, cells=cells), results)
        return [each.table(results) for each in made]

    def question(self, result: Result) -> Instance | Round | None:
        """Return the instance or round of a run; or record a gap and return None."""
        key = result.fingerprint
        if key not in self._questions:
            self._questions[key] = kept(self.folder, result)
            if self._questions[key] is None:
                self.gaps.append(
                    f"{result.workload}: neither packaged nor in the folder instances, so there "
                    "are no charts of its runs over time"
                )
        return self._questions[key]

    def schedule(self, result: Result) -> Schedule | None:
        """Return the schedule of a run that ended; or record a gap and return None."""
        layout = Layout(self.folder)
        path = layout.schedule(result.key)
        if self.kind == "run":
            path = self.folder / "schedule.json.zst"
        try:
            found = files.read(path)
        except InputError as error:
            self.gaps.append(f"{result.title}: no schedule ({error.found})")
            return None
        if isinstance(found, Schedule):
            return found
        self.gaps.append(f"{result.title}: its schedule is a {type(found).__name__.lower()}")
        return None


def by_label(runs: Iterable[Result]) -> dict[str, list[Result]]:
    """Return runs by policy."""
    made: dict[str, list[Result]] = {}
    for run in runs:
        made.setdefault(run.label, []).append(run)
    return made


def sound(runs: Iterable[Result]) -> dict[str, list[Result]]:
    """Return runs by policy, without policies that have a failed or invalid run."""
    return {k: own for k, own in by_label(runs).items() if not any(run.fault for run in own)}


def find(folder: Path) -> Reported:
    """Return the contents of a folder of results; raise InputError for any other folder."""
    expected = f"the folder of a {', '.join(KINDS.values())}"
    if not folder.is_dir():
        found = "a file" if folder.exists() else "no such folder"
        raise InputError(label(folder), found, expected)
    mark = read_mark(folder)
    if mark is None:
        raise InputError(label(folder), "a folder without results of ronda", expected)
    kind = mark["format"].split("/")[1] if mark["format"].count("/") == 2 else mark["format"]
    if kind not in KINDS:
        raise InputError(label(folder), f"a folder of {mark['format']!r}", expected)
    if kind == "run":
        return Reported(folder, kind, mark["about"], (_single(folder, mark["about"]),))
    if kind in KEPT:
        return Reported(folder, kind, mark["about"], ())
    made = Reported(folder, kind, mark["about"], results_of(folder).all())
    if not made.results:
        raise InputError(label(folder), "no run that ended", f"{expected}, once a run of it ended")
    if not read_bytes(folder / RESULTS).endswith(b"\n"):
        made.gaps.append(f"the last line of {RESULTS} is cut off: its run is not shown")
    return made


def _single(folder: Path, about: dict[str, Any]) -> Result:
    """Return the result in a folder of ``ronda run``."""
    if not (folder / "metrics.json").exists():
        expected = "one that ended; the same ronda run goes on"
        raise InputError(label(folder), "a run that has not ended", expected)
    metrics = load_record(folder / "metrics.json", dict[str, Any])
    try:
        return msgspec.convert(
            about
            | {"key": "run", "status": Status.OK, "label": about["policy"], "metrics": metrics}
            | {"wall_s": metrics.get("wall_s", 0.0)},
            type=Result,
        )
    except (msgspec.ValidationError, KeyError) as error:
        raise InputError(label(folder / "ronda.json"), str(error), "what ronda run wrote") from None


def _at(result: Result) -> dict[str, str]:
    fixed = {"instance": result.instance, "policy": result.label, "seed": str(result.seed)}
    change = {"with": result.variant.title} if result.variant.title else {}
    return fixed | {"knowledge": result.level} | change


_SPEC = tuple(name for name in RunCase.__struct_fields__ if name != "source")
