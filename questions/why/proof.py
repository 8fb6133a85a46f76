"""What holds a job back, in sentences with numbers."""

from collections import Counter
from functools import partial
from math import inf

import numpy as np

from ronda.instances.base import Floats, Mask
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenJob
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.limits import JointLimit
from ronda.questions.why.queue import ahead
from ronda.questions.why.words import WATTS, amount, amounts, hours, in_row, many, of_row

WORDS = {
    "quota": "what others hold above their guarantee",
    "priority": "jobs of lower priority",
    "printed": "a limit that the files do not show",
    "blocked": "a hold",
    "after": "a job that must come first",
    "eligible": "its earliest time",
    "longest": "its time limit",
    "slices": "its slices within racks",
    "own_nodes": "a node for each piece",
    "one_node": "one node for all pieces",
    "exclusive": "nodes to itself",
    "out": "nodes out of service",
    "leaves": "nodes that leave",
    "nodes": "the nodes that it names",
    "features": "the labels that it asks for",
    "gpu_types": "the GPU model that it asks for",
    "partition": "its partition",
}
"""The words for what holds a job back; rows of limits and room on nodes have their own."""

IN_VAIN = "Waiting does not help."


def named(name: str) -> str:
    """Return the words for what holds a job back."""
    if name.startswith("on:"):
        return f"{name[3:]} on nodes"
    if name in WORDS:
        return WORDS[name]
    of = name.rstrip("]").rpartition(",")[2] if "," in name else ""
    return of_row(name, of) + (f" ({of})" if of else "")


def told(waiting: WaitingJob, name: str) -> tuple[str, list[str]]:
    """Return a sentence about what holds a job back, and the sentences that prove it."""
    job, now_s = waiting.job, waiting.now_s
    if name == "blocked":
        return f"The scheduler holds it: {job.blocked}.", []
    if name == "eligible":
        return f"It may start in {hours((job.eligible_s or now_s) - now_s)} at the earliest.", []
    if name == "after":
        return _others_first(waiting), []
    if name == "longest":
        return _too_long(waiting), [f"{IN_VAIN} A job with such a limit never starts there."]
    if name == "out":
        return _out(waiting), [_free(waiting)]
    if name == "leaves":
        return _leaving(waiting), [_free(waiting)]
    if name.startswith("on:"):
        return _on_nodes(waiting, name.removeprefix("on:"))
    if name in WORDS:
        return _shape(waiting, name), [_free(waiting)]
    return _limited(waiting, name)


def in_order(waiting: WaitingJob) -> tuple[str, list[str]]:
    """Return a sentence about the order of the queue, for a job that could start now."""
    first, job = ahead(waiting.outlook.snapshot, waiting.job), waiting.job
    if not first:
        said = f" (it prints {job.reason})" if job.reason else ""
        return f"It could start now, and no job is before it; the scheduler waits{said}.", []
    told = []
    for one in first[:3]:
        rank = "" if one.rank is None else f", priority {one.rank:.10g}"
        told.append(f"{one.id} ({amounts({r: a * one.count for r, a in one.per.items()})}{rank})")
    more = f" and {many(len(first) - 3, 'other')}" if len(first) > 3 else ""
    stand = "job stands" if len(first) == 1 else "jobs stand"
    text = f"It could start now, but {len(first)} {stand} before it in the queue."
    return text, [f"Before it: {', '.join(told)}{more}."]


def _others_first(waiting: WaitingJob) -> str:
    ends = dict(zip((j.id for j in waiting.outlook.running), waiting.outlook.ends, strict=True))
    told = [
        f"{each.job}, which runs until {hours(float(ends[each.job]) - waiting.now_s)} from now"
        if each.job in ends
        else f"{each.job}, which waits itself or is not known"
        for each in waiting.job.after
    ]
    return f"It waits for {'; and for '.join(told[:3])}."


def _too_long(waiting: WaitingJob) -> str:
    group = waiting.longest()
    most, own = hours(group.max_limit_s or 0.0), hours(waiting.job.limit_s or 0.0)
    return f"Its time limit of {own} is above the {most} that {group.name} allows."


def _out(waiting: WaitingJob) -> str:
    mine = waiting.usable()
    nodes = [node for node, own in zip(waiting.outlook.snapshot.nodes, mine, strict=True) if own]
    out = [node for node in nodes if node.out is not None]
    why = ", ".join(f"{n} {reason}" for reason, n in Counter(n.out for n in out).most_common(3))
    back = [node.back_s for node in out if node.back_s is not None]
    text = f"{len(out)} of the {many(len(nodes), 'node')} that it may use take no jobs ({why})"
    if back:
        text += f"; the first is back in {hours(min(back) - waiting.now_s)}"
    return f"{text}."


def _leaving(waiting: WaitingJob) -> str:
    limit_s, mine = waiting.job.limit_s, waiting.usable()
    nodes = [node for node, own in zip(waiting.outlook.snapshot.nodes, mine, strict=True) if own]
    leaving = sorted(node.leaves_s for node in nodes if node.leaves_s is not None)
    limit = "no time limit" if limit_s is None else f"a time limit of {hours(limit_s)}"
    return (
        f"{len(leaving)} of the {many(len(nodes), 'node')} that it may use leave in "
        f"{hours(leaving[0] - waiting.now_s)} or later, and it has {limit}."
    )


def _shape(waiting: WaitingJob, name: str) -> str:
    job = waiting.job
    if name == "slices" and job.slices is not None:
        size, free = job.slices.nodes, _by_rack(waiting, job.slices.within)
        slices = f"slices of {size} nodes" if size else "slices"
        fit = f", room for {sum(n // size for n in free.values())} of them" if size else ""
        racks = ", ".join(f"{n} in {rack}" for rack, n in sorted(free.items())[:6])
        level = job.slices.within
        return f"Its {job.count} nodes are {slices} within a {level}; free are {racks}{fit}."
    if name == "exclusive":
        idle = int(((waiting.outlook.used(waiting.now_s)[1] == 0) & waiting.usable()).sum())
        return f"It has its nodes to itself, and {idle} of those that it may use are empty."
    if name == "own_nodes":
        asked = next(waiting.asked())
        able = int((waiting.room(asked, waiting.now_s) >= 1).sum())
        have = "node has" if able == 1 else "nodes have"
        return f"Each of its {job.count} pieces needs a node of its own, and {able} {have} room."
    if name == "one_node":
        return f"All its {job.count} pieces must be on one node."
    return f"Other nodes would have room, but {named(name)} closes them."


def _by_rack(waiting: WaitingJob, level: str) -> dict[str, int]:
    """Return the number of nodes with room for a piece now by rack."""
    racks, asked = waiting.outlook.racks(level), next(waiting.asked(), None)
    room = np.zeros(len(racks)) if asked is None else waiting.room(asked, waiting.now_s)
    found = dict.fromkeys((rack for rack in racks if rack is not None), 0)
    for rack, pieces in zip(racks, room.tolist(), strict=True):
        if rack is not None and pieces >= 1:
            found[rack] += 1
    return found


def _on_nodes(waiting: WaitingJob, resource: str) -> tuple[str, list[str]]:
    """Tell of a resource of which no node, or too few, have enough."""
    outlook, job, mine = waiting.outlook, waiting.job, waiting.usable()
    need, has = job.per[resource], outlook.has[:, outlook.resources.index(resource)]
    nodes = f"the {many(int(mine.sum()), 'node')} that it may use"
    piece = "It" if job.count == 1 else "Each of its pieces"
    most = float(has[mine].max(initial=0.0))
    if most < need:
        there = f"{nodes} have at most {amount(resource, most)}" if most else f"{nodes} have none"
        return f"{piece} asks for {amount(resource, need)} on one node, and {there}.", [IN_VAIN]
    empty = _pieces(has, mine, need)
    if empty < job.count:
        pieces = f"{job.count} pieces of {amount(resource, need)}"
        asks = many(job.count, "GPU") if anywhere(job) else pieces
        return f"It asks for {asks}, and {nodes} hold {empty} when empty.", [IN_VAIN]
    free = has - outlook.used(waiting.now_s)[0][:, outlook.resources.index(resource)]
    room, most = _pieces(free, mine, need), float(free[mine].max(initial=0.0))
    text = f"{piece} needs {amount(resource, need)} on a node, and "
    if anywhere(job):
        text = f"It needs {job.count} GPUs, and {room} are free on {nodes}."
    elif room == 0:
        text += f"none of {nodes} has so much free (at most {amount(resource, max(0.0, most))})."
    else:
        text += f"there is room for {room} of {many(job.count, 'piece')}."
    return text, [_free(waiting), *_holders(waiting, outlook.limits.held(resource), resource)]


def anywhere(job: SeenJob) -> bool:
    """Return whether a job's pieces are single GPUs on any nodes."""
    per = {resource: held for resource, held in job.per.items() if resource != WATTS}
    return job.count > 1 and per == {GPUS: 1} and not (job.own_nodes or job.one_node)


def _pieces(free: Floats, nodes: Mask, need: float) -> int:
    return int(np.floor(np.maximum(free[nodes], 0.0) / need + 1e-9).sum())


def _free(waiting: WaitingJob) -> str:
    """Say what is free now on the nodes that the job may use."""
    outlook, job, mine = waiting.outlook, waiting.job, waiting.usable()
    limit_s = inf if job.limit_s is None else job.limit_s
    able = mine & outlook.open(waiting.now_s, limit_s)
    enough = outlook.has - outlook.used(waiting.now_s)[0] >= outlook.vector(job.per) - 1e-9
    each = [
        f"{int((able & enough[:, outlook.resources.index(r)]).sum())} have {amount(r, need)} free"
        for r, need in job.per.items()
    ]
    return (
        f"Of {many(int(mine.sum()), 'node')} that it may use, {int(able.sum())} take it now: "
        f"{', '.join(each)}; {int((able & enough.all(axis=1)).sum())} have all of it."
    )


def _holders(waiting: WaitingJob, held: Floats, of: str) -> list[str]:
    """Say who holds most of a resource, if the host tells users or tenants."""
    by = Counter[str]()
    for job, holds in zip(waiting.outlook.running, held.tolist(), strict=True):
        who = job.user or job.tenant
        if who is not None and holds:
            by[who] += holds
    top = [f"{who} ({amount(of, holds)})" for who, holds in by.most_common(3)]
    return [f"Most is held by {', '.join(top)}."] if top else []


def _limited(waiting: WaitingJob, row: str) -> tuple[str, list[str]]:
    """Tell of a limit on what jobs hold together."""
    met = [each for way in waiting.ways() for each in waiting.counts(way, waiting.now_s)]
    count = min((c for c in met if c.row == row), key=lambda c: c.held + c.asks - c.most)
    asked = waiting.job.per.get(count.of, 0.0) * waiting.job.count
    said = partial(in_row, row, count.of)

    text = f"{of_row(row, count.of)} is {said(count.most)}; {said(count.held)} are held, "
    text += f"and it is charged {said(count.asks)}"
    if waiting.job.exclusive and asked < count.asks:
        text += f" (it asks for {said(asked)}, but has its nodes to itself)"
    proof = [f"{IN_VAIN} It alone is above the limit."] if count.asks > count.most else []
    held = _held_within(waiting, row)
    return f"{text}.", [*proof, *([] if held is None else _holders(waiting, held, count.of))]


def _held_within(waiting: WaitingJob, row: str) -> Floats | None:
    """Return what each running job counts in a limit, shape (J,), or None for quotas of trees."""
    for asked in waiting.asked():
        for limit in asked.limits:
            if isinstance(limit, JointLimit) and limit.row == row:
                return limit.amounts
    return None
