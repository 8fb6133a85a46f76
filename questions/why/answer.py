"""The answer to why a job waits: the reason, when it could start, and what would help."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, SeenJob, Snapshot
from ronda.questions.why.displaced import displaced
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.actions import Remedy, remedies
from ronda.questions.why.help.changes import Easing, easings
from ronda.questions.why.limits import Amounts
from ronda.questions.why.outlook import FreeRoom
from ronda.questions.why.printed import as_printed
from ronda.questions.why.reason import Dominant, Hindrance, dominant, hindrances
from ronda.questions.why.replay import Replay, delayed, replay


@dataclass(frozen=True)
class Why:
    """Why a job waits.

    Attributes
    ----------
    waiting, charged
        The job, in the free room of its cluster, and what it is charged in all, by resource.
    reason, hindrances
        What holds it back most, and all that does, the most important first.
    start_s, replay
        Earliest start that any scheduler could give without stopping or delaying others, and the
        start by the site's own rule.
    easings, remedies
        The changes of its request that start it sooner, those that start it now first, and what an
        operator could do, the earliest start first.
    delays
        For each of the easings, the jobs before it in the queue that would wait longer, with the
        seconds; None where that is not known.
    """

    waiting: WaitingJob
    charged: Amounts
    reason: Dominant
    hindrances: tuple[Hindrance, ...]
    start_s: float
    replay: Replay
    easings: tuple[Easing, ...]
    delays: tuple[list[tuple[str, float]] | None, ...]
    remedies: tuple[Remedy, ...]


NEXT = "Nothing holds it back; by the site's own rule it starts when the queue is next looked at."
"""The reason of a job that starts now, whoever stands before it."""

SHOWN = 5
"""The number of changes of a request, and of acts of an operator, that are told."""


def why(snapshot: Snapshot, job: str, seconds: float = 0.6) -> Why:
    """Return why a job of a snapshot waits; the site's rule is replayed for `seconds` at most.

    Raise InputError if the job is not in the snapshot, or runs.
    """
    asked = waiting_job(snapshot, job)
    snapshot = snapshot.within(asked.reservation)
    room = FreeRoom(snapshot)
    waiting = WaitingJob(room, asked)
    rule = replay(room, waiting.job, seconds)
    eased = easings(waiting, rule.starts_now)[:SHOWN]
    each_s = seconds / (2 * max(1, len(eased)))
    delays = [
        delayed(room, one.job, one.start_s, rule, each_s) if one.start_s < inf else None
        for one in eased
    ]
    found = hindrances(waiting)
    reason = dominant(waiting, found)
    said = as_printed(waiting) if reason.kind == "order" else None
    if said is not None:
        reason = said
    elif (by := _policy(waiting, reason)) is not None:
        reason = replace(by, proof=(reason.text, *reason.proof))
    elif reason.kind == "order" and rule.start_s <= snapshot.now_s and not rule.skipped:
        reason = replace(reason, text=NEXT)
    return Why(
        waiting=waiting,
        charged=waiting.charged(waiting.usable()),
        reason=reason,
        hindrances=tuple(found),
        start_s=waiting.start(),
        replay=rule,
        easings=tuple(eased),
        delays=tuple(delays),
        remedies=tuple(remedies(waiting)[:SHOWN]),
    )


def _policy(waiting: WaitingJob, reason: Dominant) -> Dominant | None:
    """Return whose stop would let the job start, if what it lacks is what schedulers take back.

    They look at GPUs (of a job without GPUs, at CPUs) and quotas, not at other resources of nodes.
    """
    main = GPUS if waiting.job.per.get(GPUS) else CPU
    taken_back = reason.kind == "limit" or reason.name == f"on:{main}"
    return displaced(waiting) if taken_back and waiting.fits_empty() else None


def waiting_job(snapshot: Snapshot, job: str) -> SeenJob:
    """Return the waiting job with an id; raise InputError if there is none, or if it runs."""
    found = next((one for one in snapshot.jobs if one.id == job), None)
    waits = [one.id for one in snapshot.jobs if one.start_s is None]
    if found is None:
        near = difflib.get_close_matches(job, waits, 3) or waits[:3]
        expected = f"a job that waits, such as {', '.join(near)}" if near else "a job; none waits"
        raise InputError(snapshot.source, f"no job {job!r}", expected)
    if found.start_s is not None:
        since = found.start_s - snapshot.now_s
        expected = f"a job that waits; it started {-since:.0f} s ago on {', '.join(found.on)}"
        raise InputError(snapshot.source, f"job {job!r}, which runs", expected)
    return found


def room_over_time(waiting: WaitingJob) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield the pieces of the job that nodes, and each limit, have room for over time.

    Each comes as a name, the times in seconds from now (T,), and the number of pieces (T,) if only
    jobs end. Of several routes it is the one with most room.
    """
    times = waiting.outlook.times
    routes, job = list(waiting.asked()), waiting.job
    if not routes:
        return
    nodes = [[float(waiting.room(asked, t).sum()) for t in times.tolist()] for asked in routes]
    best = int(np.argmax([sum(each) for each in nodes]))
    since = times - waiting.now_s
    yield "nodes", since, np.array(nodes[best])
    for limit in routes[best].limits:
        rows = [limit.at(t, waiting.outlook.ends) for t in times.tolist()]
        for k, first in enumerate(rows[0]):
            each = first.asks / job.count
            if each:
                left = np.array([row[k].most - row[k].held for row in rows])
                yield first.row, since, np.floor(np.maximum(left, 0.0) / each + 1e-9)
