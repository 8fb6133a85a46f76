"""The answer to why a job waits, for people and for programs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import inf
from typing import Any

from ronda.instances.snapshots.snapshot import Snapshot
from ronda.instances.tables.table import Report
from ronda.questions.why.answer import Why
from ronda.questions.why.elsewhere import Elsewhere
from ronda.questions.why.price import RowPrice
from ronda.questions.why.proof import anywhere, named
from ronda.questions.why.replay import Replay
from ronda.questions.why.words import WATTS, a_piece, amounts, hours, many, when


def why_report(
    source: str,
    snapshot: Snapshot,
    found: Why,
    price: RowPrice | None = None,
    there: Elsewhere | None = None,
    room: tuple[str, list[dict[str, Any]]] | None = None,
) -> Report:
    """Return the report of why a job of a snapshot waits.

    It has the price of the reason, what would be in another place, and, in words and step by step,
    whom to stop or move so that it starts now, if they are known.
    """
    fields, now_s = _fields(source, snapshot, found), found.waiting.now_s
    fields |= {"price": None if price is None else asdict(price)}
    words = list(_words(found))
    if there is not None:
        words += _there(there, now_s)
        fields["not"] = {
            "place": there.place,
            "reason": {"kind": there.reason.kind, "text": there.reason.text},
            "start_in_s": finite(there.start_s - now_s),
            "replay_in_s": finite(there.replay.start_s - now_s),
            "delays": None if there.delays is None else {j: finite(s) for j, s in there.delays},
        }
    fields["room"] = None if room is None else room[1]
    if room is not None:
        words.append(f"Or: {room[0]} and it starts now; ronda room says how.")
    if price is not None and price.each > 0:
        words.append(
            f"Price: one more unit of {price.row} is worth {price.each:.3g} in a plan of the whole "
            f"round (objective {price.objective})."
        )
    elif price is not None:
        words.append(f"Price: none; a best plan of the whole round leaves some of {price.row}.")
    return Report(fields, words, list(snapshot.noted.lines()))


def _there(there: Elsewhere, now_s: float) -> Iterator[str]:
    in_s = there.start_s - now_s
    if in_s == inf:
        yield f"Not {there.place}: it would never start there. {there.reason.text}"
        return
    yield f"Not {there.place}: it could start there {when(in_s)}{_late(there.delays)}."
    if in_s > 0:
        yield f"There: {there.reason.text}"
    yield _by_rule(there.replay, now_s)


def _words(found: Why) -> Iterator[str]:
    job = found.waiting.job
    who = ", ".join(filter(None, (job.user, job.tenant, *job.partitions)))
    yield f"Job {job.id}{f' ({who})' if who else ''}: {asks(found)}."
    if any(found.charged.get(r, 0.0) > job.count * a + 1e-9 for r, a in job.per.items()):
        yield f"It is charged {amounts(found.charged)}."
    printed = f" The scheduler prints {job.reason}." if job.reason else ""
    yield f"Why: {found.reason.text}{printed}"
    yield from found.reason.proof
    yield f"When: {_earliest(found)}"
    yield _by_rule(found.replay, found.waiting.now_s)
    for k, (easing, late) in enumerate(zip(found.easings, found.delays, strict=True)):
        start = f"it could start {when(easing.start_s - found.waiting.now_s)}{_late(late)}."
        yield f"{'Would help:' if k == 0 else 'Or'} {easing.text}; {start}"
    for k, remedy in enumerate(found.remedies):
        start = f"It could start {when(remedy.start_s - found.waiting.now_s)}."
        yield f"{'The operator could:' if k == 0 else 'Or:'} {remedy.text} {start}"


def _late(late: list[tuple[str, float]] | None) -> str:
    if late is None:
        return ""
    if not late:
        return " and delays nobody before it"
    first = ", ".join(f"{job} by {hours(seconds)}" for job, seconds in late[:3])
    more = f" and {many(len(late) - 3, 'other')}" if len(late) > 3 else ""
    return f", and delays {first}{more}"


def asks(found: Why) -> str:
    """Return the words for the request of a job."""
    job = found.waiting.job
    per = {resource: held for resource, held in job.per.items() if resource not in (WATTS, "pods")}
    text, noun = amounts(per), a_piece(job, found.waiting.outlook.snapshot.system)
    if job.count > 1 and noun == "node":
        text = f"{job.count} nodes with {text} each"
    elif job.count > 1:
        text = f"{job.count} {noun}s of {text}"
    if anywhere(job):
        text = f"{job.count} GPUs, anywhere"
    shapes = [
        words
        for words, true in (
            ("each on a node of its own", job.own_nodes and job.count > 1 and noun == "pod"),
            ("all on one node", job.one_node and job.count > 1),
            ("with its nodes to itself", job.exclusive),
            (f"of model {' or '.join(job.gpu_types)}", bool(job.gpu_types)),
            (f"on nodes with {', '.join(job.features)}", bool(job.features)),
        )
        if true
    ]
    limit = "no time limit" if job.limit_s is None else f"at most {hours(job.limit_s)}"
    return ", ".join([text, *shapes, limit])


def _earliest(found: Why) -> str:
    start_s, now_s = found.start_s, found.waiting.now_s
    if start_s <= now_s:
        return "it could start now without stopping or delaying anything that runs."
    if start_s < inf:
        return (
            f"in {hours(start_s - now_s)} at the earliest; no scheduler can start it sooner "
            "without stopping a job or changing the request or the limits."
        )
    if found.reason.kind in ("request", "dependency") or found.reason.never:
        return "never as it stands, by what is known; waiting does not help."
    return "nobody can say."


def _by_rule(replay: Replay, now_s: float) -> str:
    rule = replay.rule
    behind = f", behind {many(replay.ahead, 'job')} of the queue" if replay.ahead else ""
    if replay.start_s == inf:
        return f"By {rule} on time limits{behind}, it does not start."
    text = f"By {rule} on time limits{behind}, it starts {when(replay.start_s - now_s)}"
    if replay.skipped:
        text += f" or later: {many(replay.skipped, 'job')} before it were not looked at in time"
    return f"{text}."


def _fields(source: str, snapshot: Snapshot, found: Why) -> dict[str, Any]:
    job, now_s = found.waiting.job, found.waiting.now_s

    def in_s(at_s: float) -> float | None:
        return finite(at_s - now_s)

    return {
        "source": source,
        "job": job.id,
        "user": job.user,
        "tenant": job.tenant,
        "partitions": list(job.partitions),
        "now_s": now_s,
        "asked": _known({r: a * job.count for r, a in job.per.items()}),
        "charged": _known(found.charged),
        "pieces": job.count,
        "printed": job.reason,
        "reason": {
            **asdict(found.reason),
            "words": named(found.reason.name) if found.reason.name else "the order of the queue",
        },
        "hindrances": [
            {"name": each.name, "alone_s": in_s(each.alone_s), "without_s": in_s(each.without_s)}
            for each in found.hindrances
        ],
        "start_in_s": in_s(found.start_s),
        "replay": {
            "rule": found.replay.rule,
            "start_in_s": in_s(found.replay.start_s),
            "ahead": found.replay.ahead,
            "skipped": found.replay.skipped,
            "planned": [
                {"job": p.job.id, "start_in_s": p.start_s - now_s, "nodes": dict(p.on)}
                for p in found.replay.planned[:20]
            ],
        },
        "helps": [
            {
                "kinds": list(easing.kinds),
                "text": easing.text,
                "start_in_s": in_s(easing.start_s),
                "cost": easing.cost,
                "less": easing.less,
                "delays": None if late is None else {job: finite(s) for job, s in late},
            }
            for easing, late in zip(found.easings, found.delays, strict=True)
        ],
        "remedies": [
            {"kind": r.kind, "text": r.text, "start_in_s": in_s(r.start_s), "amounts": r.amounts}
            for r in found.remedies
        ],
        "noted": dict(snapshot.noted.counts),
    }


def finite(seconds: float) -> float | None:
    """Return seconds, or None for a time that nobody knows."""
    return None if seconds == inf else max(0.0, seconds)


def _known(amounts: Mapping[str, float]) -> dict[str, float]:
    return {resource: amount for resource, amount in amounts.items() if amount}
