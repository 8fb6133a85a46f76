"""The jobs of a log: who holds how much, which cannot be told apart, and how good limits are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ronda.instances.job import Job
from ronda.instances.traces.audit.pools import WAITED_S, able, lasting, waits
from ronda.instances.traces.logs.instance import TIMED_OUT, ReadLog
from ronda.instances.traces.recorded import RecordedRun

SHOWN = 5
"""The most users and shapes that are shown."""


@dataclass(frozen=True)
class Holder:
    """A user or a shape of jobs, with the tenth, median and ninth tenth of their run times."""

    name: str
    jobs: int
    gpu_hours: float
    run_s: tuple[float, ...]


@dataclass(frozen=True)
class JobFacts:
    """What a log says of its jobs.

    Attributes
    ----------
    users, top_users
        Number of users that are named, and those who hold most.
    sizes
        Jobs by their number of GPUs, those who hold most first.
    shapes, top_shapes
        Number of shapes, and those with most jobs. Jobs of one shape look alike to a scheduler: all
        that it sees of them except names and times is equal.
    limited, limit_times, within_twice, killed
        Jobs with a time limit; the tenth, median and ninth tenth of limits over run times; and the
        shares whose limit is at most twice the run time, and that their limit ended.
    states
        Runs by their final state: requeues and preemptions are runs of their own.
    again, again_gpu_hours
        Jobs that ran more than once, and GPU-hours of their earlier runs.
    later, later_hours
        Jobs that could start only some time after their submission, and hours of it in all.
    started, waited, waited_hours
        Jobs with a start, those that waited more than a minute, and hours of waiting in all.
    twins
        Jobs of which all that the log tells is equal to another's, except the id.
    future
        Jobs with a time after the present.
    """

    users: int
    top_users: tuple[Holder, ...]
    sizes: tuple[Holder, ...]
    shapes: int
    top_shapes: tuple[Holder, ...]
    limited: int
    limit_times: tuple[float, ...]
    within_twice: float
    killed: float
    states: dict[str, int]
    again: int
    again_gpu_hours: float
    later: int
    later_hours: float
    started: int
    waited: int
    waited_hours: float
    twins: int
    future: int


def facts_of(read: ReadLog, now_s: float) -> JobFacts:
    """Return what a log says of its jobs; `now_s` is the present in seconds since 1970."""
    jobs, base_s = read.instance.jobs, read.instance.made.get("unix_start_s", 0.0)
    users, shapes = defaultdict[str, list[Job]](list), defaultdict[Any, list[Job]](list)
    sizes = defaultdict[int, list[Job]](list)
    for job in jobs:
        users[job.user or ""].append(job)
        shapes[_shape(job)].append(job)
        sizes[job.gpus].append(job)
    run_s = {job.id: lasting(read.instance, job) for job in jobs}
    holders = [_holder(name or "(not named)", own, run_s) for name, own in users.items()]
    wide = [_holder(f"{gpus:,}", own, run_s) for gpus, own in sizes.items()]
    most = sorted(shapes.values(), key=lambda own: -len(own))[:SHOWN]
    rows = [(job, read.recorded.runs.get(job.id, ())) for job in jobs]
    last_s = (max([job.submit_s, *(r.end_s or r.start_s for r in own)]) for job, own in rows)
    lost_s = [
        (run.end_s - run.start_s) * job.gpus
        for job, own in rows
        for run in own[:-1]
        if run.end_s is not None
    ]
    twins = Counter(
        (_shape(job), job.name, job.submit_s, job.truth and job.truth.work, _times(own))
        for job, own in rows
    )
    states = Counter(run.state for _, own in rows for run in own if run.state)
    limits = [(job, own, limit_s) for job, own in rows if (limit_s := _limit_s(job)) is not None]
    times = np.array([limit_s / job.truth.work for job, _, limit_s in limits if job.truth])
    killed = [bool(own) and own[-1].state == TIMED_OUT for _, own, _ in limits]
    later_s = [able(job) - job.submit_s for job in jobs if able(job) > job.submit_s]
    waited_s = waits(read)
    return JobFacts(
        users=len(users.keys() - {""}),
        top_users=tuple(sorted(holders, key=lambda each: -each.gpu_hours)[:SHOWN]),
        sizes=tuple(sorted(wide, key=lambda each: -each.gpu_hours)),
        shapes=len(shapes),
        top_shapes=tuple(_holder(_told(own[0]), own, run_s) for own in most),
        limited=len(limits),
        limit_times=_tenths(times),
        within_twice=float((times <= 2.0).mean()) if len(times) else 0.0,
        killed=sum(killed) / max(1, len(killed)),
        states=dict(states.most_common()),
        again=sum(len(own) > 1 for _, own in rows),
        again_gpu_hours=sum(lost_s) / 3600.0,
        later=len(later_s),
        later_hours=sum(later_s) / 3600.0,
        started=int((~np.isnan(waited_s)).sum()),
        waited=int((waited_s > WAITED_S).sum()),
        waited_hours=float(np.nansum(waited_s)) / 3600.0,
        twins=sum(count - 1 for count in twins.values()),
        future=sum(base_s + at_s > now_s for at_s in last_s),
    )


def _shape(job: Job) -> Any:
    """Return all that a scheduler sees of a job, except its name and times."""
    needs = tuple(sorted((name, need.per_gpu) for name, need in job.needs.items()))
    asked = job.gpus, job.gpu_types, job.partition, job.features, needs, _limit_s(job)
    return asked, job.user, job.tenant, job.priority


def _times(runs: Sequence[RecordedRun]) -> Any:
    return tuple((run.start_s, run.end_s, *run.held.items()) for run in runs)


def _told(job: Job) -> str:
    limit_s = _limit_s(job)
    words = [f"{job.gpus} GPU{'s' * (job.gpus > 1)}", *(job.features or (job.partition,))]
    words += [*job.gpu_types, *([f"limit {limit_s / 3600:,.4g} h"] if limit_s else [])]
    return ", ".join([*words, *([job.user] if job.user else [])])


def _limit_s(job: Job) -> float | None:
    """Return the user's time limit; an estimate that is the run time is none."""
    if job.estimate is None or job.truth is None:
        return job.limit_s
    told = job.limit_s is not None or job.estimate.work != job.truth.work
    return job.estimate.work if told else None


def _holder(name: str, jobs: Sequence[Job], run_s: Mapping[str, float]) -> Holder:
    runs = [(job.gpus, run_s[job.id]) for job in jobs if run_s[job.id] > 0]
    return Holder(name, len(jobs), sum(g * s for g, s in runs) / 3600, _tenths(s for _, s in runs))


def _tenths(values: Iterable[float]) -> tuple[float, ...]:
    found = [*values]
    return tuple(np.quantile(found, [0.1, 0.5, 0.9]).tolist()) if found else ()
