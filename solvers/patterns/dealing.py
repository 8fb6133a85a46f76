"""Which job gets which slot on which node, with groups apart."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ronda.formulations.patterns.model import TOLERANCE, NodeModel
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import OutOfTimeError, watched
from ronda.solvers.patterns.master import PatternMaster
from ronda.solvers.patterns.pricing import SlotPrices
from ronda.solvers.patterns.rounding import Ranges

SMALL = 0.05
"""The share of a job in a way that is left out."""

CLOSE = (0.002, 0.01, 0.05, 0.25)
"""The widths of the tiers that share slots."""

ROUNDS, TRIES, ALIKE = 12, 200, 100
"""The most rounds in which jobs choose slots, places that a clashing slice tries, and jobs of
a form that nodes with room are offered."""


def matched(model: NodeModel, supply: Floats, prices: Floats, way: Rows) -> Floats:
    """Choose the ways (J,) of jobs that are worth most together with a supply (Q,) of slots.

    Return the slots that are left, shape (Q,).

    A linear program says how many jobs of each tier at the prices (Q,) get each way. Within a tier
    it is those that lose most by another one. Large fractions are rounded up while slots last, and
    jobs choose among the slots that are left.
    """
    if not supply.any():
        return supply
    supply = supply.copy()
    master = PatternMaster(model, (), prices, CLOSE, supply)
    prices, rest = master.solve()[1], list[tuple[float, int, int, int]]()
    columns = zip(model.forms, master.tiers, master.shares(), strict=True)
    for f, (form, tier, share) in enumerate(columns):
        net, whole = form.net(prices), np.floor(share + 1e-6)
        parts = np.argwhere(share - whole > SMALL).tolist()
        rest += [(float(whole[t, w] - share[t, w]), f, t, w) for t, w in parts]
        for w in range(len(form.slot)):
            other = np.delete(net, w, axis=1).max(axis=1)
            rows = np.flatnonzero((way[form.jobs] < 0) & (whole[tier, w] > 0))
            order = rows[np.lexsort((other[rows] - net[rows, w], tier[rows]))]
            rank = np.arange(len(order)) - np.searchsorted(tier[order], tier[order])
            got = form.jobs[order[rank < whole[tier[order], w]]]
            way[got] = w
            used = form.slot[w] >= 0
            np.subtract.at(supply, form.slot[w, used], form.times[w, used] * len(got))
    for _, f, t, w in sorted(rest):
        form = model.forms[f]
        used, rows = form.slot[w] >= 0, (master.tiers[f] == t) & (way[form.jobs] < 0)
        if rows.any() and (supply[form.slot[w, used]] >= form.times[w, used]).all():
            supply[form.slot[w, used]] -= form.times[w, used]
            way[form.jobs[np.where(rows, form.value[:, w], -np.inf).argmax()]] = w
    others = np.arange(len(prices)) >= len(model.size)
    for each in (prices, prices * others):
        chosen(model, supply, each, way)
    return supply


def chosen(model: NodeModel, supply: Floats, prices: Floats, way: Rows) -> None:
    """Let jobs without a `way` (J,) choose one at prices (Q,) while the supply (Q,) lasts.

    Where more jobs want a slot than there are, those that lose most by another way get it. The
    others choose again. Changes `way` and `supply`.
    """
    for _ in range(ROUNDS):
        wants = [_best(model, f, supply, prices, way) for f in range(len(model.forms))]
        if not any(len(own[0]) for own in wants):
            return
        columns = zip(*wants, strict=True)
        job, which, margin, slot, times = (np.concatenate(column) for column in columns)
        fits = np.ones(len(job), dtype=bool)
        for e in range(slot.shape[1]):
            order = np.lexsort((-margin, slot[:, e]))
            own, many = slot[order, e], times[order, e]
            total = np.cumsum(many)
            first = np.searchsorted(own, own)
            before = total[first] - many[first]
            fits[order] &= (own < 0) | (total - before <= np.append(supply, 0.0)[own])
        way[job[fits]] = which[fits]
        np.subtract.at(supply, slot[fits][slot[fits] >= 0], times[fits][slot[fits] >= 0])


def _best(
    model: NodeModel, f: int, supply: Floats, prices: Floats, way: Rows
) -> tuple[Rows, Rows, Floats, Rows, Rows]:
    """Return the jobs of a form that want a way: job, way, what they lose by the next, slots."""
    form = model.forms[f]
    rows = np.flatnonzero(way[form.jobs] < 0)
    there = (np.append(supply, np.inf)[form.slot] >= form.times).all(axis=1)
    net = form.value[rows] - form.cost(prices)
    net[:, ~there] = -np.inf
    best = net.argmax(axis=1)
    top = net[np.arange(len(rows)), best]
    net[np.arange(len(rows)), best] = 0.0
    margin = top - np.maximum(net.max(axis=1), 0.0)
    some = top > 0
    rows, best = rows[some], best[some]
    return form.jobs[rows], best, margin[some], form.slot[best], form.times[best]


@dataclass(eq=False)
class Seats:
    """Places on nodes, sorted by slot: `node`, `slot` and `job` of each (A,), -1 for none."""

    node: Rows
    slot: Rows
    job: Rows


def seated(model: NodeModel, ranges: Ranges, way: Rows, seed: int) -> Seats:
    """Return places on nodes with the jobs that have a `way` (J,).

    Jobs of a group, and slices of a job, get different nodes. A job for which no places are found
    loses its way.
    """
    seats = _places(ranges)
    job, slot = _slices(model, way)
    own = _own_groups(model, job)
    size = np.bincount(own + 1)
    order = np.lexsort((job, own, -np.where(own >= 0, size[own + 1], 0), slot))
    job, slot = job[order], slot[order]
    rank = np.arange(len(slot)) - np.searchsorted(slot, slot)
    seats.job[np.searchsorted(seats.slot, slot) + rank] = job
    _separate(model, seats, way, seed)
    return seats


def _places(ranges: Ranges) -> Seats:
    """Return the slots of ranges one by one: the first of every node, then the second ones."""
    first, last, slot, each = np.array(ranges.slots, dtype=np.int64).reshape(-1, 4).T
    many = (last - first) * each
    at = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    node = np.repeat(first, many) + at // np.repeat(each, many)
    slot = np.repeat(slot, many)
    order = np.lexsort((node, slot))
    node, slot = node[order], slot[order]
    new = (np.diff(node, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0)
    layer = np.arange(len(node)) - np.maximum.accumulate(np.where(new, np.arange(len(node)), 0))
    order = np.lexsort((node, layer, slot))
    return Seats(node[order], slot[order], np.full(len(node), -1))


def _slices(model: NodeModel, way: Rows) -> tuple[Rows, Rows]:
    """Return job and slot of each slice of the jobs that have a way."""
    jobs, slots = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for form in model.forms:
        runs = np.flatnonzero(way[form.jobs] >= 0)
        own = way[form.jobs[runs]]
        for slot, times in zip(form.slot[own].T, form.times[own].T, strict=True):
            some = np.where(slot >= 0, times, 0)
            jobs.append(np.repeat(form.jobs[runs], some))
            slots.append(np.repeat(slot, some))
    return np.concatenate(jobs), np.concatenate(slots)


def _own_groups(model: NodeModel, job: Rows) -> Rows:
    """Return the group of each slice: its job's, or one of its own if the job has several."""
    group, many = model.group[job], np.bincount(job, minlength=len(model.group))
    alone = (group < 0) & (many[job] > 1)
    return np.asarray(np.where(alone, model.group.max(initial=-1) + 1 + job, group))


def _separate(model: NodeModel, seats: Seats, way: Rows, seed: int) -> None:
    """Exchange jobs between places of one slot until no node holds two slices of a group."""
    rng, group = np.random.default_rng(seed), np.full(len(seats.job), -1)
    held = seats.job >= 0
    group[held] = _own_groups(model, seats.job[held])
    span = int(group.max(initial=-1)) + 1
    own = np.flatnonzero(group >= 0)
    key = seats.node[own] * span + group[own]
    _, kept = np.unique(key, return_index=True)
    bad, seen = np.zeros(len(group), dtype=bool), set(key[kept].tolist())
    bad[own] = True
    bad[own[kept]] = False
    low, high = (np.searchsorted(seats.slot, seats.slot[bad], side) for side in ("left", "right"))
    lost = set[int]()
    for i, first, end in zip(
        np.flatnonzero(bad).tolist(), low.tolist(), high.tolist(), strict=True
    ):
        g, node, bad[i] = int(group[i]), int(seats.node[i]), False
        if g < 0 or node * span + g not in seen:
            seen.add(node * span + g)
            continue
        for j in rng.integers(first, end, TRIES).tolist():
            other, there = int(group[j]), int(seats.node[j])
            if bad[j] or there == node or there * span + g in seen:
                continue
            if other >= 0:
                if node * span + other in seen:
                    continue
                seen.discard(there * span + other)
                seen.add(node * span + other)
            seen.add(there * span + g)
            seats.job[[i, j]], group[[i, j]] = seats.job[[j, i]], group[[j, i]]
            break
        else:
            lost.add(int(seats.job[i]))
    gone = np.array(sorted(lost), dtype=np.int64)
    seats.job[np.isin(seats.job, gone)] = -1
    way[gone] = -1


def patched(priced: SlotPrices, seats: Seats, way: Rows) -> Seats:
    """Return places with further jobs on nodes that have a free place, and note their ways.

    Jobs that are worth most for the resources that they take come first. If the time ends, the
    nodes so far are the answer.
    """
    model = priced.model
    free = model.capacity[model.owner] * (1 + TOLERANCE)
    open_nodes, held = np.unique(seats.node[seats.job < 0]), seats.job >= 0
    seats = Seats(seats.node[held], seats.slot[held], seats.job[held])
    for r in range(free.shape[1]):
        free[:, r] -= np.bincount(seats.node, model.size[seats.slot, r], len(free))
    job, which, slot = _offers(priced, way)
    size, group = model.size[slot], model.group[job]
    offered = [np.flatnonzero(model.supplied[slot, k]) for k in range(len(model.count))]
    own = model.group[seats.job]
    seen = set(zip(seats.node[own >= 0].tolist(), own[own >= 0].tolist(), strict=True))
    more = list[tuple[int, int, int]]()
    smallest = size.min(axis=0, initial=np.inf)
    with suppress(OutOfTimeError):
        for n in watched(open_nodes[(smallest <= free[open_nodes]).all(axis=1)].tolist()):
            near = offered[model.owner[n]]
            near = near[(way[job[near]] < 0) & (size[near] <= free[n]).all(axis=1)]
            while len(near):
                i, near = int(near[0]), near[1:]
                pair = n, int(group[i])
                if pair not in seen:
                    way[job[i]] = which[i]
                    free[n] -= size[i]
                    more.append((n, int(slot[i]), int(job[i])))
                    if pair[1] >= 0:
                        seen.add(pair)
                    near = near[(way[job[near]] < 0) & (size[near] <= free[n]).all(axis=1)]
    added = np.array(more, dtype=np.int64).reshape(-1, 3).T
    columns = zip((seats.node, seats.slot, seats.job), added, strict=True)
    return Seats(*(np.concatenate(pair) for pair in columns))


def _offers(priced: SlotPrices, way: Rows) -> tuple[Rows, Rows, Rows]:
    """Return job, way and slot of the best jobs of each form without a way, the densest first."""
    model, parts = priced.model, [np.zeros((4, 0))]
    mean = priced.unit[model.count > 0].mean(axis=0)
    for form in model.forms:
        rows = np.flatnonzero(way[form.jobs] < 0)
        rows = rows[np.argsort(-form.value[rows].max(axis=1), kind="stable")[:ALIKE]]
        single = form.costless(priced.prices) & (form.times.sum(axis=1) == 1)
        for w, slot in enumerate(form.slot):
            if single[w]:
                q = slot.max()
                density = form.value[rows, w] / (model.size[q] @ mean + 1e-12)
                n = len(rows)
                parts.append(np.array([-density, form.jobs[rows], np.full(n, w), np.full(n, q)]))
    offers = np.concatenate(parts, axis=1)
    job, which, slot = offers[1:, np.argsort(offers[0], kind="stable")].astype(np.int64)
    return job, which, slot
