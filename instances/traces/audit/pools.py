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
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.cluster import Cluster, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.outcome.usage import steps
from ronda.instances.profile import Rigid
from ronda.instances.rules.shapes import JobNodes
from ronda.instances.traces.logs.instance import ReadLog
from ronda.instances.traces.recorded import Recorded

WAITED_S = 60.0
"""A wait above this is one for room, not a cycle of the scheduler."""

LONG_S = 3600.0
"""An overload is long from so much work behind on, in seconds of the whole pool."""


@dataclass(frozen=True)
class Overload:
    """A time, from `start_s` to `end_s` at the least, in which work is behind in any schedule.

    The most GPU-seconds are behind at `most_at_s`: `most_gpu_s` at the least.
    """

    start_s: float
    end_s: float
    most_gpu_s: float
    most_at_s: float


@dataclass(frozen=True)
class PoolUse:
    """What was asked of a pool of `gpus` GPUs (None if the log does not show them) and was in use.

    Of its `jobs`, those in `waited` waited more than a minute. They are `gpu_hours` of work, and
    `load` is that over the capacity from the first to the last submission, None if these are less
    than an hour apart. At most `most_wanted` GPUs are wanted at once if no job waits.
    Overloads are in order of size. From each of `time_s` on, `wanted` GPUs are wanted, and at it
    `behind` GPU-seconds are behind; from each of `held_s` on, `held` GPUs are in use.
    """

    name: str
    gpus: int | None
    jobs: int
    waited: int
    gpu_hours: float
    load: float | None
    most_wanted: int
    most_held: int | None
    overloads: tuple[Overload, ...]
    time_s: Floats = field(repr=False)
    wanted: Floats = field(repr=False)
    behind: Floats = field(repr=False)
    held_s: Floats = field(repr=False)
    held: Floats = field(repr=False)


def pools_of(read: ReadLog) -> list[PoolUse]:
    """Return the pools of a log: all nodes that its jobs may use first, the others by work."""
    instance = read.instance
    jobs, cluster, nodes = instance.jobs, instance.cluster, JobNodes(instance.cluster)
    seen = dict[object, tuple[frozenset[int], str]]()
    members, names = defaultdict[frozenset[int], list[int]](list), dict[frozenset[int], str]()
    for k, job in enumerate(jobs):
        key = job.partition, job.gpu_types, job.features
        groups, name = seen.get(key) or seen.setdefault(key, _allowed(nodes, job))
        members[groups].append(k)
        names.setdefault(groups, name)
    whole = frozenset[int]().union(*members)
    if len(members) > 1:
        names[whole] = "all"
    gpus_s = np.array([job.gpus * lasting(instance, job) for job in jobs])
    wide, able_s = np.array([float(job.gpus) for job in jobs]), np.array([*map(able, jobs)])
    submit_s = np.array([job.submit_s for job in jobs])
    order = sorted(members.keys() - {whole}, key=lambda g: -float(gpus_s[members[g]].sum()))
    waited = waits(read) > WAITED_S
    runs, found = _runs(instance, read.recorded), []
    for groups in (whole, *order):
        own = np.concatenate([members[g] for g in members if g <= groups]).astype(int)
        ends_s = able_s[own] + gpus_s[own] / wide[own]
        changes = np.concatenate([wide[own], -wide[own]])
        time_s, wanted = steps(np.concatenate([able_s[own], ends_s]), changes)
        here = np.isin(runs[1], [*groups]) | ((runs[1] < 0) & np.isin(runs[0], own))
        changes = np.concatenate([runs[2, here], -runs[2, here]])
        held_s, held = steps(runs[3:, here].ravel(), changes) if here.any() else np.zeros((2, 0))
        gpus, behind, over = None, np.zeros_like(wanted), list[Overload]()
        if read.machines != "unknown":
            gpus = sum(g.count * g.gpus_per_node for g in _of(cluster, groups))
            behind = least_behind(time_s, wanted, gpus)
            over = [*_overloads(time_s, wanted, behind, gpus)]
        work_s, span_s = float(gpus_s[own].sum()), float(np.ptp(submit_s[own]))
        found.append(
            PoolUse(
                name=names[groups],
                gpus=gpus,
                jobs=len(own),
                waited=int(waited[own].sum()),
                gpu_hours=work_s / 3600.0,
                load=work_s / (span_s * gpus) if gpus and span_s >= LONG_S else None,
                most_wanted=round(float(wanted.max())),
                most_held=round(float(held.max())) if len(held) else None,
                overloads=tuple(sorted(over, key=lambda each: -each.most_gpu_s)),
                time_s=time_s,
                wanted=wanted,
                behind=behind,
                held_s=held_s,
                held=held,
            )
        )
    return found


def able(job: Job) -> float:
    """Return when a job could start at the earliest."""
    return job.submit_s if job.eligible_s is None else max(job.submit_s, job.eligible_s)


def waits(read: ReadLog) -> Floats:
    """Return the seconds from when each job could start until it did; NaN if that is not told."""
    runs = read.recorded.runs
    first_s = [runs[job.id][0].start_s if job.id in runs else np.nan for job in read.instance.jobs]
    late_s: Floats = np.maximum(0.0, np.array(first_s) - [*map(able, read.instance.jobs)])
    return late_s


def lasting(instance: Instance, job: Job) -> float:
    """Return the seconds that a job runs on its GPUs; 0 if they depend on more than these."""
    speeds = instance.profiles[job.profile].throughput.values()
    if job.truth is None or not all(isinstance(speed, Rigid) for speed in speeds):
        return 0.0
    return job.truth.work if job.limit_s is None else min(job.truth.work, job.limit_s)


def least_behind(time_s: Floats, wanted: Floats, gpus: float) -> Floats:
    """Return the least GPU-seconds behind at each time, under any scheduler.

    `wanted` are the GPUs wanted from each of `time_s` on, ascending, if no job waits.
    """
    flow = np.append(0.0, np.cumsum((wanted[:-1] - gpus) * np.diff(time_s)))
    behind: Floats = flow - np.minimum.accumulate(flow)
    return behind


def _overloads(time_s: Floats, wanted: Floats, behind: Floats, gpus: int) -> Iterator[Overload]:
    """Yield the times in which work is behind; an end lies where it is made up for."""
    late = np.concatenate([[False], behind > 1e-6, [False]]).astype(int)
    for first, after in np.flatnonzero(np.diff(late)).reshape(-1, 2).tolist():
        most, last = first + int(np.argmax(behind[first:after])), after - 1
        end_s = float(time_s[last] + behind[last] / (gpus - wanted[last]))
        yield Overload(float(time_s[first - 1]), end_s, float(behind[most]), float(time_s[most]))


def _runs(instance: Instance, recorded: Recorded) -> Floats:
    """Return rows of jobs, groups of nodes (-1 if not told), GPUs, starts and ends of all runs."""
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
    return np.array(rows, float).reshape(-1, 5).T


def _of(cluster: Cluster, groups: frozenset[int]) -> list[NodeGroup]:
    return [cluster.node_groups[k] for k in sorted(groups)]


def _allowed(nodes: JobNodes, job: Job) -> tuple[frozenset[int], str]:
    """Return the groups of nodes that a job may use, and the name of their pool."""
    own = nodes.cluster.topology.node_group[nodes.of(job, labelled=True)]
    groups = frozenset(own.tolist())
    kinds = job.gpu_types or dict.fromkeys(g.gpu_type for g in _of(nodes.cluster, groups))
    return groups, f"{' '.join(job.features or (job.partition,))}: {'/'.join(kinds)}"
