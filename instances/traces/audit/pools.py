"""Demand, use and capacity of each pool over time, and the work that no scheduler can have done.

A pool is a set of node groups that some jobs may use; its jobs are those that may use no others.
If each job started when it was eligible, D(s) of their GPUs would be in use at time s. Whatever a
scheduler does, a job has at no time done more of its work than so, and all jobs together do at most
C per second. So the GPU-seconds that are behind at time t are at least

    max over t' ≤ t of ∫ (D(s) − C) ds from t' to t,

as what was done from t' on is at most C (t − t'), and nothing was ahead at t'. It is 0 as long as
all that is wanted fits, and above it no order, no preemption and no packing helps.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.outcome.usage import steps
from ronda.instances.profile import Rigid
from ronda.instances.traces.logs.instance import ReadLog
from ronda.instances.traces.recorded import Recorded

MOST = 12
"""The most pools that are shown; those whose jobs ask for most."""

LONG_S = 3600.0
"""An overload is long from so much work behind on, in seconds of the whole pool."""


@dataclass(frozen=True)
class Overload:
    """A time in which work of a pool is behind under any scheduler.

    Attributes
    ----------
    start_s, end_s
        From when, and until when at the earliest, some of it is behind.
    most_gpu_s, most_at_s
        The most GPU-seconds that are behind at once, at the least, and when.
    """

    start_s: float
    end_s: float
    most_gpu_s: float
    most_at_s: float


@dataclass(frozen=True)
class PoolUse:
    """What was asked of a pool and what was in use.

    Attributes
    ----------
    name
        Partition, features and GPU types.
    gpus
        GPUs; None if the log does not show them.
    jobs, gpu_hours
        Its jobs, and the GPU-hours of their work.
    load
        Their GPU-seconds over those of the pool between the first and the last submission; None if
        these are less than an hour apart.
    most_wanted, most_held
        The most GPUs wanted, as if no job waited, and in use.
    overloads
        The overloads, of which those of `LONG_S` and more count, largest first.
    time_s, wanted
        Times in seconds, and the GPUs wanted from each on.
    held_s, held
        Times in seconds, and the GPUs in use from each on.
    behind
        The least GPU-seconds behind at each of `time_s`.
    """

    name: str
    gpus: int | None
    jobs: int
    gpu_hours: float
    load: float | None
    most_wanted: int
    most_held: int | None
    overloads: tuple[Overload, ...]
    time_s: Floats = field(repr=False)
    wanted: Floats = field(repr=False)
    held_s: Floats = field(repr=False)
    held: Floats = field(repr=False)
    behind: Floats = field(repr=False)


def pools_of(read: ReadLog) -> list[PoolUse]:
    """Return the pools of a log with what was asked of them: all nodes first, then by work."""
    instance = read.instance
    whole = frozenset(range(len(instance.cluster.node_groups)))
    usual = _Usual(instance)
    members, names = defaultdict[frozenset[int], list[int]](list), dict[frozenset[int], str]()
    for k, job in enumerate(instance.jobs):
        groups = usual.groups(job)
        members[groups].append(k)
        names.setdefault(groups, usual.name(job))
    names[whole] = "all" if len(members) > 1 or whole not in members else names[whole]
    asked = np.array([job.gpus * usual.lasting(job) for job in instance.jobs])
    able_s = np.array([able(job) for job in instance.jobs])
    sizes = {g: float(asked[own].sum()) for g, own in members.items()}
    order = sorted(members.keys() - {whole}, key=lambda g: -sizes[g])[: MOST - 1]
    runs, found = _Runs.of(instance, read.recorded), []
    for groups in (whole, *order):
        own = np.sort(np.concatenate([np.array(m) for g, m in members.items() if g <= groups]))
        held_s, held = runs.held(groups, own)
        gpus = sum(usual.sizes[g] for g in groups) if read.machines != "unknown" else None
        gpu_count = np.array([instance.jobs[k].gpus for k in own], dtype=float)
        from_s, lasts_s = able_s[own], asked[own] / gpu_count
        time_s, wanted = steps(
            np.concatenate([from_s, from_s + lasts_s]), np.concatenate([gpu_count, -gpu_count])
        )
        behind = np.zeros_like(time_s) if gpus is None else least_behind(time_s, wanted, gpus)
        work_s = float(asked[own].sum())
        span_s = float(np.ptp([instance.jobs[k].submit_s for k in own]))
        overloads = () if gpus is None else tuple(_overloads(time_s, wanted, behind, gpus))
        found.append(
            PoolUse(
                name=names[groups],
                gpus=gpus,
                jobs=len(own),
                gpu_hours=work_s / 3600.0,
                load=work_s / (span_s * gpus) if gpus and span_s >= LONG_S else None,
                most_wanted=round(float(wanted.max(initial=0.0))),
                most_held=round(float(held.max())) if len(held) else None,
                overloads=tuple(sorted(overloads, key=lambda each: -each.most_gpu_s)),
                time_s=time_s,
                wanted=wanted,
                held_s=held_s,
                held=held,
                behind=behind,
            )
        )
    return found


def able(job: Job) -> float:
    """Return when a job could start at the earliest."""
    return job.submit_s if job.eligible_s is None else max(job.submit_s, job.eligible_s)


def least_behind(time_s: Floats, wanted: Floats, gpus: float) -> Floats:
    """Return the least GPU-seconds behind at each time, under any scheduler.

    `wanted` are the GPUs wanted from each of `time_s` on, ascending, if no job waits.
    """
    flow = np.append(0.0, np.cumsum((wanted[:-1] - gpus) * np.diff(time_s)))
    behind: Floats = flow - np.minimum.accumulate(flow)
    return behind


def _overloads(time_s: Floats, wanted: Floats, behind: Floats, gpus: int) -> Iterator[Overload]:
    """Yield the times in which work is behind; an end lies where it is made up for."""
    late = np.append(behind > 1e-6, False)
    edges = np.flatnonzero(np.diff(np.append(False, late).astype(int)))
    for first, after in edges.reshape(-1, 2).tolist():
        most = first + int(np.argmax(behind[first:after]))
        last = after - 1
        spare = gpus - wanted[last]
        yield Overload(
            start_s=float(time_s[first - 1]),
            end_s=float(time_s[last] + behind[last] / spare),
            most_gpu_s=float(behind[most]),
            most_at_s=float(time_s[most]),
        )


class _Runs(NamedTuple):
    """The recorded runs as arrays: job, group of nodes (-1 if not told), GPUs, start and end."""

    job: Ints
    group: Ints
    gpus: Floats
    start_s: Floats
    end_s: Floats

    @classmethod
    def of(cls, instance: Instance, recorded: Recorded) -> "_Runs":
        """Return the runs; one on several groups has a row for each."""
        counts = [group.count for group in instance.cluster.node_groups]
        of_node = np.repeat(np.arange(len(counts)), counts).tolist()
        rows = list[tuple[float, ...]]()
        for k, job in enumerate(instance.jobs):
            for run in recorded.runs.get(job.id, ()):
                end_s = recorded.until_s if run.end_s is None else run.end_s
                each = Counter[int]() if run.held else Counter({-1: job.gpus})
                for node, gpus in run.held.items():
                    each[of_node[node]] += gpus
                rows += [(k, group, gpus, run.start_s, end_s) for group, gpus in each.items()]
        columns = np.array(rows).reshape(-1, 5).T
        return cls(columns[0].astype(int), columns[1].astype(int), *columns[2:])

    def held(self, groups: frozenset[int], jobs: Ints) -> tuple[Floats, ...]:
        """Return the times, and the GPUs in use on some groups from each on.

        A run of which the nodes are not told counts if its job is one of `jobs`.
        """
        here = np.isin(self.group, [*groups]) | ((self.group < 0) & np.isin(self.job, jobs))
        if not here.any():
            return np.zeros(0), np.zeros(0)
        times = np.concatenate([self.start_s[here], self.end_s[here]])
        return steps(times, np.concatenate([self.gpus[here], -self.gpus[here]]))


class _Usual:
    """Which groups of nodes jobs may use, and how long they run; the same for jobs alike."""

    def __init__(self, instance: Instance) -> None:
        self.cluster, self.profiles = instance.cluster, instance.profiles
        self.sizes = [group.count * group.gpus_per_node for group in self.cluster.node_groups]
        self.known = dict[object, frozenset[int]]()

    def groups(self, job: Job) -> frozenset[int]:
        key = job.partition, job.gpu_types, job.features
        if key not in self.known:
            self.known[key] = frozenset(
                k
                for k, group in enumerate(self.cluster.node_groups)
                if group.partition == job.partition
                and (not job.gpu_types or group.gpu_type in job.gpu_types)
                and {*job.features} <= {*group.features}
            )
        return self.known[key]

    def name(self, job: Job) -> str:
        kinds: Sequence[str] = job.gpu_types
        if not kinds:
            groups = self.cluster.node_groups
            kinds = tuple(dict.fromkeys(groups[k].gpu_type for k in sorted(self.groups(job))))
        where = job.features or (job.partition,)
        return f"{' '.join(where)}: {'/'.join(kinds)}"

    def lasting(self, job: Job) -> float:
        """Return the seconds that a job runs on its GPUs; 0 if they depend on more than these."""
        speeds = self.profiles[job.profile].throughput.values()
        if job.truth is None or not all(isinstance(speed, Rigid) for speed in speeds):
            return 0.0
        return job.truth.work if job.limit_s is None else min(job.truth.work, job.limit_s)
