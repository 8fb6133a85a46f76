"""The holdings of jobs in a cluster as columns; a decision reads only jobs that have changed.

A `JobState` stays the same object until something about the job changes, and so does an
`Allocation`. New holdings are therefore made from the last holdings of the same cluster: a pair of
the same two objects keeps its columns, and only other pairs are read. The result is the same, to
the last digit, as if all pairs were read.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, compress, repeat
from sys import float_info

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.placement.nodes import FreeList, free_lists
from ronda.instances.base import Floats
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, JobState
from ronda.instances.models.cache import per_record
from ronda.instances.plan import Plan
from ronda.instances.round import Round

Pair = tuple[JobState, Allocation]
"""A job with its allocation, now or under a plan."""

Integers = NDArray[np.int64]


class Holdings:
    """The holdings of some jobs in a cluster.

    Attributes
    ----------
    pairs
        The n jobs with their allocations.
    nodes, gpus
        The nodes of all placements, job after job, and the GPUs held on each, shape (m,). A GPU in
        parts counts for each of its jobs.
    spread
        The number of nodes of each job, shape (n,).
    watts
        The watts that each job adds to a cluster whose GPUs idle, shape (n,).
    gpus_on
        The GPUs held on each node, where a GPU in parts counts once, shape (N,).
    """

    def __init__(
        self, cluster: Cluster, pairs: Sequence[Pair], columns: Floats, pieces: Integers
    ) -> None:
        self.cluster, self.pairs, self._columns, self._pieces = cluster, pairs, columns, pieces
        self.nodes, self.gpus, parts = pieces
        self.watts: Floats = columns[0]
        self.spread = columns[-1].astype(np.int64)
        count = len(cluster.topology.node_gpus)
        gpus = self.gpus
        if (parts >= 0).any():
            first = np.unique(np.stack([self.nodes, parts]), axis=1, return_index=True)[1]
            gpus = np.where(parts >= 0, np.isin(np.arange(len(parts)), first), gpus)
        self.gpus_on: Integers = np.bincount(self.nodes, gpus, count).astype(np.int64)
        self._free: tuple[Integers, list[FreeList]] | None = None  # for which GPUs held

    def of(self, pairs: Sequence[Pair]) -> "Holdings":
        """Return the holdings of the given jobs, and read only pairs that are new."""
        before, names = self._at, _identities(pairs)
        if names == [*before]:
            return self
        order = np.fromiter(map(before.get, names, repeat(-1)), np.int64, len(names))
        unknown = order < 0
        order[unknown] = len(before) + np.arange(unknown.sum())
        columns, pieces = self._columns, self._pieces
        if unknown.any():
            more, others = read(self.cluster, [*compress(pairs, unknown.tolist())])
            columns, pieces = np.hstack([columns, more]), np.hstack([pieces, others])
        spread = columns[-1].astype(np.int64)
        begins, spread = (spread.cumsum() - spread)[order], spread[order]
        moved = np.repeat(begins - (spread.cumsum() - spread), spread)
        found = Holdings(
            self.cluster, pairs, columns[:, order], pieces[:, moved + np.arange(len(moved))]
        )
        found._free = self._free
        return found

    @cached_property
    def _at(self) -> dict[tuple[int, int], int]:
        return dict(zip(_identities(self.pairs), range(len(self.pairs)), strict=True))

    @property
    def used(self) -> list[int]:
        """The nodes with a job, ascending."""
        found: list[int] = np.flatnonzero(self.gpus_on).tolist()
        return found

    def free(self) -> list[FreeList]:
        """Return the free GPUs on the nodes of each pool, in lists that the caller may change.

        Raises
        ------
        KeyError, ValueError
            If a node with held GPUs is out of service, or has fewer GPUs than are held.
        """
        before, lists = self._free or (np.zeros_like(self.gpus_on), free_lists(self.cluster))
        lists = [nodes.copy() for nodes in lists]
        more, pools = self.gpus_on - before, self.cluster.topology.node_pool
        for node in np.flatnonzero(more).tolist():
            lists[pools.item(node)].take(((node, more.item(node)),))
        self._free = self.gpus_on, lists
        return [nodes.copy() for nodes in lists]

    def seconds_left(self, round: Round) -> Floats:
        """Return the seconds for which each job will draw its watts, shape (n,).

        They are infinite for jobs of unknown size without a time limit. The arithmetic is the same
        as in `ronda.formulations.watts.seconds_left`.
        """
        now_s = round.now_s
        _, rate, teardown_s, work, done, since_s, rate_now, may_s, held_s, _ = self._columns
        left = work - (done + rate_now * np.maximum(0.0, now_s - since_s))
        left = np.where(left > 0, left, np.maximum(0.01 * work, float_info.min))
        found = np.asarray(left / rate + teardown_s)
        if not round.site.kills_at_limit:
            return found
        most_s = np.maximum(0.0, may_s - np.maximum(0.0, now_s - held_s))
        return np.asarray(np.minimum(found, most_s))

    def until(self, seconds: Floats) -> Floats:
        """Return the greatest of `seconds` (n,) among the jobs on each node, or 0, shape (N,)."""
        greatest = np.zeros(len(self.gpus_on))
        np.maximum.at(greatest, self.nodes, np.repeat(seconds, self.spread))
        return greatest


def read(cluster: Cluster, pairs: Iterable[Pair]) -> tuple[Floats, Integers]:
    """Return the columns (10, n) and the pieces (3, m) of the given pairs.

    A piece is a node, the GPUs there, and the number of a GPU in parts (-1: whole GPUs).
    """
    pools = cluster.topology.pools
    columns, pieces = list[tuple[float, ...]](), list[tuple[int, int, int]]()
    for state, held in pairs:
        option, estimate, now = held.option, state.job.estimate, state.allocation
        columns.append(
            (
                option.power_w - option.own_gpus * pools[option.pool].gpu_type.idle_w,
                option.rate,
                option.teardown_s,
                np.inf if estimate is None else estimate.work,
                state.done,
                state.since_s,
                0.0 if now is None else now.option.rate,
                np.inf if state.job.limit_s is None else state.job.limit_s - state.ran_s,
                np.inf if now is None else state.held_s,
                len(held.placement),
            )
        )
        parts = held.parts
        pieces += [(*piece, parts[0][1] if parts else -1) for piece in held.placement]
    return (
        np.array(columns, dtype=np.float64).reshape(-1, 10).T,
        np.array(pieces, dtype=np.int64).reshape(-1, 3).T,
    )


def _identities(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    numbers = map(id, chain.from_iterable(pairs))
    return [*zip(numbers, numbers, strict=True)]


@per_record(maxsize=8)
def _last(cluster: Cluster) -> list[Holdings]:
    """Return a list that holds the last holdings of a cluster."""
    return [Holdings(cluster, (), *read(cluster, ()))]


def holdings(cluster: Cluster, pairs: Sequence[Pair]) -> Holdings:
    """Return the holdings of jobs in a cluster."""
    last = _last(cluster)
    last[0] = found = last[0].of(pairs)
    return found


def held_under(round: Round, plan: Plan) -> Holdings:
    """Return the holdings of jobs under a plan, in the plan's order."""
    states = {state.job.id: state for state in round.jobs}
    return holdings(round.cluster, [(states[i], given) for i, given in plan.allocations.items()])
