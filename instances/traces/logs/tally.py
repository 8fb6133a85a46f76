"""Counts of a log too large for an instance: jobs, runs, GPU-hours and users, by several labels."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ronda.instances.base import Ints, Mask
from ronda.instances.tables.table import Table
from ronda.instances.traces.logs.runs import LogRun

LABELS = ("partition", "GPU type", "final state")
"""The labels by which a log is counted."""


@dataclass(frozen=True, slots=True)
class LogCount:
    """Numbers of jobs, of started runs, GPU-hours that these held, and users."""

    jobs: int
    runs: int
    gpu_hours: float
    users: int


@dataclass(frozen=True, slots=True)
class LogCounts:
    """The counts of a whole log, and by each value of each of `LABELS`.

    A job has the labels of its last run. Jobs that never started count, with no GPU-hours.
    """

    whole: LogCount
    by: Mapping[str, Mapping[str, LogCount]]

    def tables(self) -> list[Table]:
        """Return a table for each label."""
        return [
            Table.of("", ({label: name or "(none)"} | _cells(own) for name, own in counts.items()))
            for label, counts in self.by.items()
        ]


def _cells(count: LogCount) -> dict[str, str]:
    return {
        "jobs": f"{count.jobs:,}",
        "runs": f"{count.runs:,}",
        "GPU-hours": f"{count.gpu_hours:,.1f}",
        "users": f"{count.users:,}",
    }


def count_log(runs: Iterable[LogRun]) -> LogCounts:
    """Return the counts of all runs, each of them once, in some 60 bytes of memory for each."""
    keys, numbers = array("q"), {name: array("d") for name in ("submit", "start", "end")}
    gpus, part, tasks = array("d"), array("H"), array("L")
    codes = {name: array("L") for name in (*LABELS, "user")}
    names = {name: dict[str, int]() for name in codes}
    until_s = -np.inf
    for run in runs:
        keys.append(hash(run.job))
        part.append(run.part & 0xFFFF)
        tasks.append(sum(map(len, run.tasks)) or 1)
        numbers["submit"].append(run.submit_s)
        numbers["start"].append(run.start_s)
        numbers["end"].append(run.start_s + run.held_s)
        gpus.append(run.gpus)
        until_s = max(until_s, run.known_s)
        labels = (run.partition, "+".join(run.kinds), run.state, run.user)
        for name, value in zip(codes, labels, strict=True):
            known = names[name]
            codes[name].append(known.setdefault(value, len(known)))
    key, submit, start = (np.asarray(each) for each in (keys, numbers["submit"], numbers["start"]))
    told = np.nan_to_num(np.asarray(numbers["end"]), nan=-np.inf)
    end = np.where(told == -np.inf, until_s, told)
    began = ~np.isnan(start)
    order = np.lexsort((told, np.nan_to_num(start, nan=-np.inf), submit, np.asarray(part), key))
    same = _same_as_next(order, (key, np.asarray(part), submit, np.where(began, start, -np.inf)))
    once = order[~same]
    order = np.lexsort((np.where(began, start, submit)[once], key[once]))
    once = once[order]
    last = np.append(key[once][1:] != key[once][:-1], True) if len(once) else np.zeros(0, bool)
    job = np.cumsum(last) - last
    held = np.where(began, (end - start) * np.asarray(gpus), 0.0)[once] / 3600.0
    found = _Counts(
        weight=np.asarray(tasks, dtype=np.int64)[once][last],
        job=job,
        began=began[once],
        hours=held,
        user=np.asarray(codes["user"], dtype=np.int64)[once][last],
    )
    by = {}
    for label in LABELS:
        own = np.asarray(codes[label], dtype=np.int64)[once][last]
        counts = {name: found.of(own == k) for name, k in names[label].items()}
        filled = {name: each for name, each in counts.items() if each.jobs}
        by[label] = dict(sorted(filled.items(), key=lambda each: -each[1].gpu_hours))
    return LogCounts(found.of(np.ones(int(last.sum()), bool)), by)


def _same_as_next(order: Ints, columns: Iterable[np.ndarray]) -> Mask:
    """Return whether each element, in an order, has the same values as the next one."""
    same = np.ones(len(order), bool)
    for column in columns:
        ordered = column[order]
        same[:-1] &= ordered[1:] == ordered[:-1]
    same[-1:] = False
    return same


@dataclass(frozen=True)
class _Counts:
    """Jobs in order of their keys, and the runs of each."""

    weight: Ints
    job: Ints
    began: Mask
    hours: np.ndarray
    user: Ints

    def of(self, jobs: Mask) -> LogCount:
        """Return the counts of some jobs."""
        runs = jobs[self.job]
        return LogCount(
            jobs=int(self.weight[jobs].sum()),
            runs=int((self.began & runs).sum()),
            gpu_hours=float(self.hours[runs].sum()),
            users=len(np.unique(self.user[jobs])),
        )
