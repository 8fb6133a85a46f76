"""The one reason that holds a job back most."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ronda.questions.why.earliest import FIRST, NOTHING, SHAPES, WaitingJob
from ronda.questions.why.proof import in_order, named, told

CHOICE = frozenset({"nodes", "features", "gpu_types", "partition"})
"""What a job says of the nodes that it may use."""

KINDS = {
    **dict.fromkeys(FIRST, "dependency"),
    **dict.fromkeys(SHAPES, "shape"),
    **dict.fromkeys(CHOICE, "request"),
    "out": "machine",
    "leaves": "outage",
    "longest": "request",
}
"""The kind of reason by the name of what holds a job back; other names are limits or room."""

ORDER = (*FIRST, "longest", *SHAPES, "leaves", "out")
"""What is more particular first; rows of limits, the choice of nodes and their room follow."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Something that may hold a job back, by its name as in `WaitingJob`.

    The job could start at `alone_s` if nothing else held it back, and at `without_s` if this did
    not.
    """

    name: str
    alone_s: float
    without_s: float


@dataclass(frozen=True, slots=True)
class Dominant:
    """The reason that holds a job back most.

    Attributes
    ----------
    kind
        ``request`` (no node, or no group of jobs, could ever take it as it asks), ``limit`` (what
        jobs may hold together), ``room`` (free room on nodes), ``shape`` (how its pieces share
        nodes and racks), ``machine`` (nodes out of service), ``outage`` (nodes that leave),
        ``dependency`` (other jobs, a hold), or ``order`` (it could start now, but has not been).
    name, never
        What holds it back, as in `WaitingJob`, empty for ``order``; and whether waiting does not
        help by what is known.
    text, proof
        The reason in a sentence, and sentences that prove it.
    """

    kind: str
    name: str
    never: bool
    text: str
    proof: tuple[str, ...]


def hindrances(waiting: WaitingJob) -> list[Hindrance]:
    """Return all that holds a job back, the most important first; none if it could start now.

    That is what alone would make it wait longest; of several, what would let it start first if it
    were gone; of several, what is more particular.
    """
    start_s, now_s = waiting.start(), waiting.now_s
    if start_s <= now_s:
        return []
    names = waiting.names()
    every = frozenset(names)
    found = []
    # If its choice of nodes alone keeps it from starting, others are looked at apart from that.
    choice = CHOICE if waiting.start(every - CHOICE) < inf else NOTHING
    for name in names:
        kept = choice | {name} | ({"exclusive"} if "[" in name else set())  # it sets the charge
        found.append(Hindrance(name, waiting.start(every - kept), waiting.start({name})))

    def key(one: Hindrance) -> tuple[float, float, int]:
        if one.name in ORDER:
            return -one.alone_s, one.without_s, ORDER.index(one.name)
        late = 3 if one.name == "on:gpus" else 2 * one.name.startswith("on:")
        return -one.alone_s, one.without_s, len(ORDER) + late + (one.name in CHOICE)

    matter = (one for one in found if one.alone_s > now_s or one.without_s < start_s)
    return sorted(matter, key=key)


def dominant(waiting: WaitingJob, among: Sequence[Hindrance] | None = None) -> Dominant:
    """Return the reason that holds a job back most, with its proof, `among` its `hindrances`."""
    start_s, now_s = waiting.start(), waiting.now_s
    found = hindrances(waiting) if among is None else among
    if not found:
        text, proof = in_order(waiting)
        return Dominant("order", "", never=False, text=text, proof=tuple(proof))
    first = found[0] if found[0].alone_s >= start_s else _last(waiting, found)
    kind = KINDS.get(first.name, "room" if first.name.startswith("on:") else "limit")
    if kind in ("room", "shape") and not waiting.fits_empty():
        kind = "request"
    text, proof = told(waiting, first.name)
    others = [named(one.name) for one in found if one != first and one.alone_s > now_s]
    if others:
        proof = [*proof, f"Also short: {', '.join(others[:3])}."]
    return Dominant(kind, first.name, start_s == inf, text, tuple(proof))


def _last(waiting: WaitingJob, found: Sequence[Hindrance]) -> Hindrance:
    """Return what alone kept a job from starting when something last became free before it did.

    So no single thing explains its start. If several did, it is the first of all.
    """
    times = waiting.outlook.times
    at_s = float(times[times < waiting.start()].max(initial=waiting.now_s))
    for one in found:
        if any(waiting.fits(asked, at_s) for asked in waiting.asked(frozenset({one.name}))):
            return one
    return found[0]
