"""What an operator could do so that a waiting job starts sooner, each with its price.

Each is the earliest start without something that holds the job back, and then the least of it that
gives this start: by how much a limit is too low, which nodes are needed and not there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from functools import partial
from itertools import combinations
from math import inf

import numpy as np

from ronda.instances.base import Floats
from ronda.questions.why.earliest import RouteAsked, WaitingJob, enough
from ronda.questions.why.limits import LimitCount
from ronda.questions.why.words import hours, in_row, many, of_row

FEW, MOST = 3, 40
"""Every choice of so few nodes, of so many at most, is tried for a job in slices."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What an operator could do, in words with numbers, and the earliest start then.

    The `kind` is ``limit`` (raise limits), ``longest`` (allow a longer time limit), ``nodes``
    (bring nodes back), ``outage`` (let nodes leave later), or ``hold`` (let the job go). The price,
    `amounts`, is by how much each limit is raised, by its row; seconds; or 1 for each node.
    """

    kind: str
    text: str
    start_s: float
    amounts: dict[str, float]


def remedies(waiting: WaitingJob) -> list[Remedy]:
    """Return what an operator could do so that a job starts sooner, the earliest start first."""
    if waiting.start() <= waiting.now_s:
        return []
    found = [*_limits(waiting)]
    acts = {"longest": _longest, "blocked": _hold, "out": _nodes, "leaves": _outages}
    for name, act in acts.items():
        start_s = waiting.start({name})
        if start_s < waiting.start():
            found += act(waiting, start_s)
    return sorted(found, key=lambda one: one.start_s)


def _limits(waiting: WaitingJob) -> Iterator[Remedy]:
    """Yield by how much to raise each limit that alone helps, and all of them if that is better."""
    rows = [name for name in waiting.names() if "[" in name]
    found = [one for row in rows for one in _raised(waiting, (row,))]
    yield from found
    if waiting.start(rows) < min((one.start_s for one in found), default=inf):
        yield from _raised(waiting, rows)


def _raised(waiting: WaitingJob, rows: Sequence[str]) -> Iterator[Remedy]:
    """Yield the least by which limits must be raised for the start without them, if it is sooner.

    Of several routes of the job it is the one for which least is missing in all.
    """
    start_s = waiting.start(rows)
    if start_s >= waiting.start():
        return
    short = [_short(waiting, asked, start_s) for asked in _routes(waiting, rows, start_s)]
    if not short:
        return
    least = min(short, key=lambda each: sum(one.held + one.asks - one.most for one in each))
    if not all(one.most + one.held + one.asks < inf for one in least):
        return
    more = {one.row: one.held + one.asks - one.most for one in least}
    words = []
    for one in least:
        row, said = of_row(one.row, one.of), partial(in_row, one.row, one.of)
        by, most, new = said(more[one.row]), said(one.most), said(one.held + one.asks)
        span = f"to {new} in all" if "borrow[" in one.row else f"from {most.split()[0]} to {new}"
        words.append(f"{row[0].lower()}{row[1:]} by {by}, {span}")
    yield Remedy("limit", f"Raise {', and '.join(words)}.", start_s, more)


def _short(waiting: WaitingJob, asked: RouteAsked, at_s: float) -> list[LimitCount]:
    full = waiting.with_room(asked, waiting.room(asked, at_s))
    rows = (one for limit in full.limits for one in limit.at(at_s, waiting.outlook.ends))
    return [one for one in rows if not one.fits]


def _longest(waiting: WaitingJob, start_s: float) -> Iterator[Remedy]:
    limit_s = waiting.job.may_run_s
    group = waiting.longest()
    most_s = group.max_limit_s or 0.0
    text = f"Allow {hours(limit_s)} instead of {hours(most_s)} in {group.name}."
    yield Remedy("longest", text, start_s, {group.name: limit_s - most_s})


def _hold(waiting: WaitingJob, start_s: float) -> Iterator[Remedy]:
    yield Remedy("hold", f"Remove what holds it: {waiting.job.blocked}.", start_s, {})


def _nodes(waiting: WaitingJob, start_s: float) -> Iterator[Remedy]:
    """Yield the fewest nodes out of service that would start the job as early as all of them."""
    found = [
        nodes
        for asked in _routes(waiting, ["out"], start_s)
        if (nodes := _fewest(waiting, asked, start_s)) is not None
    ]
    if found:
        nodes = min(found, key=len)
        names = [waiting.outlook.snapshot.nodes[n].name for n in nodes]
        text = f"Bring {many(len(names), 'node')} back: {', '.join(names)}."
        yield Remedy("nodes", text, start_s, dict.fromkeys(names, 1.0))


def _routes(waiting: WaitingJob, skip: Sequence[str], at_s: float) -> list[RouteAsked]:
    """Return the routes by which a job could start at a time without something."""
    routes = [with_fields(asked, skip=frozenset(skip)) for asked in waiting.asked()]
    return [asked for asked in routes if waiting.fits(asked, at_s)]


def _more(waiting: WaitingJob, asked: RouteAsked, at_s: float) -> tuple[Floats, Floats]:
    """Return the room that nodes have for a job's pieces at a time, and what `skip` adds, (N,)."""
    room = waiting.room(with_fields(asked, skip=frozenset()), at_s)
    return room, waiting.room(asked, at_s) - room


def _fewest(waiting: WaitingJob, asked: RouteAsked, at_s: float) -> Sequence[int] | None:
    """Return the fewest nodes whose room, added to what there is, is enough for a job.

    They are those with most room. In slices, which nodes matters: choices of a few are all tried,
    and after that nodes are left out one by one, as long as there is enough.
    """
    room, more = _more(waiting, asked, at_s)
    order = [int(n) for n in np.argsort(-more, kind="stable") if more[n] > 0]

    def does(nodes: Sequence[int]) -> bool:
        added = room.copy()
        added[list(nodes)] += more[list(nodes)]
        return enough(asked.job, added, waiting.outlook, frozenset())

    if asked.job.slices is None:
        return next((order[:k] for k in range(1, len(order) + 1) if does(order[:k])), None)
    for k in range(1, FEW + 1) if len(order) <= MOST else ():
        for nodes in combinations(order, k):
            if does(nodes):
                return nodes
    kept = list(order)
    for n in order:
        if does(rest := [other for other in kept if other != n]):
            kept = rest
    return kept


def _outages(waiting: WaitingJob, start_s: float) -> Iterator[Remedy]:
    """Yield by how much later nodes would have to leave, by as little as can be."""
    limit_s = waiting.job.limit_s
    if limit_s is None:
        return
    best: tuple[float, Sequence[int]] | None = None
    for asked in _routes(waiting, ["leaves"], start_s):
        room, more = _more(waiting, asked, start_s)
        leaves = [node.leaves_s or 0.0 for node in waiting.outlook.snapshot.nodes]
        order = sorted(np.flatnonzero(more > 0).tolist(), key=lambda n: -leaves[n])
        for k, n in enumerate(order):
            room[n] += more[n]
            if enough(asked.job, room, waiting.outlook, frozenset()):
                later_s = start_s + limit_s - leaves[n]
                if best is None or later_s < best[0]:
                    best = later_s, order[: k + 1]
                break
    if best is not None:
        later_s, nodes = best
        names = [waiting.outlook.snapshot.nodes[n].name for n in nodes]
        which = many(len(names), "node") if len(names) > FEW else ", ".join(names)
        text = f"Let {which} leave {hours(later_s)} later."
        yield Remedy("outage", text, start_s, dict.fromkeys(names, later_s))
