"""Prices of slots in a pool, and the bound on savings by moves that they prove.

Every job that may move takes slots of its GPUs and of its host's resources. Equal nodes with equal
slots have one *content*. With prices p >= 0 of slots and K_n(p) the most that slots on node n are
worth, moves save at most ::

    Σ_n max(u_n w_n, K_n(p) - (1 - u_n) w_n) - Σ_j p·a_j

(Lagrange): a node with jobs (u_n = 1) is worth w_n without them, and one without jobs (u_n = 0)
costs w_n. A wide job takes the cheaper of the slots that it has and those after a move. The prices
are scaled to the lowest bound. They follow from the columns of P. C. Gilmore and R. E. Gomory
(Operations Research 9, 1961), which begin with the contents as they are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ronda.formulations.patterns.model import Form, NodeModel
from ronda.instances.base import Floats
from ronda.questions.consolidate.holdings import Mover, Occupancy
from ronda.solvers.patterns.knapsack import Knapsack
from ronda.solvers.patterns.master import PatternMaster
from ronda.solvers.patterns.pricing import EXACT, sequence

MOST_TURNS, CLOSE = 100, 0.25
"""The most turns, and the distance of a bound to the relaxation, in nodes, that ends them."""

MUST = 10.0
"""The value of a slot of a job that must run, in nodes: more than room for it costs."""

STEPS = 25
"""The steps in which a price is sought; each leaves two thirds of where it may be."""

Ways = tuple[tuple[tuple[int, int], ...], ...]
"""The slots, with numbers, that a job takes in place and, if these are others, after a move."""


class NodeRoom(NamedTuple):
    """The room of a node for jobs that may move, its worth without jobs, and whether it is open."""

    room: tuple[float, ...]
    worth: float
    open: bool


class NodeContent(NamedTuple):
    """The slots on nodes of a class, ascending, if anyone has the node, and if somebody stays.

    ``lost`` are the GPU-seconds that its jobs lose by moves.
    """

    owner: int
    slots: tuple[int, ...]
    used: bool
    stuck: bool
    lost: float


class PoolPrices:
    """The nodes of a pool by class and content, and prices of their slots.

    Attributes
    ----------
    model, sacks
        Classes of nodes and slots, and the patterns of slots on each class.
    classes, nodes
        Classes, and nodes of each content.
    jobs, movers
        Slots and jobs on each node, those that lose most by a move first, and the ids of all jobs.
    held, owner, worth, used, number
        Of each content: slots held, shape (T, Q), class, worth of a node without jobs, whether it
        is in use, and number of nodes, shape (T,).
    stay
        Jobs on a node of each content, plus a share less than one in all for what moves lose, (T,).
    patterns
        Patterns that were found, with their class.
    prices
        Prices of slots, shape (Q,).
    """

    def __init__(self, found: Occupancy, pool: int) -> None:
        slots: dict[tuple[float, ...], int] = {}
        forms, room = Counter[Ways](), np.maximum(found.free, 0.0)
        self.jobs: defaultdict[int, list[tuple[int, Mover]]] = defaultdict(list)
        self.movers = set[str]()
        for mover in sorted(found.movers, key=lambda m: -m.lost_gpu_s):
            if mover.kind[0] != pool:
                continue
            self.movers.add(mover.job)
            now = Counter[int]()
            for (node, gpus), needs in zip(mover.placement, mover.needs, strict=True):
                size = (gpus, *needs) if len(mover.placement) == 1 else (gpus,)
                q = slots.setdefault(size, len(slots))
                room[:, node] += [gpus, *needs]
                self.jobs[node].append((q, mover))
                now[q] += 1
            then = now
            if len(mover.placement) > 1:
                then = Counter({slots.setdefault((g,), len(slots)): n for g, n in mover.pieces})
            forms[tuple(dict.fromkeys(tuple(sorted(way.items())) for way in (now, then)))] += 1
        contents = self._contents(found, pool, room)
        self.nodes, self.owner = list(contents.values()), np.array([c.owner for c in contents])
        self.number = np.array([len(nodes) for nodes in self.nodes])
        self.used, self.stuck = (np.array([c[i] for c in contents], dtype=bool) for i in (2, 3))
        self.held = np.array([np.bincount(c.slots, minlength=len(slots)) for c in contents])
        lost = np.array([c.lost for c in contents])
        self.stay = self.held.sum(axis=1) + lost / (1.0 + self.number @ lost)
        self.free = np.array([np.maximum(found.free[:, n], 0.0).min(axis=1) for n in self.nodes])
        self.free *= found.open[[n[0] for n in self.nodes], None]
        self.worth = np.array([self.classes[k].worth for k in self.owner])
        self.model = self._model(list(slots), forms)
        self.sacks = [Knapsack(self.model, k) for k in range(len(self.classes))]
        self.prices, self.bound = (
            np.zeros(len(slots)),
            float(self.number @ (self.used * self.worth)),
        )
        self.patterns = list[tuple[int, Floats]]()

    def _contents(self, found: Occupancy, pool: int, room: Floats) -> dict[NodeContent, list[int]]:
        classes: dict[NodeRoom, int] = {}
        contents: defaultdict[NodeContent, list[int]] = defaultdict(list)
        for content, nodes in found.contents.items():
            worth = 0.0 if content.fixed else found.worth[content.group]
            for node in nodes if found.groups[content.group].pool == pool else ():
                jobs, entry = self.jobs[node], bool(found.open[node])
                most = room[:, node] - (0.0 if entry else np.maximum(found.free[:, node], 0.0))
                kind = NodeRoom(tuple(most.round(9).tolist()), worth, entry)
                k = classes.setdefault(kind, len(classes))
                slots = tuple(sorted(q for q, _ in jobs))
                stuck = any(len(m.placement) > 1 for _, m in jobs)
                lost = sum(m.lost_gpu_s / len(m.placement) for _, m in jobs)
                used = bool(jobs or content.fixed)
                contents[NodeContent(k, slots, used, stuck, lost)].append(node)
        self.classes = list(classes)
        return contents

    def _model(self, slots: list[tuple[float, ...]], forms: Counter[Ways]) -> NodeModel:
        capacity = np.array([each.room for each in self.classes])
        size = np.zeros((len(slots), capacity.shape[1]))
        for q, slot in enumerate(slots):
            size[q, : len(slot)] = slot
        made, first = list[Form](), 0
        for ways, n in forms.items():
            shape = len(ways), max(map(len, ways))
            taken, times = np.full(shape, -1), np.ones(shape, dtype=np.int64)
            for w, way in enumerate(ways):
                taken[w, : len(way)], times[w, : len(way)] = zip(*way, strict=True)
            value = MUST * self.worth.max() * max(sum(many for _, many in way) for way in ways)
            jobs = np.arange(first, first + n)
            made.append(Form(taken, times, jobs, np.full((n, len(ways)), value)))
            first += n
        return NodeModel(
            capacity=capacity,
            count=np.bincount(self.owner, self.number).astype(np.int64),
            cost=np.array([each.worth for each in self.classes]),
            size=size,
            supplied=np.ones((len(size), len(capacity)), dtype=bool),
            forms=tuple(made),
            group=np.full(first, -1),
        )

    def _bound(self, prices: Floats, tops: Floats) -> float:
        """Return the bound at the best multiple of prices with `tops` (K,) on nodes of classes."""
        paid = sum(float(f.cost(prices).min()) * len(f.jobs) for f in self.model.forms)
        empty, rest = self.used * self.worth, ~self.used * self.worth

        def at(scale: float) -> float:
            gain = np.maximum(empty, scale * tops[self.owner] - rest)
            return float(self.number @ gain) - scale * paid

        return least(at, 1.5)

    def improve(self) -> None:
        """Improve prices until the bound without limits is close to the relaxation.

        Raises OutOfTimeError if the time ends (`ronda.instances.clock.ending`); the prices so far
        can be used.
        """
        master, worth = PatternMaster(self.model, self.sacks), float(self.worth.max())
        slots = [sack.slots for sack in self.sacks]
        now = [
            (k, held[slots[k]].astype(float)) for k, held in zip(self.owner, self.held, strict=True)
        ]
        master.enter(now)
        all_run = sum(float(f.value[:, 0].sum()) for f in self.model.forms)
        all_run -= float(self.number @ (self.used * self.worth))
        relaxed, center, _ = master.solve()
        best, gap, history = np.inf, None, [-np.inf] * 3
        for _ in range(MOST_TURNS):
            seen = [s.best(center[s.slots], gap) for s in self.sacks]
            tops = np.array([each.bound + s.cost for each, s in zip(seen, self.sacks, strict=True)])
            if (bound := self._bound(center, tops)) < best:
                best, self.prices = bound, center
                self.bound = min(self.bound, best)
            if best + all_run - relaxed <= CLOSE * worth:
                break
            found = [(k, p) for k, each in enumerate(seen) for p in each.patterns]
            wanted = self.model.wanted(center)
            found += [
                (k, p) for k, p, _ in sequence(self.sacks, center, wanted, self.model.count, 0.05)
            ]
            new = master.enter(found)
            relaxed, prices, _ = master.solve()
            self.patterns = list(zip(master.owner, master.patterns, strict=True))
            history.append(relaxed)
            stuck = not new and np.array_equal(center, prices)
            if gap is None and (stuck or history[-1] - history[-4:][0] < 0.5 * worth):
                gap = EXACT
            elif stuck:
                break
            center = (self.prices + prices) / 2 if new else prices
        self.patterns = list(zip(master.owner, master.patterns, strict=True))


def least(function: Callable[[float], float], most: float) -> float:
    """Return the least value found of a convex function between 0 and `most`."""
    low, high = 0.0, most
    found = min(function(low), function(high))
    for _ in range(STEPS):
        one, other = (2 * low + high) / 3, (low + 2 * high) / 3
        first, second = function(one), function(other)
        found = min(found, first, second)
        low, high = (low, other) if first < second else (one, high)
    return found
