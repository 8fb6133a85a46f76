"""The jobs of a log: who holds how much, which cannot be told apart, and how good limits are."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
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


def facts_of(read: ReadLog, now_s: float) -> dict[str, Any]:
    """Return what a log says of its jobs, as fields for programs.

    Users and sizes that hold most, and shapes of most jobs, come first. Jobs of one shape look
    alike to a scheduler: all that it sees of them except names and times is equal. `limit_times`
    are the tenth, median and ninth tenth of limits over run times; at most twice the run time is
    the share `within_twice`, and `killed` ended by their limit. Jobs in `later` could start only
    some time after their submission. `twins` are equal to another job in all but the id, and in
    `future` have a time after `now_s`, the present in seconds since 1970.
    """
    instance, rows = read.instance, list[tuple[Job, float, tuple[RecordedRun, ...]]]()
    for job in instance.jobs:
        rows.append((job, lasting(instance, job), read.recorded.runs.get(job.id, ())))
    users = _holders(rows, lambda job: job.user, lambda job: job.user or "(not named)")
    shapes = _holders(rows, _shape, _told)
    last_s = (max([job.submit_s, *(r.end_s or r.start_s for r in own)]) for job, _, own in rows)
    base_s = instance.made.get("unix_start_s", 0.0)
    twins = Counter(
        (
            *(_shape(job), job.name, job.submit_s, job.truth and job.truth.work),
            *((run.start_s, run.end_s, *run.held.items()) for run in own),
        )
        for job, _, own in rows
    )
    limited = [(job, own, limit_s) for job, _, own in rows if (limit_s := _limit_s(job))]
    times = np.array([limit_s / job.truth.work for job, _, limit_s in limited if job.truth])
    killed = sum(bool(own) and own[-1].state == TIMED_OUT for _, own, _ in limited)
    later_s = [able(job) - job.submit_s for job in instance.jobs if able(job) > job.submit_s]
    states = Counter(run.state for _, _, own in rows for run in own if run.state)
    waited_s = waits(read)
    return {
        "users": len({job.user for job in instance.jobs if job.user}),
        "top_users": users[:SHOWN],
        "sizes": _holders(rows, lambda job: job.gpus, lambda job: f"{job.gpus:,}"),
        "shapes": len(shapes),
        "top_shapes": sorted(shapes, key=lambda each: -each.jobs)[:SHOWN],
        "limited": len(limited),
        "limit_times": _tenths(times),
        "within_twice": float((times <= 2.0).mean()) if len(times) else 0.0,
        "killed": killed / max(1, len(limited)),
        "states": dict(states.most_common()),
        "later": len(later_s),
        "later_hours": sum(later_s) / 3600.0,
        "started": int((~np.isnan(waited_s)).sum()),
        "waited": int((waited_s > WAITED_S).sum()),
        "waited_hours": float(np.nansum(waited_s)) / 3600.0,
        "twins": len(rows) - len(twins),
        "future": sum(base_s + at_s > now_s for at_s in last_s),
    }


def _shape(job: Job) -> Any:
    """Return all that a scheduler sees of a job, except its name and times."""
    needs = tuple(sorted((name, need.per_gpu) for name, need in job.needs.items()))
    asked = job.gpus, job.gpu_types, job.partition, job.features, needs, _limit_s(job)
    return asked, job.user, job.tenant, job.priority


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


def _holders(
    rows: Iterable[tuple[Job, float, Any]],
    key: Callable[[Job], Any],
    name: Callable[[Job], str],
) -> list[Holder]:
    """Return the jobs of each key as a holder, named by the first of them; most GPU-hours first."""
    groups = defaultdict[Any, list[tuple[Job, float]]](list)
    for job, run_s, _ in rows:
        groups[key(job)].append((job, run_s))
    found = [
        Holder(
            name(own[0][0]),
            len(own),
            sum(job.gpus * run_s for job, run_s in own) / 3600,
            _tenths([run_s for _, run_s in own if run_s > 0]),
        )
        for own in groups.values()
    ]
    return sorted(found, key=lambda each: -each.gpu_hours)


def _tenths(values: Any) -> tuple[float, ...]:
    return tuple(np.quantile(values, [0.1, 0.5, 0.9]).tolist()) if len(values) else ()
