"""The answer to why a job waits: the reason, when it could start, and what would help.

Beside what files show, a reason may be the one that Slurm prints (the codes are those of squeue's
manual page, JOB REASON CODES), or running jobs that a scheduler may take room from, and has not.
"""

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ronda.formulations.tenants.sharers import resources
from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, SeenJob, Snapshot
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.actions import Remedy, remedies
from ronda.questions.why.help.changes import Easing, easings
from ronda.questions.why.limits import Amounts, amount_of
from ronda.questions.why.outlook import FreeRoom
from ronda.questions.why.reason import Dominant, Hindrance, dominant, hindrances
from ronda.questions.why.replay import Replay, delayed, replay
from ronda.questions.why.words import amount, many


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
        next_look = "by the site's own rule it starts when the queue is next looked at."
        reason = replace(reason, text=f"Nothing holds it back; {next_look}")
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


_BY_START = (
    ("Assoc", "limit", "a limit of its account or user", "sacctmgr show assoc -P"),
    ("MaxGRESPerAccount", "limit", "a limit of its account", "sacctmgr show qos -P"),
    ("QOS", "limit", "a limit of its QOS", "sacctmgr show qos -P"),
    ("Max", "limit", "a limit of its user or account", "sacctmgr show qos -P"),
    ("PartitionTimeLimit", "request", "its time limit", "scontrol show partition -o"),
    ("Partition", "request", "its partition", "scontrol show partition -o"),
    ("Licenses", "limit", "licences", "scontrol show licenses"),
    ("Reservation", "outage", "a reservation", "scontrol show reservation -o"),
    ("ReqNodeNotAvail", "machine", "nodes out of service", "scontrol show node -o"),
    ("NodeDown", "machine", "nodes out of service", "scontrol show node -o"),
    ("JobArrayTaskLimit", "limit", "the limit of its job array", "squeue --json"),
)
"""Beginnings of printed reasons: their kinds, their words, and the commands that show the rest."""


def as_printed(waiting: WaitingJob) -> Dominant | None:
    """Return the reason that the host prints for a job that could start by all that files show.

    None for a printed reason that says nothing by itself.
    """
    reason = waiting.job.reason or ""
    for start, kind, words, command in _BY_START:
        if reason.startswith(start):
            text = f"The scheduler says {reason}: {words}, which the files do not show."
            proof = f"By all that they show it could start now; add the output of {command}."
            return Dominant(kind, "printed", never=False, text=text, proof=(proof,))
    assumed = "node that powers up, taken to be in service"  # it may never come up
    powering = waiting.outlook.snapshot.noted.counts.get(assumed, 0)
    if reason == "Resources" and powering:
        text = f"{many(powering, 'node')} power up and were taken to be in service, but may not be."
        proof = "Without them it may have no room: the scheduler says Resources."
        return Dominant("machine", "out", never=False, text=text, proof=(proof,))
    return None


def displaced(waiting: WaitingJob) -> Dominant | None:
    """Return whose stop the site's own rules would allow and let a job start now, or None.

    The reason has the name ``quota`` (they hold what is guaranteed to others) or ``priority``
    (theirs is lower), and no proof.
    """
    snapshot, job = waiting.outlook.snapshot, waiting.job
    if snapshot.system not in {"kueue", "kai", "kubernetes", "ronda"}:  # which stop jobs for others
        return None
    for by, mine in (("quota", _borrowed(waiting)), ("priority", _lower(snapshot, job))):
        gone = [one for one in waiting.outlook.running if one.preemptible and mine(one)]
        if gone and waiting.without({one.id for one in gone}).start() <= snapshot.now_s:
            return Dominant("order", by, never=False, text=_told(waiting, by, gone), proof=())
    return None


def _lower(snapshot: Snapshot, job: SeenJob) -> Callable[[SeenJob], bool]:
    rank = {each.name: float(each.rank) for each in snapshot.classes}

    def of(one: SeenJob) -> float:
        return rank.get(one.priority or "", one.rank or 0.0)

    return lambda one: of(one) < of(job)


def _borrowed(waiting: WaitingJob) -> Callable[[SeenJob], bool]:
    """Return the test of whether a job's tenant holds more of something than is guaranteed to it.

    It is never true if the waiting job would not stay within the guarantee of its own tenant.
    """
    held, owed = _holdings(waiting)
    job, asks = waiting.job, waiting.charged(waiting.usable())
    own = {of: most for (tenant, of), most in owed.items() if tenant == job.tenant}
    within = bool(own) and all(
        held[job.tenant, of] + amount_of(of, asks, None) <= most + 1e-9 for of, most in own.items()
    )
    over = {tenant for (tenant, of), most in owed.items() if held[tenant, of] > most + 1e-9}
    return lambda one: within and one.tenant in over and one.tenant != job.tenant


Held = defaultdict[tuple[str | None, str], float]
"""Amounts by tenant and resource."""


def _holdings(waiting: WaitingJob) -> tuple[Held, Held]:
    """Return what each leaf holds of each resource, and what is guaranteed to it."""
    limits, held, owed = waiting.outlook.limits, Held(float), Held(float)
    for of in resources(limits.site):
        for one, amount_ in zip(waiting.outlook.running, limits.held(of).tolist(), strict=True):
            held[one.tenant, of] += amount_
        for leaf in limits.tree.leaf:
            most = limits.tree.quota(leaf, of).guaranteed
            if most is not None:
                owed[leaf, of] = most
    return held, owed


def _told(waiting: WaitingJob, by: str, gone: list[SeenJob]) -> str:
    if by == "priority":
        run, them = ("runs", "it") if len(gone) == 1 else ("run", "them")
        jobs = f"{many(len(gone), 'job')} of lower priority {run}"
        return f"{jobs}, without which it would start now; the scheduler has not stopped {them}."
    held, owed = _holdings(waiting)
    of = GPUS if any(of == GPUS for _, of in owed) else CPU
    over = sorted({one.tenant for one in gone if one.tenant is not None})
    names = ", ".join(
        f"{tenant} holds {amount(of, held[tenant, of])} of {owed.get((tenant, of), 0.0):g}"
        for tenant in over[:3]
    )
    own = waiting.job.tenant
    noun = "tenant" if waiting.outlook.snapshot.system == "ronda" else "queue"
    return (
        f"Its {noun} {own} holds {held[own, of]:g} of the {amount(of, owed.get((own, of), 0.0))} "
        f"that are guaranteed to it, and {names}: taken back, it would start now, but the "
        "scheduler has not."
    )
