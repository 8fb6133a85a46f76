"""The space that jobs can have on nodes over time: proven by a log, or all that a cluster has.

A log that holds every job that ended until it ends at T lacks the jobs that end later. A job that
it lacks and that runs at t runs until T, so it runs at every t' in between, together with the use
U(t') that the log shows there. Hence a node certainly has U(t') at t for any jobs that the log
shows, and no more is certain: what they use at t is proven to fit if it is at most U(t') for one
t' >= t, for devices and resources of hosts at the same t'.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import inf

import numpy as np

from ronda.instances.base import Floats
from ronda.questions.judge.queue import HeldUse, JudgedJobs, Shape

IDLE_S = 300.0
"""A node without any job for longer than this may have been out of service."""

_LITTLE = 1e-6


class NodeUse:
    """The use of a node over time, and the most that it may be.

    Attributes
    ----------
    times_s
        The moments at which the use changes, and infinity at the end, shape (S+1,).
    used
        Use from each moment to the next, shape (S, D); infinite where nothing may run.
    ends_s, most
        Amounts that fit until some moments, shape (M,) and (M, D).
    """

    def __init__(self, times_s: Floats, used: Floats, ends_s: Floats, most: Floats) -> None:
        self.times_s, self.used, self.ends_s, self.most = times_s, used, ends_s, most

    def copy(self) -> "NodeUse":
        """Return a copy that can be changed."""
        return NodeUse(self.times_s, self.used.copy(), self.ends_s, self.most)

    def add(self, since_s: float, until_s: float, amounts: Sequence[float]) -> None:
        """Add a use, or take it away if the amounts are negative."""
        for moment in (since_s, until_s):
            k = int(np.searchsorted(self.times_s, moment))
            if self.times_s[k] != moment:
                self.times_s = np.insert(self.times_s, k, moment)
                self.used = np.insert(self.used, k, self.used[k - 1], axis=0)
        first, last = np.searchsorted(self.times_s, (since_s, until_s))
        self.used[first:last] += amounts

    def fits(self, amounts: Sequence[float]) -> np.ndarray:
        """Return whether more fits from each moment to the next, shape (S,)."""
        whole = self.used + (np.array(amounts) - _LITTLE)
        fits = (whole[:, None] <= self.most[None]).all(axis=2)
        return np.asarray((fits & (self.times_s[1:, None] <= self.ends_s[None])).any(axis=1))

    def holes(self, amounts: Sequence[float]) -> tuple[Floats, Floats]:
        """Return the beginnings and ends of the times in which more fits."""
        edges = np.flatnonzero(np.diff(self.fits(amounts), prepend=False, append=False))
        return self.times_s[edges[::2]], self.times_s[edges[1::2]]


Space = Mapping[int, NodeUse]
"""The use of nodes by number."""


def used_over_time(uses: Iterable[HeldUse], times_s: Floats, dimensions: int) -> Floats:
    """Return the use of a node from each of some moments to the next, shape (S, D).

    `times_s` has infinity at its end; uses begin and end at its moments, or before the first.
    """
    change = np.zeros((len(times_s), dimensions))
    for use in uses:
        change[np.searchsorted(times_s, use.since_s)] += use.amounts
        change[np.searchsorted(times_s, use.until_s)] -= use.amounts
    return np.asarray(np.cumsum(change, axis=0)[:-1])


def node_uses(
    jobs: JudgedJobs,
    since_s: float,
    until_s: float,
    sizes: Mapping[int, Sequence[float]] | None = None,
) -> dict[int, NodeUse]:
    """Return the space of the jobs' nodes from a moment on, in which all but these jobs run.

    Parameters
    ----------
    since_s, until_s
        The window in which the log has every job that ended.
    sizes
        What each node has, in service all the time; None for what the log proves.
    """
    own = defaultdict[int, list[HeldUse]](list), defaultdict[int, list[HeldUse]](list)
    for found, held in zip(own, (chain(*jobs.judged), jobs.others), strict=True):
        for use in held:
            if use.until_s > since_s:
                found[use.node].append(use)
    dimensions = 1 + len(jobs.hosts)
    space = dict[int, NodeUse]()
    for node in jobs.nodes:
        moments = {since_s, until_s, inf}
        for uses in own:
            for use in uses[node]:
                moments |= {use.since_s, use.until_s}
        times_s = np.array(sorted(moment for moment in moments if moment >= since_s))
        beside = used_over_time(own[1][node], times_s, dimensions)
        seen = beside + used_over_time(own[0][node], times_s, dimensions)
        if sizes is None:
            ends_s, most = _staircase(times_s, seen)
            beside[_idle(times_s, seen)] = inf
        else:
            ends_s, most = np.array([inf]), np.maximum(np.array([sizes[node]]), seen.max(axis=0))
        space[node] = NodeUse(times_s, beside, ends_s, most)
    return space


def _staircase(times_s: Floats, seen: Floats) -> tuple[Floats, Floats]:
    """Return the uses that no later one exceeds in all amounts, and when each of them ends."""
    ends, kept = list[float](), list[Floats]()
    for k in range(len(seen) - 2, -1, -1):  # after the last moment of the log nothing is proven
        if not any((seen[k] <= one).all() for one in kept):
            ends.append(float(times_s[k + 1]))
            kept.append(seen[k])
    return np.array(ends), np.array(kept).reshape(-1, seen.shape[1])


def _idle(times_s: Floats, seen: Floats) -> np.ndarray:
    """Return in which times a node is without a job for long, shape (S,)."""
    none = seen[:, 0] <= 0
    edges = np.flatnonzero(np.diff(none, prepend=False, append=False))
    idle = np.zeros(len(seen), dtype=bool)
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        idle[first:last] = times_s[last] - times_s[first] > IDLE_S
    return idle


def proven_share(space: Space, moments: Floats) -> Floats:
    """Return the share of the most devices in use that is proven from each moment on, shape (G,).

    `space` is what the log proves.
    """
    known, most = np.zeros(len(moments)), 0.0
    for use in space.values():
        later = use.ends_s[None] > moments[:, None]
        known += np.where(later, use.most[:, 0], 0.0).max(axis=1, initial=0.0)
        most += use.most[:, 0].max(initial=0.0)
    return known / max(most, 1.0)


def idle_node_s(space: Space, until_s: float) -> float:
    """Return for how long nodes were without a job and do not count as free, in all."""
    found = 0.0
    for use in space.values():
        lasts = np.diff(np.minimum(use.times_s, until_s))
        found += float(lasts[np.isinf(use.used[:, 0])].sum())
    return found


def as_one_node(space: Space) -> Space:
    """Return the free space of all nodes as that of one, of number 0."""
    times_s = np.unique(np.concatenate([use.times_s for use in space.values()]))
    whole = np.zeros((len(times_s) - 1, next(iter(space.values())).used.shape[1]))
    for use in space.values():
        at = np.searchsorted(use.times_s, times_s[:-1], side="right") - 1
        there = use.ends_s[None] >= use.times_s[1:][:, None]
        most = np.where(there[:, :, None], use.most[None], 0.0).max(axis=1, initial=0.0)
        whole += np.maximum(most - use.used, 0.0)[at]
    most = whole.max(axis=0)
    return {0: NodeUse(times_s, most - whole, np.array([inf]), most[None])}


class Holes:
    """Holes for jobs on many nodes, while jobs are placed one after the other."""

    def __init__(self, space: Space) -> None:
        self.space = {node: use.copy() for node, use in space.items()}
        self._holes = dict[Shape, tuple[Floats, Floats]]()
        self._changed = dict[Shape, set[int]]()

    def earliest(
        self, shape: Shape, ready_s: float, lasts_s: float, without: frozenset[int] = frozenset()
    ) -> tuple[float, tuple[int, ...]] | None:
        """Return the earliest start of a job and its nodes; None if it never fits to its end.

        Of nodes on which it could start at once, those have it whose holes end first.
        """
        begin, end = self._of(shape)
        start = np.maximum(begin, ready_s)
        fits = (start + lasts_s <= end + _LITTLE) & (start < end)
        for node in without:
            fits[shape.allowed.index(node)] = False
        if not fits.any():
            return None
        if shape.nodes == 1:
            first = start[fits].min()
            rows, columns = np.nonzero(fits & (start == first))
            row = rows[np.argmin(end[rows, columns])]
            return float(first), (shape.allowed[int(row)],)
        rows, _ = np.nonzero(fits)
        moments, last = start[fits], end[fits] - lasts_s
        order = np.sort(moments)
        there = np.searchsorted(order, order, side="right")
        there -= np.searchsorted(np.sort(last), order - _LITTLE, side="left")
        enough = np.flatnonzero(there >= shape.nodes)
        if not len(enough):
            return None
        first = order[enough[0]]
        now = np.flatnonzero((moments <= first) & (last >= first - _LITTLE))
        chosen = now[np.argsort(last[now], kind="stable")][: shape.nodes]
        return float(first), tuple(shape.allowed[row] for row in rows[chosen].tolist())

    def place(
        self, shape: Shape, nodes: Iterable[int], start_s: float, lasts_s: float, sign: int = 1
    ) -> None:
        """Let a job run on nodes, or take it away again."""
        if lasts_s <= 0:
            return
        amounts = [sign * amount for amount in shape.amounts]
        for node in nodes:
            self.space[node].add(start_s, start_s + lasts_s, amounts)
            for changed in self._changed.values():
                changed.add(node)

    def _of(self, shape: Shape) -> tuple[Floats, Floats]:
        """Return the holes of a shape by node, padded with holes that never are."""
        rows = {node: row for row, node in enumerate(shape.allowed)}
        if shape not in self._holes:
            self._holes[shape] = np.full((len(rows), 1), inf), np.full((len(rows), 1), -inf)
            self._changed[shape] = set(rows)
        begin, end = self._holes[shape]
        for node in self._changed[shape] & rows.keys():
            since_s, until_s = self.space[node].holes(shape.amounts)
            if len(since_s) > begin.shape[1]:
                more = ((0, 0), (0, len(since_s)))
                begin = np.pad(begin, more, constant_values=inf)
                end = np.pad(end, more, constant_values=-inf)
            row = rows[node]
            begin[row], end[row] = inf, -inf
            begin[row, : len(since_s)], end[row, : len(since_s)] = since_s, until_s
        self._changed[shape].clear()
        self._holes[shape] = begin, end
        return begin, end
