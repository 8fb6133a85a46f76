"""From shares of patterns to whole patterns on nodes, and jobs on the room that they leave."""

import numpy as np

from ronda.formulations.patterns.model import TOLERANCE, Form, NodeModel
from ronda.instances.base import Floats, Ints, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.solvers.patterns.pricing import SlotPrices, sequence

MOST_DIVES, FEW = 12, 0.005
"""The most steps of a dive, and the share of nodes that it may leave to what follows."""

CHUNKS = 4
"""The parts of the jobs of a form, by value, that fill room one after another."""


def dive(priced: SlotPrices) -> None:
    """Round the shares of patterns: half of the open nodes are decided at once, and the rest again.

    Each step adds patterns for the nodes and slots that are left.
    """
    model, master = priced.model, priced.master
    for _ in range(MOST_DIVES):
        if master is None:
            return
        owner, whole = np.array(master.owner, dtype=np.int64), np.floor(priced.share + 1e-6)
        left = model.count - _nodes(owner, whole, model)
        if left.sum() <= FEW * model.count.sum():
            return
        half, rest = -(-left // 2), priced.share - whole
        for p in np.argsort(-rest, kind="stable")[: np.count_nonzero(rest > 0.05)]:
            if half[owner[p]] > 0:
                whole[p] += 1
                half[owner[p]] -= 1
        left = model.count - _nodes(owner, whole, model)
        wanted = model.wanted(priced.prices)
        for p in np.flatnonzero(whole):
            wanted[priced.sacks[owner[p]].slots] -= whole[p] * master.patterns[p]
        more = sequence(priced.sacks, priced.prices, np.maximum(wanted, 0.0), left)
        master.enter([(k, pattern) for k, pattern, _ in more])
        master.fix(np.append(whole, np.zeros(len(master.owner) - len(whole))).astype(np.int64))
        priced.share = master.solve()[2]


def _nodes(owner: Rows, whole: Floats, model: NodeModel) -> Ints:
    return np.bincount(owner, whole, len(model.count)).astype(np.int64)


class Ranges:
    """Ranges of nodes with equal contents: class, first and last node, and free amounts (n, R).

    `given` holds the number of slots of each kind on each node of a range.
    """

    def __init__(self, model: NodeModel) -> None:
        self.model = model
        self.owner = np.arange(len(model.count))
        self.first, self.last = model.first[:-1].copy(), model.first[1:].copy()
        self.free = model.capacity * (1 + TOLERANCE)
        self.given = [dict[int, int]() for _ in model.count]

    @property
    def slots(self) -> list[tuple[int, int, int, int]]:
        """The slots given: (first node, last node, slot, number on each node)."""
        spans = zip(self.first.tolist(), self.last.tolist(), self.given, strict=True)
        return [(*span, q, each) for *span, given in spans for q, each in given.items()]

    def supply(self) -> Floats:
        """Return the number of slots given, shape (Q,)."""
        many = np.zeros(len(self.model.size))
        for first, last, slot, each in self.slots:
            many[slot] += (last - first) * each
        return many

    def give(self, i: int, slot: int, copies: int, wanted: int) -> int:
        """Give up to `wanted` slots, `copies` on a node of range `i`; return how many were given.

        Negative `copies` take slots back. The nodes of the range that get another number of slots
        become ranges of their own.
        """
        sign, copies = (1, copies) if copies > 0 else (-1, -copies)
        nodes = int(self.last[i] - self.first[i])
        full = min(nodes, wanted // copies)
        rest = wanted - full * copies if full < nodes else 0
        for some, each in ((full, copies), (1, rest)):
            if some and each:
                self.cut(i, some)
                self.given[i][slot] = self.given[i].get(slot, 0) + sign * each
                self.free[i] -= sign * each * self.model.size[slot]
                i = len(self.owner) - 1
        return full * copies + rest

    def fitting(self, slot: int) -> Mask:
        """Return which ranges have room for a slot on each node."""
        fits = (self.free >= self.model.size[slot]).all(axis=1)
        return np.asarray(fits & self.model.supplied[slot, self.owner])

    def take_back(self, slots: Floats) -> None:
        """Take back so many slots of each kind, shape (Q,)."""
        for q in np.flatnonzero(slots > 0).tolist():
            wanted = int(slots[q])
            for i in [i for i, given in enumerate(self.given) if given.get(q)]:
                wanted -= self.give(i, q, -self.given[i][q], wanted)

    def cut(self, i: int, nodes: int) -> None:
        """Keep the first `nodes` of range `i`; the other nodes become the last range."""
        at = self.first[i] + nodes
        if at < self.last[i]:
            self.first, self.last = np.append(self.first, at), np.append(self.last, self.last[i])
            self.owner = np.append(self.owner, self.owner[i])
            self.free = np.vstack([self.free, self.free[i]])
            self.given.append(self.given[i].copy())
            self.last[i] = at


def laid(priced: SlotPrices) -> Ranges:
    """Return nodes with the whole patterns of the relaxation, and patterns for the nodes left."""
    model, ranges = priced.model, Ranges(priced.model)
    nodes, left = model.count.copy(), model.demand.copy()
    plan = list[tuple[int, Floats, int]]()
    whole = np.floor(priced.share + 1e-6).astype(np.int64)
    for p in np.flatnonzero(whole):
        assert priced.master is not None
        k, pattern = priced.master.owner[p], priced.master.patterns[p]
        slots, todo = priced.sacks[k].slots, int(min(whole[p], nodes[k]))
        nodes[k] -= todo
        while todo and pattern.any():
            used = pattern > 0
            n = int(min(todo, (left[slots[used]] // pattern[used]).min()))
            if n:
                plan.append((k, pattern, n))
                left[slots] -= n * pattern
                todo -= n
            pattern = np.minimum(pattern, left[slots])
        nodes[k] += todo
    wanted = np.maximum(model.wanted(priced.prices) - (model.demand - left), 0.0)
    more = sequence(priced.sacks, priced.prices, np.minimum(wanted, left), nodes)
    rows = {k: k for k in range(len(model.count))}  # the range of the nodes left of each class
    for k, pattern, n in (*plan, *more):
        i = rows[k]
        ranges.cut(i, n)
        rows[k] = len(ranges.owner) - 1
        ranges.free[i] -= pattern @ priced.sacks[k].size
        slots = priced.sacks[k].slots.tolist()
        many = zip(slots, pattern.astype(int).tolist(), strict=True)
        ranges.given[i] = {slot: each for slot, each in many if each}
    return ranges


def fill(priced: SlotPrices, ranges: Ranges, way: Rows) -> None:
    """Give slots to jobs without a `way` (J,) where there is room, and note their ways.

    The jobs that are worth most for the resources that they take come first. Each goes where its
    value less the prices of resources is greatest, and then where the least room is left. Ways that
    use something scarce besides nodes are left out.
    """
    model, chunks = priced.model, list[tuple[float, int, int, Rows]]()
    mean = np.append(model.size @ priced.unit[model.count > 0].mean(axis=0), 0.0)
    for f, form in enumerate(model.forms):
        rows = np.flatnonzero(way[form.jobs] < 0)
        if not len(rows):
            continue
        density = (form.value[rows] / ((form.times * mean[form.slot]).sum(axis=1) + 1e-12)).max(1)
        order = np.argsort(-density, kind="stable")
        for c, part in enumerate(np.array_split(order, min(CHUNKS, len(order)))):
            chunks.append((-float(density[part[0]]), f, c, rows[part]))
    for _, f, _, part in sorted(chunks, key=lambda chunk: chunk[:3]):
        checkpoint()
        form = model.forms[f]
        may, gangs = form.costless(priced.prices), form.times.sum(axis=1) > 1
        at = _singles(priced, ranges, form, np.flatnonzero(may & ~gangs), part, way)
        ways = np.flatnonzero(may & gangs)
        for w in ways[np.argsort(-form.value[part[0], ways], kind="stable")]:
            slots = form.slot[w, form.slot[w] >= 0], form.times[w, form.slot[w] >= 0]
            jobs = form.jobs[part[at : at + _gangs(ranges, *slots, len(part) - at)]]
            way[jobs] = w
            at += len(jobs)


def _singles(
    priced: SlotPrices, ranges: Ranges, form: Form, ways: Rows, part: Rows, way: Rows
) -> int:
    """Give one slot each to jobs `part` of a form, in some ways; return how many have one."""
    model, places, at = priced.model, list[tuple[float, float, int, int]](), 0
    slots = form.slot.max(axis=1)
    for w in ways.tolist():
        some = np.flatnonzero(ranges.fitting(slots[w]))
        unit = priced.unit[ranges.owner[some]]
        worth = form.value[part[-1], w] - unit @ model.size[slots[w]]
        tight = (ranges.free[some] * unit).sum(axis=1)
        columns = (-worth).tolist(), tight.tolist(), [w] * len(some), some.tolist()
        places += zip(*columns, strict=True)
    for _, _, w, i in sorted(places):
        if at == len(part):
            break
        q = int(slots[w])
        takes = model.size[q] > 0
        room = np.floor(ranges.free[i, takes] / model.size[q, takes]).min(initial=np.inf)
        if room > 0:
            jobs = ranges.give(i, q, int(min(room, model.spread[q])), len(part) - at)
            way[form.jobs[part[at : at + jobs]]] = w
            at += jobs
    return at


def _gangs(ranges: Ranges, slots: Rows, times: Ints, jobs: int) -> int:
    """Give up to so many jobs all their slots, on nodes of their own; return how many."""
    nodes = np.array([(ranges.last - ranges.first)[ranges.fitting(q)].sum() for q in slots])
    order = np.argsort(nodes)  # a node with room for a large slot has room for a small one
    jobs = min(jobs, int((nodes[order] // np.cumsum(times[order])).min()))
    for q, many in zip(slots[order].tolist(), times[order].tolist(), strict=True):
        wanted = many * jobs
        for i in np.flatnonzero(ranges.fitting(q)).tolist():
            wanted -= ranges.give(i, q, 1, wanted)
    return jobs
