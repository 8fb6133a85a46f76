"""The reasons why nodes with enough free GPUs have no room for a job, in words."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ronda.formulations.node_rules.hosts import binding
from ronda.formulations.placement.book import NodeBook
from ronda.formulations.site.nodes import concerns_nodes
from ronda.formulations.topology import regions
from ronda.instances.base import Mask
from ronda.instances.job import Allocation, JobState, Option, Slices
from ronda.instances.round import Round

SHOWN = 8
"""The most nodes that a reason names."""


def book_of(round: Round, allocations: Mapping[str, Allocation]) -> NodeBook | None:
    """Return the book of a round with allocations taken, or None if no rule concerns nodes."""
    if not concerns_nodes(round):
        return None
    book = NodeBook(round)
    for state in round.jobs:
        if state.job.id in allocations:
            book.take(state, allocations[state.job.id])
    return book


def unfit_nodes(book: NodeBook | None, state: JobState, option: Option) -> str | None:
    """Return which nodes with enough free GPUs are closed or short of something, or None."""
    if book is None:
        return None
    own = book.usable & (book.pool == option.pool)
    piece = min(option.gpus, int(book.size[own].max(initial=1)))
    roomy, found = own & (book.free >= piece), list[str]()
    closed = roomy & ~book.open_to(state, option)
    if closed.any():
        found.append(f"{_nodes(closed)} closed to the job")
    needs = book.needs(state)
    needed = needs.piece(piece) + needs.flat * (piece == option.gpus)
    for name, amount, left in zip(book.names, needed.tolist(), book.left, strict=True):
        short = roomy & ~closed & (left < amount)
        if amount > 0 and short.any():
            most = max(0.0, float(left[short].max()))
            words = f"the job needs {amount:g} there, at most {most:.6g} is left"
            found.append(f"too little {name} on {_nodes(short)}: {words}")
    if state.job.slices is not None:
        found.append(_in_slices(book, state.job.slices, option.gpus // piece, roomy & ~closed))
    return "; ".join(found) or None


def _in_slices(book: NodeBook, slices: Slices, nodes: int, able: Mask) -> str:
    """Return the empty nodes of racks, and the slices that a job asks for."""
    at = regions(book.round.cluster, slices.within)[able & (book.pieces == 0)]
    room = sorted(Counter(at[at >= 0].tolist()).values(), reverse=True)
    wanted = f"{nodes} nodes in slices" + (f" of {slices.nodes}" if slices.nodes else "")
    racks = ", ".join(map(str, room[:SHOWN])) + (" …" if len(room) > SHOWN else "")
    asked = f"the job needs {wanted}, each in one {slices.within}"
    return f"{asked}, and empty nodes by {slices.within} are {racks or 'none'}"


def _nodes(mask: Mask) -> str:
    names: Sequence[int] = np.flatnonzero(mask).tolist()
    more = f", … ({len(names)} in all)" if len(names) > SHOWN else ""
    return f"node{'s' * (len(names) > 1)} {', '.join(map(str, names[:SHOWN]))}{more}"


def stranded(round: Round, allocations: Mapping[str, Allocation]) -> str | None:
    """Return how many free GPUs the hosts of their nodes keep from all waiting jobs, if any.

    A node counts if a waiting job's smallest piece fits its free GPUs, but no such piece finds
    enough of each resource there.
    """
    book = book_of(round, allocations) if binding(round).any() else None
    if book is None:
        return None
    pools = round.cluster.topology.pools
    wanted, served = np.zeros_like(book.usable), np.zeros_like(book.usable)
    asked: dict[str, float] = {}
    for state in round.jobs:
        job = state.job
        if job.id in allocations or state.blocked is not None:
            continue
        needs = book.needs(state)
        for p, pool in enumerate(pools):
            if not job.may_use(pool):
                continue
            least = job.min_gpus or job.gpus
            gpus, own = min(least, pool.gpus_per_node), book.usable & (book.pool == p)
            needed = needs.piece(gpus) + needs.flat * (gpus == least)
            wanted |= own & (book.free >= gpus)
            served |= book.room_for(gpus, needed, own)
            for name, amount in zip(book.names, needed.tolist(), strict=True):
                asked[name] = min(amount, asked.get(name, np.inf))
    kept = wanted & ~served
    if not kept.any():
        return None
    words = []
    for name, left in zip(book.names, book.left, strict=True):
        if asked.get(name, 0.0) > left[kept].min():
            most = max(0.0, float(left[kept].max()))
            words.append(f"{name}: at least {asked[name]:g} is asked, at most {most:.6g} is left")
    free, lost = int(book.free[book.usable].sum()), int(book.free[kept].sum())
    why = f" ({'; '.join(words)})" if words else ""
    return f"{free} GPUs are free, {lost} of them on nodes without what waiting jobs ask{why}"
