"""How far replays by policies are from what a log tells of: waits, use, and the start of each job.

`docs/calibration.md` says how to read it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import RunCase
from ronda.instances.base import Floats
from ronda.instances.schedule import RECORDED, Schedule
from ronda.instances.tables.numbers import percent, seconds
from ronda.instances.tables.table import Numbered, Table

AT_ONCE_S = 60.0
"""The seconds by which a start may be off and still count as that of the record."""

COLUMNS = (
    ("mean wait (s)", "mean_queue_s", seconds),
    ("mean JCT (s)", "mean_jct_s", seconds),
    ("GPUs used (%)", "gpu_utilisation", percent),
    ("start off by, median (s)", "start_off_s", seconds),
    ("90 % (s)", "start_off_p90_s", seconds),
    ("sooner (%)", "started_sooner", percent),
    ("later (%)", "started_later", percent),
)


class Replayed(NamedTuple):
    """A log's name, with the schedules and results of its record and of policies by their label."""

    name: str
    schedules: dict[str, Schedule]
    results: dict[str, Result]


def replayed(
    cases: Sequence[RunCase], results: Mapping[str, Result], layout: Layout
) -> Iterator[Replayed]:
    """Yield the replays of each instance with a record; only each policy's first run counts."""
    for record in (case for case in cases if case.recorded is not None):
        schedules, own = dict[str, Schedule](), dict[str, Result]()
        for case in (record, *(c for c in cases if c.fingerprint == record.fingerprint)):
            run = results.get(case.key)
            if run is not None and run.ok and case.label not in own:
                schedules[case.label], own[case.label] = layout.read(case.key, Schedule), run
        if RECORDED in own:
            yield Replayed(record.instance, schedules, own)


def starts_off_s(record: Schedule, replay: Schedule) -> Floats:
    """Return by how much each job starts later in a replay than in the record, in seconds.

    Jobs that start in only one of them are left out.
    """
    pairs = zip(record.jobs, replay.jobs, strict=True)
    both = [(a.segments[0], b.segments[0]) for a, b in pairs if a.segments and b.segments]
    return np.array([replayed.start_s - then.start_s for then, replayed in both], dtype=float)


def distances(record: Schedule, replay: Schedule) -> dict[str, float]:
    """Return how far the starts of a replay are off: quantiles in seconds, and shares of jobs."""
    off_s = starts_off_s(record, replay)
    if record is replay or not len(off_s):
        return {}
    median_s, most_s = np.percentile(np.abs(off_s), (50, 90)).tolist()
    return {
        "start_off_s": median_s,
        "start_off_p90_s": most_s,
        "started_sooner": float(np.mean(off_s < -AT_ONCE_S)),
        "started_later": float(np.mean(off_s > AT_ONCE_S)),
    }


def distance_table(found: Replayed) -> Table:
    """Return the figures of a record and of its replays."""
    rows = []
    for label, schedule in found.schedules.items():
        figures = found.results[label].metrics | distances(found.schedules[RECORDED], schedule)
        cells = {
            title: Numbered(write(figures[key]), {key: figures[key]}) if key in figures else "–"
            for title, key, write in COLUMNS
        }
        rows.append({"policy": label} | cells)
    notes = (
        "start off by: how far a job's first start is from that of the record, either way",
        f"sooner, later: the share of jobs that start so by more than {AT_ONCE_S:g} s",
    )
    return Table.of(f"{found.name}: replays against the record", rows, notes)
