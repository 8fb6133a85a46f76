"""From shares of patterns to whole patterns on nodes, and jobs on the room that they leave."""

import numpy as np

from ronda.formulations.patterns.model import TOLERANCE, Form, NodeModel
from ronda.instances.base import Floats, Ints, Rows
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

    `slots` are those given so far: (first, last, slot, number on each node).
    """

    def __init__(self, model: NodeModel) -> None:
        self.model = model
        self.owner = np.arange(len(model.count))
        self.first, self.last = model.first[:-1].copy(), model.first[1:].copy()
        self.free = model.capacity * (1 + TOLERANCE)
        self.slots = list[tuple[int, int, int, int]]()

    def give(self, i: int, slot: int, copies: int, wanted: int) -> int:
        """Give up to `wanted` slots, `copies` on a node of range `i`; return how many were given.

        The nodes of the range that get another number of slots become ranges of their own.
        """
        nodes = int(self.last[i] - self.first[i])
        full = min(nodes, wanted // copies)
        rest = min(wanted - full * copies, copies - 1) if full < nodes else 0
        for some, each in ((full, copies), (1, rest)):
            if some and each:
                self.cut(i, some)
                self.slots.append((int(self.first[i]), int(self.last[i]), slot, each))
                self.free[i] -= each * self.model.size[slot]
                i = len(self.owner) - 1
        return full * copies + rest

    def cut(self, i: int, nodes: int) -> None:
        """Keep the first `nodes` of range `i`; the other nodes become the last range."""
        at = self.first[i] + nodes
        if at < self.last[i]:
            self.first, self.last = np.append(self.first, at), np.append(self.last, self.last[i])
            self.owner = np.append(self.owner, self.owner[i])
            self.free = np.vstack([self.free, self.free[i]])
            self.last[i] = at

    def supply(self) -> Floats:
        """Return the number of slots given, shape (Q,)."""
        many = np.zeros(len(self.model.size))
        for first, last, slot, each in self.slots:
            many[slot] += (last - first) * each
        return many


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
    for k, pattern, n in more:
        left[priced.sacks[k].slots] -= n * pattern
        nodes[k] -= n
    rows = {k: k for k in range(len(model.count))}  # the range of the nodes left of each class
    for k, pattern, n in (*plan, *more):
        i = rows[k]
        ranges.cut(i, n)
        rows[k] = len(ranges.owner) - 1
        ranges.free[i] -= pattern @ priced.sacks[k].size
        span = int(ranges.first[i]), int(ranges.last[i])
        slots = priced.sacks[k].slots
        ranges.slots += [(*span, int(slots[c]), int(pattern[c])) for c in np.flatnonzero(pattern)]
    return ranges


def fill(priced: SlotPrices, ranges: Ranges, way: Rows) -> None:
    """Give slots to jobs without a `way` (J,) where there is room, and note their ways.

    The jobs that are worth most for the resources that they take come first. Each goes where its
    value less the prices of resources is greatest, and then where the least room is left. Ways that
    take slots of two kinds, or something scarce besides, are left out.
    """
    model, chunks = priced.model, list[tuple[float, int, int, Rows]]()
    mean = priced.unit[model.count > 0].mean(axis=0)
    for f, form in enumerate(model.forms):
        open_rows = np.flatnonzero(way[form.jobs] < 0)
        single = form.single(priced.prices)
        if not single.any() or not len(open_rows):
            continue
        taken = form.times[single, 0] * (model.size[form.slot[single, 0]] @ mean)
        density = (form.value[open_rows][:, single] / (taken + 1e-12)).max(axis=1)
        order = np.argsort(-density, kind="stable")
        for c, part in enumerate(np.array_split(order, min(CHUNKS, len(order)))):
            chunks.append((-float(density[part[0]]), f, c, open_rows[part]))
    for _, f, _, part in sorted(chunks, key=lambda chunk: chunk[:3]):
        checkpoint()
        _fill(priced, ranges, model.forms[f], part, way)


def _fill(priced: SlotPrices, ranges: Ranges, form: Form, part: Rows, way: Rows) -> None:
    model, places = priced.model, list[tuple[float, float, int, int]]()
    single = form.single(priced.prices)
    for w, (q, times) in enumerate(
        zip(form.slot[:, 0].tolist(), form.times[:, 0].tolist(), strict=True)
    ):
        fits = (ranges.free >= model.size[q]).all(axis=1) & model.supplied[q, ranges.owner]
        some = np.flatnonzero(fits & single[w])
        unit = priced.unit[ranges.owner[some]]
        worth = form.value[part[-1], w] - times * (unit @ model.size[q])
        tight = (ranges.free[some] * unit).sum(axis=1)
        places += zip(
            (-worth).tolist(), tight.tolist(), [w] * len(some), some.tolist(), strict=True
        )
    at = 0
    for _, _, w, i in sorted(places):
        q, times = int(form.slot[w, 0]), int(form.times[w, 0])
        takes = model.size[q] > 0
        room = np.floor(ranges.free[i, takes] / model.size[q, takes]).min(initial=np.inf)
        copies = int(min(room, 1 if times > 1 else model.spread[q]))
        if copies > 0:
            jobs = ranges.give(i, q, copies, times * (len(part) - at)) // times
            way[form.jobs[part[at : at + jobs]]] = w
            at += jobs
        if at == len(part):
            return
