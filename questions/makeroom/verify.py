"""What is wrong with the actions that make room, found without the model that chose them."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from ronda.instances.snapshots.snapshot import SeenJob, Snapshot
from ronda.questions.makeroom.actions import Action
from ronda.questions.why.earliest import RouteAsked, WaitingJob, enough
from ronda.questions.why.outlook import FreeRoom, pieces_on

_SLACK = 1e-6


def after(snapshot: Snapshot, actions: Sequence[Action]) -> Snapshot:
    """Return a cluster after actions; stopped jobs wait."""
    of = {action.job: action for action in actions}

    def changed(job: SeenJob) -> SeenJob:
        action = of.get(job.id)
        if action is None:
            return job
        if action.verb == "stop":
            return replace(job, start_s=None, on={}, held={})
        if action.verb == "move":
            return replace(job, on=action.target, held=action.holds)
        return replace(job, start_s=snapshot.now_s, on=action.target)

    return dataclasses.replace(snapshot, jobs=tuple(map(changed, snapshot.jobs)))


def faults(snapshot: Snapshot, actions: Sequence[Action]) -> Iterator[str]:
    """Yield what is wrong with actions of which the last starts a job.

    Every job that moves or starts must be as it asked to be, on nodes that it may use and that have
    room, and all limits must let the job start when the others have stopped and moved.
    """
    before, then = FreeRoom(snapshot), FreeRoom(after(snapshot, actions))
    now_s, jobs = snapshot.now_s, {job.id: job for job in snapshot.jobs}
    (used, _), (held, count) = before.used(now_s), then.used(now_s)
    for n in np.flatnonzero((held > np.maximum(then.has, used) + _SLACK).any(axis=1)).tolist():
        yield f"node {snapshot.nodes[n].name} would be held beyond what it has"
    for job in then.running:
        shared = [name for name in job.on if count[then.node[name]] > 1]
        if job.exclusive and shared and then.ends[then.running.index(job)] > now_s:
            yield f"{job.id} would share node {shared[0]}"
    *changes, start = actions
    for action in changes:
        job = jobs[action.job]
        if job.start_s is None or not job.preemptible:
            yield f"{job.id} may not be disturbed"
        if action.verb == "move":
            if sum(action.target.values()) != sum(job.on.values()):
                yield f"{job.id} would have other pieces than before"
            yield from _placed(before, job, action)
    waiting = WaitingJob(FreeRoom(after(snapshot, changes)), jobs[start.job])
    if sum(start.target.values()) != waiting.job.count:
        yield f"{start.job} would start with other pieces than it asks for"
    yield from _placed(before, waiting.job, start)
    on = [waiting.outlook.node[name] for name in start.target]
    if waiting.ready() > now_s:
        yield f"{start.job} may not start now"
    if not any(asked.nodes[on].all() and _allowed(waiting, asked, on) for asked in waiting.asked()):
        yield f"a limit would keep {start.job} from starting there"


def _allowed(waiting: WaitingJob, asked: RouteAsked, on: Sequence[int]) -> bool:
    """Return whether all limits let a job start on nodes, if it is charged for what it gets."""
    job, outlook = waiting.job, waiting.outlook
    charged = {resource: amount * job.count for resource, amount in job.per.items()}
    if job.exclusive:
        charged = dict(zip(outlook.resources, outlook.has[on].sum(axis=0).tolist(), strict=True))
    limits = outlook.limits.met_by(job, asked.way, charged)
    return waiting.allowed(dataclasses.replace(asked, limits=[*limits]), waiting.now_s)


def _placed(outlook: FreeRoom, job: SeenJob, action: Action) -> Iterator[str]:
    """Yield what is wrong with the nodes of a job that moves or starts."""
    now_s, partition = outlook.snapshot.now_s, job.partitions[0] if job.partitions else None
    limit_s = job.may_run_s
    if action.verb == "move":
        limit_s = float(outlook.ends[[one.id for one in outlook.running].index(job.id)]) - now_s
    ways = [partition] if action.verb == "move" else (job.partitions or (None,))
    able = np.logical_or.reduce([outlook.may_use(job, way, frozenset()) for way in ways])
    able = able & outlook.open(now_s, limit_s)
    placed = np.zeros(len(able))
    for name, count in action.target.items():
        placed[outlook.node[name]] = count
        if not able[outlook.node[name]]:
            yield f"{job.id} may not use node {name}"
    apart = job.own_nodes and not job.held and placed.max() > 1
    if apart or (not job.held and not enough(job, placed, outlook, frozenset())):
        yield f"{job.id} would not be in the shape that it asks for"
    alone = np.floor(pieces_on(outlook.has, outlook.vector(job.per)))
    if not job.held and (placed > alone).any():
        yield f"{job.id} would be on a node that is too small for it"
