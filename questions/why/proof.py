"""What holds a job back, in sentences with numbers."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from math import inf

import numpy as np

from ronda.instances.base import Floats, Mask
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.limits import JointLimit
from ronda.questions.why.replay import ahead
from ronda.questions.why.words import (
    PLURALS,
    POWER_ROW,
    WATTS,
    a_piece,
    amount,
    amounts,
    hours,
    in_row,
    many,
    of_row,
)

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
    """Return the words for what holds a job back, to stand within a sentence."""
    if name.startswith("on:"):
        return f"{PLURALS.get(name[3:], name[3:])} on nodes"
    if name in WORDS or name == POWER_ROW:
        return WORDS.get(name, "the power cap")
    of = name.rstrip("]").rpartition(",")[2] if "," in name else ""
    row = of_row(name, of) + (f" ({PLURALS.get(of, of)})" if of else "")
    return row[0].lower() + row[1:]


def told(waiting: WaitingJob, name: str) -> tuple[str, list[str]]:
    """Return a sentence about what holds a job back, and the sentences that prove it."""
    job, now_s = waiting.job, waiting.now_s
    if name == "blocked":
        return f"The scheduler holds it: {job.blocked}.", []
    if name == "eligible":
        leased = (job.comment or "").startswith("ronda")
        proof = ["Its comment lets ronda slurm give it one; the audit log there says why."] * leased
        return f"Its begin time is in {hours((job.eligible_s or now_s) - now_s)}.", proof
    if name == "after":
        ends = dict(zip((j.id for j in waiting.outlook.running), waiting.outlook.ends, strict=True))
        waits = {job.id for job in waiting.outlook.snapshot.jobs if job.start_s is None}
        told = []
        for each in waiting.job.after[:3]:
            left_s = float(ends.get(each.job, inf)) - waiting.now_s
            lasts = "without a known end" if left_s == inf else f"for at most {hours(left_s)} more"
            others = "waits itself" if each.job in waits else "is not known"
            told.append(f"{each.job}, which {f'runs {lasts}' if each.job in ends else others}")
        return f"It waits for {'; and for '.join(told)}.", []
    if name == "longest":
        group = waiting.longest()
        most, own = hours(group.max_limit_s or 0.0), hours(job.limit_s or 0.0)
        text = f"Its time limit of {own} is above the {most} that {group.name} allows."
        return text, [f"{IN_VAIN} A job with such a limit never starts there."]
    if name == "out":
        return _out(waiting), _free(waiting)
    if name == "leaves":
        return _leaving(waiting), _free(waiting)
    if name.startswith("on:"):
        return _on_nodes(waiting, name.removeprefix("on:"))
    if name in WORDS:
        return _shape(waiting, name), _free(waiting)
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


def _out(waiting: WaitingJob) -> str:
    nodes = _usable(waiting)
    out = [node for node in nodes if node.out is not None]
    reasons = Counter(node.out for node in out).most_common(3)
    why = ", ".join(f"{reason}: {n}" if len(reasons) > 1 else f"{reason}" for reason, n in reasons)
    back = [node.back_s for node in out if node.back_s is not None]
    text = f"{_some(len(out), len(nodes))} {'takes' if len(out) == 1 else 'take'} no jobs ({why})"
    if back:
        text += f"; the first is back in {hours(min(back) - waiting.now_s)}"
    return f"{text}."


def _leaving(waiting: WaitingJob) -> str:
    limit_s, now_s, nodes = waiting.job.limit_s, waiting.now_s, _usable(waiting)
    leaving = [node for node in nodes if node.leaves_s is not None]
    one, since = len(leaving) == 1, sorted({(n.leaves_s or 0.0) - now_s for n in leaving})
    leave, are = ("leaves", "is") if one else ("leave", "are")
    when = f"{leave} in {hours(since[0])}" if since[0] > 0 else f"{are} reserved now"
    names = sorted({node.reserved for node in leaving if node.reserved is not None})
    text = f"{_some(len(leaving), len(nodes))} {when}{' or later' if len(since) > 1 else ''}"
    text += f" (for {', '.join(names[:3])})" if names else ""
    back = [node.back_s for node in leaving if node.back_s is not None]
    if len(back) == len(leaving):
        text += f" and {are} back in {hours(min(back) - now_s)}"
    limit = "no time limit" if limit_s is None else f"a time limit of {hours(limit_s)}"
    return f"{text}; the job has {limit}."


def _usable(waiting: WaitingJob) -> list[SeenNode]:
    mine = waiting.usable()
    return [node for node, own in zip(waiting.outlook.snapshot.nodes, mine, strict=True) if own]


def _some(count: int, nodes: int) -> str:
    """Return the words for so many of the nodes that a job may use."""
    if nodes == 1:
        return "The only node that it may use"
    if count == nodes:
        return f"{'Both' if nodes == 2 else f'All {nodes}'} nodes that it may use"
    return f"{count} of the {nodes} nodes that it may use"


def _shape(waiting: WaitingJob, name: str) -> str:
    job, nodes = waiting.job, len(_usable(waiting))
    if name == "slices" and job.slices is not None:
        size, free = job.slices.nodes, _by_rack(waiting, job.slices.within)
        racks = ", ".join(f"{n} in {rack}" for rack, n in sorted(free.items())[:6])
        level = job.slices.within
        if size == job.count:
            return f"All its {size} nodes must be in one {level}; free are {racks}."
        slices = f"slices of {size} nodes" if size else "slices"
        room = sum(n // size for n in free.values()) if size else 0
        fit = f", room for {room} of {-(-job.count // size)} slices" if size else ""
        return f"Its {job.count} nodes are {slices}, each in one {level}; free are {racks}{fit}."
    if name == "exclusive":
        idle = int(((waiting.outlook.used(waiting.now_s)[1] == 0) & waiting.usable()).sum())
        return f"It has its nodes to itself, and {idle} of those that it may use are empty."
    if name == "own_nodes" and nodes < job.count:
        return f"It asks for {job.count} nodes, and may use {many(nodes, 'node')}."
    if name == "own_nodes":
        able = int((waiting.room(next(waiting.asked()), waiting.now_s) >= 1).sum())
        have = "node has" if able == 1 else "nodes have"
        noun = _pieces_of(waiting).replace("nodes", "pieces")
        return f"Each of its {job.count} {noun} needs a node of its own, and {able} {have} room."
    if name == "one_node":
        able = int(max(waiting.room(one, waiting.now_s).max(initial=0) for one in waiting.asked()))
        pieces = f"{job.count} {_pieces_of(waiting)}"
        return f"All its {pieces} must be on one node, and no node has room for more than {able}."
    asks = {
        "gpu_types": f"GPUs of model {' or '.join(job.gpu_types)}",
        "features": f"nodes with {', '.join(job.features)}",
        "partition": f"partition {' or '.join(job.partitions)}",
    }.get(name, named(name))
    there = "other nodes would have room" if nodes else "there is no such node"
    return f"It asks for {asks}, and {there}."


def _pieces_of(waiting: WaitingJob) -> str:
    return f"{a_piece(waiting.job, waiting.outlook.snapshot.system)}s"


def _by_rack(waiting: WaitingJob, level: str) -> dict[str, int]:
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
    said, only = amount(resource, need), mine.sum() == 1
    nodes = "the only node that it may use" if only else f"the {mine.sum()} nodes that it may use"
    pieces = _pieces_of(waiting)
    piece = "It" if job.count == 1 else f"Each of its {pieces}"
    on = "" if job.count > 1 and pieces == "nodes" else " on one node"
    most = float(has[mine].max(initial=0.0))
    if most < need:
        there = f"at most {amount(resource, most)}" if most else "none"
        return f"{piece} asks for {said}{on}, and {nodes} {_have(only)} {there}.", [IN_VAIN]
    empty = _pieces(has, mine, need)
    if empty < job.count:
        asks = many(job.count, "GPU") if anywhere(job) else f"{job.count} {pieces} of {said}"
        hold = "holds" if only else "hold"
        return f"It asks for {asks}, and {nodes} {hold} {empty} when empty.", [IN_VAIN]
    free = has - outlook.used(waiting.now_s)[0][:, outlook.resources.index(resource)]
    room, most = _pieces(free, mine, need), max(0.0, float(free[mine].max(initial=0.0)))
    rooms = [float(waiting.room(asked, waiting.now_s).sum()) for asked in waiting.asked()]
    text = f"{piece} needs {said}{on.replace('one', 'a')}, and "
    if anywhere(job):
        text = f"It needs {job.count} GPUs, and {room} are free on {nodes}."
    elif room == 0 and most == 0:
        text += f"{nodes} {_have(only)} none free."
    elif room == 0 and only:
        text += f"{nodes} has at most {amount(resource, most)} free."
    elif room == 0:
        text += f"none of {nodes} has so much free (at most {amount(resource, most)})."
    elif room < job.count:
        text += f"there is room for {room} of {job.count} {pieces}."
    elif job.count == 1:
        text += "no node that is open to it has that free beside all else that it needs."
    else:
        beside = f"there is room for {max(rooms, default=0):g} of {job.count} {pieces}"
        text += f"with all else that they need {beside}."
    held = outlook.limits.held(resource)
    return text, [*_free(waiting), *_holders(waiting, held, partial(amount, resource))]


def _have(one: object) -> str:
    return "has" if one else "have"


def anywhere(job: SeenJob) -> bool:
    """Return whether a job's pieces are single GPUs on any nodes."""
    per = {resource: held for resource, held in job.per.items() if resource != WATTS}
    return job.count > 1 and per == {GPUS: 1} and not (job.own_nodes or job.one_node)


def _pieces(free: Floats, nodes: Mask, need: float) -> int:
    return int(np.floor(np.maximum(free[nodes], 0.0) / need + 1e-9).sum())


def _free(waiting: WaitingJob) -> list[str]:
    """Say what is free now on the nodes that the job may use, if there are any."""
    outlook, job, mine = waiting.outlook, waiting.job, waiting.usable()
    if not mine.any():
        return []
    able = mine & outlook.open(waiting.now_s, job.may_run_s)
    if not able.any():
        return ["No node that it may use is open to it now."]
    enough = outlook.has - outlook.used(waiting.now_s)[0] >= outlook.vector(job.per) - 1e-9
    each = list[str]()
    for of, need in job.per.items():
        count = int((able & enough[:, outlook.resources.index(of)]).sum())
        each.append(f"{count} {_have(count == 1)} {amount(of, need)} free")
    count, nodes = int((able & enough.all(axis=1)).sum()), many(int(mine.sum()), "node")
    are = "is" if able.sum() == 1 else "are"
    text = f"Of {nodes} that it may use, {able.sum()} {are} open to it now"
    if mine.sum() == 1:
        text = "The only node that it may use is open to it now"
    text = f"{text}: {', '.join(each)}"
    return [f"{text}; {count} {_have(count == 1)} all of it." if len(each) > 1 else f"{text}."]


def _holders(waiting: WaitingJob, held: Floats, said: Callable[[float], str]) -> list[str]:
    """Say who holds most of a resource, if the host tells users or tenants."""
    by = Counter[str]()
    for job, holds in zip(waiting.outlook.running, held.tolist(), strict=True):
        who = job.user or job.tenant
        if who is not None and holds:
            by[who] += holds
    top = [f"{who} ({said(holds)})" for who, holds in by.most_common(3)]
    return [f"Most is held by {', '.join(top)}."] if top else []


def _limited(waiting: WaitingJob, row: str) -> tuple[str, list[str]]:
    met = [each for way in waiting.ways() for each in waiting.counts(way, waiting.now_s)]
    count = min((c for c in met if c.row == row), key=lambda c: c.held + c.asks - c.most)
    asked = waiting.job.per.get(count.of, 0.0) * waiting.job.count
    said = partial(in_row, row, count.of)

    holds = f"{said(count.held)} {'is' if count.held == 1 else 'are'} held"
    holds = holds if count.held else "nothing is held"
    text = f"{of_row(row, count.of)} is {said(count.most)}; {holds}"
    text += f", and it is charged {said(count.asks)}"
    if waiting.job.exclusive and asked < count.asks:
        text += f" (it asks for {said(asked) if asked else 'none'}, but has its nodes to itself)"
    taken = waiting.outlook.snapshot.licences_taken.get(count.of, 0.0) if "licence[" in row else 0.0
    proof = [f"{said(taken)} of that {'is' if taken == 1 else 'are'} held elsewhere."] * bool(taken)
    if count.asks > count.most:
        proof.append(f"{IN_VAIN} It alone is above the limit.")
    limits = (limit for asked in waiting.asked() for limit in asked.limits)
    own = (limit for limit in limits if isinstance(limit, JointLimit) and limit.row == row)
    for limit in islice(own, 1):  # quotas of trees have none
        proof += _holders(waiting, limit.amounts, said)
    return f"{text}.", proof
