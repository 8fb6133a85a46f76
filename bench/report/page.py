"""The report page: a template filled with the contents of a folder and the page's libraries."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

import ronda
from ronda.bench.report import words
from ronda.bench.report.charts import (
    PageChart,
    Samples,
    anytime,
    distributions,
    frontier,
    profiles,
    quality,
)
from ronda.bench.report.detail import run_of, workload_of
from ronda.bench.report.folder import KEPT, Reported, find
from ronda.bench.report.parts import fine, packed, part, text
from ronda.bench.report.section import kept_sections
from ronda.bench.runs.results import Result
from ronda.instances.files.storage import write_bytes
from ronda.instances.instance import Instance

PAGE = "report.html"
"""The name of the page's file in the folder."""

MOST_BYTES = 7_800_000
"""The largest size of the page: it only names the runs whose charts over time do not fit."""

Watch = Callable[[float, str], None]
"""A callback that gets the share that is done, and the title of the run that is being read."""

SECTIONS = {
    "slurm": "What a policy would do with the cluster",
    "judge": "What the cluster's own schedule cost",
    "quality": "Quality against decision time",
    "frontier": "What energy buys",
    "anytime": "Quality over time",
    "tables": "Tables",
    "run": "One run, from start to end",
    "jct": "Completion times",
    "profiles": "Performance profiles",
    "decisions": "Decision times",
}
"""The sections in order; the picture of quality comes before the tables."""

_OVER_TIME = {
    "run": "no schedule of a run could be read",
    "jct": "no schedule with a job that is complete could be read",
    "decisions": "no schedule with a decision could be read",
}
NEEDED: dict[str, dict[str, str]] = {
    "comparison": {
        "quality": "no run with decisions ended well",
        "profiles": "they need two policies on two workloads",
    }
    | _OVER_TIME,
    "frontier": {"frontier": "no run kept its energy budget"} | _OVER_TIME,
    "anytime": {"anytime": "no run ended with a plan whose round is known"},
    "run": _OVER_TIME,
    **{kind: {} for kind in KEPT},
}
"""The sections of each kind of folder, with the reason if a section has nothing to show."""


def write_report(folder: Path, watch: Watch | None = None) -> Path:
    """Write the page of a folder of results into it, whole or not at all; return its path."""
    found = find(folder)
    page = page_of(found, watch or (lambda share, name: None))
    write_bytes(folder / PAGE, page.encode())
    return folder / PAGE


def page_of(found: Reported, watch: Watch) -> str:
    """Return the page as HTML."""
    runs = _Runs(found)
    # The first run of each policy and workload precedes later ones.
    seen = defaultdict[tuple[str, str], Iterator[int]](count)
    order = sorted(found.results, key=lambda run: next(seen[run.workload, run.label]))
    for k, result in enumerate(order):
        watch(k / len(found.results), result.title)
        runs.add(result)
    needed, tables = NEEDED[found.kind], found.tables()
    kept = kept_sections(found.folder)
    drawn: dict[str, Callable[[], list[PageChart]]] = {
        "quality": lambda: quality(found),
        "frontier": lambda: frontier(found),
        "anytime": lambda: anytime(found),
        "jct": lambda: distributions(found, "jct", runs.jct_s, runs.jobs),
        "profiles": lambda: profiles(found),
        "decisions": lambda: distributions(found, "decisions", runs.solve_s, runs.rounds),
    }
    charts = [chart for name in drawn if name in needed for chart in drawn[name]()]
    charts += [chart for section in kept.values() for chart in section.charts]
    there = {chart.section for chart in charts} | ({"run"} if runs.index else set())
    found.gaps += [f"{SECTIONS[name]}: {why}" for name, why in needed.items() if name not in there]
    shared = {name: packed(each) for name, each in {"charts": charts, "runs": runs.index}.items()}
    libraries = _libraries()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    fields: dict[str, Any] = {
        "found": found,
        "kept": kept,
        "words": words,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "ronda": ronda.__version__,
        "tables": words.folded(found, tables),
        "runs": words.runs(found),
        "configurations": words.configurations(found),
        "sections": {
            name: title
            for name, title in SECTIONS.items()
            if name in there or (name == "tables" and tables)
        },
        "style": text("itables", "html/dt_bundle.css") + part("page.css"),
        "script": part("page.js"),
        "blobs": libraries | shared,
    }
    page = environment.from_string(part("page.html"))
    bare = page.render(fields | {"left_out": runs.titles})
    fitting, left_out = runs.within(MOST_BYTES - len(bare.encode()))
    return page.render(fields | {"left_out": left_out, "blobs": libraries | shared | fitting})


@cache
def _libraries() -> dict[str, str]:
    """Return the page's compressed libraries; caching saves the slowest step of making a page."""
    return {
        "plotly": packed(text("plotly", "package_data/plotly.min.js")),
        "datatables": packed(text("itables", "html/dt_bundle.js")),
    }


class _Runs:
    """The data from schedules: samples for distributions, and packed runs, first seeds first."""

    def __init__(self, found: Reported) -> None:
        self.found = found
        self.jct_s: Samples = defaultdict(list)
        self.solve_s: Samples = defaultdict(list)
        self.jobs: dict[tuple[str, str], int] = defaultdict(int)
        self.rounds: dict[tuple[str, str], int] = defaultdict(int)
        self.index: list[dict[str, Any]] = []
        self.titles: list[str] = []
        self._blobs: list[tuple[str, dict[str, str]]] = []

    def add(self, result: Result) -> None:
        """Read the schedule of a run."""
        if self.found.kind == "anytime":
            return
        at, instance = (result.workload, result.label), self.found.question(result)
        if not result.ok:  # its jobs count as incomplete
            self.jobs[at] += len(instance.jobs) if isinstance(instance, Instance) else 0
        if not result.ok or (schedule := self.found.schedule(result)) is None:
            return
        outcomes = schedule.jobs
        whole = (o for o in outcomes if not (result.fault or o.failed or o.discarded))
        jct_s = [o.end_s - o.submit_s for o in whole if o.end_s is not None]
        self.jct_s[at] += jct_s
        self.jobs[at] += len(outcomes)
        solve_s = [record.solve_s for record in schedule.rounds]
        self.solve_s[at] += solve_s
        self.rounds[at] += len(solve_s)
        if not isinstance(instance, Instance):
            return
        key, room = f"run-{len(self._blobs)}", f"of-{result.fingerprint}"
        blobs = {key: packed(run_of(instance, schedule)), room: packed(workload_of(instance))}
        self._blobs.append((result.title, blobs))
        self.titles.append(result.title)
        named = {"workload": at[0], "label": result.label, "seed": result.seed}
        mean_s = fine(result.metrics.get("mean_jct_s"))
        self.index.append({"key": key, "of": room, "mean_jct_s": mean_s} | named)

    def within(self, room: int) -> tuple[dict[str, str], list[str]]:
        """Return the packed runs that fit into `room` bytes, and the titles of the others."""
        fitting, left_out = dict[str, str](), []
        for title, blobs in self._blobs:
            new = {key: text for key, text in blobs.items() if key not in fitting}
            room -= sum(map(len, new.values())) + 80 * len(new)
            if room < 0:
                left_out.append(title)
            else:
                fitting |= new
        return fitting, left_out
