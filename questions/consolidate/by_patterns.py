"""Moves by patterns: nodes that keep their jobs, take more, are filled anew, or become empty.

Each column is a node after the moves: a content as it is, a content with more slots on what is
free, or a pattern of its class on a content, of which those jobs stay that fit the pattern, or on
any node. The columns supply all slots that jobs take. One integer program saves most, another keeps
most jobs in place. Wide jobs stay.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import highspy
import numpy as np
from scipy import sparse

from ronda.formulations.patterns.model import TOLERANCE
from ronda.instances.base import Floats, Ints, Rows
from ronda.instances.clock import OutOfTimeError, ending
from ronda.instances.job import used_nodes
from ronda.questions.consolidate.holdings import Mover, Occupancy, Placement, rack_worth
from ronda.questions.consolidate.pool_prices import CLOSE, PoolPrices
from ronda.solvers.exact.highs import highs_of, run, solve_form
from ronda.solvers.exact.linear_form import Effort, LinearForm

TURNS = 3
"""The turns in which columns of contents are added at prices of the relaxation."""

FEW_MOVES = 0.01
"""The relative gap at which the search for few moves ends."""

TREE = {"mip_max_nodes": 20}
"""The largest search tree of an integer program."""


class PatternMoves(NamedTuple):
    """New placements, a bound on what any moves save, and the number of columns."""

    placed: dict[str, Placement]
    bound: float
    columns: int


def moves_by_patterns(
    found: Occupancy, quick: dict[str, Placement], effort: Effort
) -> PatternMoves:
    """Return any number of moves, pool by pool; prices of slots have half of the time.

    Where the time ends, the `quick` moves of a pool are the answer.
    """
    until = effort.deadline.sooner(effort.reserve_s)
    pools = [PoolPrices(found, p) for p in sorted({mover.kind[0] for mover in found.movers})]
    pools = [pool for pool in pools if pool.worth.any()]
    with suppress(OutOfTimeError), ending(until.share(0.5).end):
        for pool in pools:
            pool.improve()
    bounds = [pool.bound for pool in pools]
    if found.saving != "watts":
        bounds = [float(math.floor(bound + 1e-6)) for bound in bounds]
    placed, columns = dict[str, Placement](), 0
    for i, pool in enumerate(sorted(pools, key=lambda pool: len(pool.nodes))):
        program = PatternProgram(pool)
        own = program.solve(
            replace(effort, deadline=until.share(1 / (len(pools) - i)), reserve_s=0.0)
        )
        if own is None:
            own = {job: to for job, to in quick.items() if job in pool.movers}
        placed |= own
        columns += len(program.columns)
    racks = found.round.cluster.topology.node_rack[[*used_nodes(found.round.held.values())]]
    bounds.append(rack_worth(found.round, found.saving) * len(set(racks.tolist())))
    return PatternMoves(placed, sum(bounds), columns)


class NodeAfter(NamedTuple):
    """A node of a class after the moves: its content before, -1 for any, and its slots (Q,).

    ``stay`` is the number of jobs that stay, to which a share is added for what a move would lose.
    """

    owner: int
    content: int
    slots: Ints
    stay: float


class PatternProgram:
    """The integer program of a pool over a list of columns."""

    def __init__(self, pool: PoolPrices) -> None:
        self.pool, self.columns = pool, list[NodeAfter]()
        self._known, every = set[tuple[int, bytes]](), np.flatnonzero(pool.used)
        self._enter(self._of(t, pool.held[t], pool.stay[t]) for t in every.tolist())
        for k, pattern in pool.patterns:
            if pool.classes[k].open:
                slots = np.zeros(len(pool.prices), dtype=np.int64)
                slots[pool.sacks[k].slots] = pattern
                self._enter([NodeAfter(k, -1, slots, 0.0)])
        self._tie = CLOSE * float(pool.worth.max()) / (1.0 + float(pool.number @ pool.stay))

    def _of(self, t: int, slots: Ints, stay: float) -> NodeAfter:
        return NodeAfter(int(self.pool.owner[t]), t, slots, float(stay))

    def _enter(self, columns: Iterable[NodeAfter]) -> None:
        for column in columns:
            key = column.content, column.slots.tobytes()
            if column.content < 0 or key not in self._known:
                self._known.add(key)
                self.columns.append(column)

    def solve(self, effort: Effort) -> dict[str, Placement] | None:
        """Return new placements of the jobs that move, None without a solution in time."""
        for _ in range(TURNS):
            highs = highs_of(self._form(), relaxed=True)
            if effort.left_s <= 0 or run(highs, effort.left_s) != highspy.HighsModelStatus.kOptimal:
                return None
            self._extend(np.array(highs.getSolution().row_dual))
        worth = float(self.pool.worth.max())
        one = (1 - 2 * CLOSE) * worth / max(worth, highs.getInfo().objective_function_value)
        half = replace(
            effort, deadline=effort.deadline.share(0.5), gap=max(effort.gap, one), options=TREE
        )
        first = solve_form(self._form(), half)
        if first.x is None:
            return None
        few = replace(effort, gap=FEW_MOVES, options=TREE)
        second = solve_form(self._form(within=first.x), few, first.x)
        chosen = first.x if second.x is None else second.x
        return self._dealt(np.round(chosen).astype(np.int64).tolist())

    def _form(self, within: Floats | None = None) -> LinearForm:
        """Return the program: most saved, or most jobs that stay as far as `within` saves."""
        pool, n = self.pool, len(self.columns)
        owner, content, slots, stay = (np.array(each) for each in zip(*self.columns, strict=True))
        own, nodes = np.flatnonzero(content >= 0), pool.number.astype(float)
        contents = sparse.coo_array((np.ones(len(own)), (content[own], own)), (len(nodes), n))
        classes = sparse.coo_array((np.ones(n), (owner, np.arange(n))), (len(pool.classes), n))
        cost, none = pool.model.cost[owner], np.zeros(len(pool.classes))
        matrix = sparse.vstack([sparse.csr_array(slots.T.astype(float)), contents, classes])
        low = [nodes @ pool.held, pool.stuck * nodes, none]
        high = [np.full(len(pool.prices), np.inf), nodes, pool.model.count.astype(float)]
        aim = cost - self._tie * stay
        if within is not None:
            matrix, aim = sparse.vstack([matrix, cost[None]]), -stay
            low.append(np.array([-np.inf]))
            high.append(np.array([cost @ within * (1 + TOLERANCE)]))
        matrix = sparse.csr_array(matrix)
        return LinearForm(
            columns=tuple(range(n)),
            rows=tuple(range(matrix.shape[0])),
            maximize=False,
            cost=aim,
            offset=0.0,
            lower=np.zeros(n),
            upper=np.full(n, np.inf),
            integer=np.ones(n, dtype=bool),
            start=matrix.indptr.astype(np.int32),
            index=matrix.indices.astype(np.int32),
            value=matrix.data,
            row_lower=np.concatenate(low),
            row_upper=np.concatenate(high),
        )

    def _extend(self, duals: Floats) -> None:
        """Add columns of contents that pay at the duals of rows."""
        pool = self.pool
        price, of, on = np.split(duals, np.cumsum([len(pool.prices), len(pool.number)]))
        cost = pool.model.cost[pool.owner] - of - on[pool.owner]
        wide = pool.model.size / np.maximum(pool.model.capacity.max(axis=0), TOLERANCE)
        for measure in (wide.sum(axis=1), np.ones(len(price))):
            slots = pool.held + self._filled(price, np.argsort(-price / measure, kind="stable"))
            gain = slots @ price + self._tie * pool.stay - cost
            some = np.flatnonzero(pool.used & (gain > TOLERANCE))
            self._enter(self._of(t, slots[t], pool.stay[t]) for t in some.tolist())
        for k in range(len(pool.classes)):
            anew = [column.slots for column in self.columns if column[:2] == (k, -1)]
            own = np.flatnonzero((pool.owner == k) & pool.used & ~pool.stuck) if anew else ()
            if len(own):
                kept = _shared(pool.held[own], np.array(anew))
                gain = np.array(anew) @ price + self._tie * kept - cost[own, None]
                best, row = gain.argmax(axis=1), np.arange(len(own))
                pays = np.flatnonzero(gain[row, best] > TOLERANCE)
                self._enter(self._of(int(own[r]), anew[best[r]], kept[r, best[r]]) for r in pays)

    def _filled(self, price: Floats, order: Rows) -> Ints:
        """Return slots on what is free on contents, in an order of slots, shape (T, Q)."""
        free, more = self.pool.free * (1 + TOLERANCE), np.zeros_like(self.pool.held)
        for q in order[price[order] > 0].tolist():
            size = self.pool.model.size[q]
            room = np.floor((free[:, size > 0] / size[size > 0]).min(axis=1))
            more[:, q] = np.clip(room, 0, self.pool.model.demand[q])  # free may be a little below 0
            free -= more[:, q, None] * size
        return more

    def _dealt(self, count: Sequence[int]) -> dict[str, Placement]:
        """Return new placements of jobs, with `count` (n,) nodes of each column."""
        pool, columns = self.pool, self.columns
        nodes, after = [own[:] for own in pool.nodes], dict[int, Ints]()
        for column, n in zip(columns, count, strict=True):
            for _ in range(n if column.content >= 0 else 0):
                after[nodes[column.content].pop()] = column.slots
        for k in range(len(pool.classes)):
            anew = [i for i, n in enumerate(count) if n and columns[i][:2] == (k, -1)]
            there, left = np.flatnonzero(pool.owner == k).tolist(), [count[i] for i in anew]
            slots = np.array([columns[i].slots for i in anew]).reshape(-1, len(pool.prices))
            kept = _shared(slots, pool.held[there])
            for pair in np.argsort(-kept, axis=None, kind="stable").tolist():
                i, t = divmod(pair, len(there))
                for _ in range(min(left[i], len(nodes[there[t]]))):
                    after[nodes[there[t]].pop()] = columns[anew[i]].slots
                    left[i] -= 1
        leaving, supply = defaultdict[int, list[Mover]](list), defaultdict[int, list[int]](list)
        for node in sorted({*pool.jobs, *after}):
            room = after.get(node, np.zeros(len(pool.prices), dtype=np.int64)).copy()
            for q, mover in pool.jobs[node]:
                if room[q] or len(mover.placement) > 1:
                    room[q] -= 1
                else:
                    leaving[q].append(mover)
            for q in np.flatnonzero(room > 0).tolist():
                supply[q] += [node] * int(room[q])
        return {
            mover.job: ((node, mover.kind[1]),)
            for q, movers in leaving.items()
            for mover, node in zip(movers, supply[q], strict=False)
        }


def _shared(one: Ints, other: Ints) -> Ints:
    """Return how many slots of each row of `one` are in each row of `other`, shape (n, m)."""
    found = np.zeros((len(one), len(other)), dtype=np.int64)
    for level in range(1, int(min(one.max(initial=0), other.max(initial=0))) + 1):
        found += (one >= level).astype(np.int64) @ (other >= level).astype(np.int64).T
    return found
