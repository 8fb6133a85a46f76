"""The jobs of a log: who holds how much, which cannot be told apart, and how good limits are."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.job import Job
from ronda.instances.traces.audit.pools import able
from ronda.instances.traces.audit.sample import WAITED_S, waits
from ronda.instances.traces.logs.instance import TIMED_OUT, ReadLog

SHOWN = 5
"""The most users and shapes that are shown."""


@dataclass(frozen=True)
class Holder:
    """A user, or a shape of jobs, with numbers of jobs and GPU-hours and, of shapes, run times.

    `run_s` are the run times in seconds of which a tenth, half and nine tenths of the jobs have
    less: what nobody could know beforehand.
    """

    name: str
    jobs: int
    gpu_hours: float
    run_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class LimitUse:
    """How good users' time limits are, of jobs that have one.

    Attributes
    ----------
    jobs
        Jobs with a limit.
    times
        LimitUse over run times, of which a tenth, half and nine tenths of the jobs have less.
    within_twice
        Share of jobs with a limit of at most twice the run time.
    killed
        Share of jobs that their limit ended.
    """

    jobs: int
    times: tuple[float, ...]
    within_twice: float
    killed: float


@dataclass(frozen=True)
class JobFacts:
    """What a log says of its jobs.

    Attributes
    ----------
    users, top_users
        Number of users (0 if none is named), and those who hold most.
    shapes, top_shapes
        Number of shapes, and those with most jobs. Jobs of one shape look alike to a scheduler: all
        that it sees of them except names and times is equal.
    limits
        How good limits are; None if there are none.
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
    shapes: int
    top_shapes: tuple[Holder, ...]
    limits: LimitUse | None
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
    jobs, runs = read.instance.jobs, read.recorded.runs
    base_s = read.instance.made.get("unix_start_s", 0.0)
    users, shapes = defaultdict[str, list[Job]](list), defaultdict[Any, list[Job]](list)
    for job in jobs:
        users[job.user or ""].append(job)
        shapes[_shape(job)].append(job)
    holders = [Holder(name or "(not named)", len(o), _gpu_hours(o)) for name, o in users.items()]
    most = sorted(shapes.values(), key=lambda own: -len(own))[:SHOWN]
    rows = [(job, runs.get(job.id, ())) for job in jobs]
    states = Counter(run.state for _, own in rows for run in own if run.state)
    again = [(job, own) for job, own in rows if len(own) > 1]
    lost = (
        (run.end_s - run.start_s) * job.gpus
        for job, own in again
        for run in own[:-1]
        if run.end_s is not None
    )
    later_s = [able(job) - job.submit_s for job in jobs if able(job) > job.submit_s]
    same = Counter(
        (
            (_shape(job), job.name, job.submit_s, job.truth and job.truth.work),
            *((run.start_s, run.end_s, *run.held.items()) for run in own),
        )
        for job, own in rows
    )
    last_s = [max((run.end_s or run.start_s for run in own), default=0.0) for _, own in rows]
    moments = [base_s + max(job.submit_s, s) for job, s in zip(jobs, last_s, strict=True)]
    waited_s = waits(read)
    return JobFacts(
        users=len(users.keys() - {""}),
        top_users=tuple(sorted(holders, key=lambda each: -each.gpu_hours)[:SHOWN]),
        shapes=len(shapes),
        top_shapes=tuple(
            Holder(_told(own[0]), len(own), _gpu_hours(own), _tenths(_run_s(own))) for own in most
        ),
        limits=_limits(read),
        states=dict(states.most_common()),
        again=len(again),
        again_gpu_hours=sum(lost) / 3600.0,
        later=len(later_s),
        later_hours=sum(later_s) / 3600.0,
        started=len(waited_s),
        waited=int((waited_s > WAITED_S).sum()),
        waited_hours=float(waited_s.sum()) / 3600.0,
        twins=sum(count - 1 for count in same.values()),
        future=sum(moment > now_s for moment in moments),
    )


def _shape(job: Job) -> Any:
    """Return all that a scheduler sees of a job, except its name and times."""
    needs = tuple(sorted((name, need.per_gpu) for name, need in job.needs.items()))
    asked = job.gpus, job.gpu_types, job.partition, job.features, needs, _limit_s(job)
    return asked, job.user, job.tenant, job.priority


def _told(job: Job) -> str:
    limit_s = _limit_s(job)
    where = job.features or (job.partition,)
    words = [f"{job.gpus} GPU{'s' * (job.gpus > 1)}", *where, *job.gpu_types]
    words += [f"limit {limit_s / 3600:,.4g} h"] if limit_s else []
    return ", ".join([*words, *([job.user] if job.user else [])])


def _limit_s(job: Job) -> float | None:
    """Return the user's time limit; an estimate that is the run time is none."""
    if job.estimate is None or job.truth is None:
        return job.limit_s
    told = job.limit_s is not None or job.estimate.work != job.truth.work
    return job.estimate.work if told else None


def _run_s(jobs: list[Job]) -> Floats:
    return np.array([job.truth.work for job in jobs if job.truth is not None])


def _gpu_hours(jobs: list[Job]) -> float:
    return sum(job.gpus * job.truth.work for job in jobs if job.truth is not None) / 3600.0


def _tenths(values: Floats) -> tuple[float, ...]:
    return tuple(np.quantile(values, [0.1, 0.5, 0.9]).tolist()) if len(values) else ()


def _limits(read: ReadLog) -> LimitUse | None:
    pairs = [(job, limit_s) for job in read.instance.jobs if (limit_s := _limit_s(job)) is not None]
    run_s = np.array([job.truth.work if job.truth else np.nan for job, _ in pairs])
    times = np.array([limit_s for _, limit_s in pairs]) / run_s
    if not len(times):
        return None
    runs = read.recorded.runs
    killed = sum(
        runs[job.id][-1].state == TIMED_OUT if job.id in runs else False for job, _ in pairs
    )
    return LimitUse(
        jobs=len(pairs),
        times=_tenths(times),
        within_twice=float((times <= 2.0).mean()),
        killed=killed / len(pairs),
    )
