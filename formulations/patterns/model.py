"""The model of jobs that take slots on nodes, where equal nodes and equal jobs are counted.

With a price p of each slot, every job chooses alone, and every node chooses the pattern that is
worth most:

    D(p) = Σ_j max(0, max_w v_jw - p·a_w) + Σ_k N_k max(0, max {p·a : a fits class k} - c_k)

is an upper bound on every plan for any p >= 0 (Lagrange). A job that must run has a great value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ronda.instances.base import Floats, Ints, Mask, Rows

TOLERANCE = 1e-9
"""The share of a node's capacity that counts as rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Jobs with the same ways to run, at most one of which a job gets.

    Attributes
    ----------
    slot, times
        Slots that each way takes, shape (W, E), -1 for none, and how many of each. E is the same
        for all forms of a model. All slots of a job are on different nodes.
    jobs
        Index of each job, shape (n,).
    value
        Value of each job in each way, shape (n, W).
    use
        What each way uses of what couples jobs besides nodes, shape (W, C); None for nothing.
    """

    slot: Rows
    times: Ints
    jobs: Rows
    value: Floats
    use: Floats | None = None

    def cost(self, prices: Floats) -> Floats:
        """Return the price of each way at all prices (Q + C,), shape (W,)."""
        slots = (np.append(prices, 0.0)[self.slot] * self.times).sum(axis=1)
        return np.asarray(slots + self.cost_of_use(prices))

    def cost_of_use(self, prices: Floats) -> Floats:
        """Return the price of what each way uses besides slots, shape (W,)."""
        if self.use is None:
            return np.zeros(len(self.slot))
        return np.asarray(self.use @ prices[-self.use.shape[1] :])

    def costless(self, prices: Floats) -> Mask:
        """Return whether each way uses nothing scarce besides slots, shape (W,)."""
        return np.asarray(self.cost_of_use(prices) <= 0)

    def net(self, prices: Floats) -> Floats:
        """Return values less prices of each way, and 0 for none, shape (n, W + 1)."""
        return np.hstack([self.value - self.cost(prices), np.zeros((len(self.jobs), 1))])


@dataclass(frozen=True, slots=True, eq=False)
class Coupling:
    """What couples jobs besides nodes: `limit` (C,), and blocks, which add to limits at a price.

    Blocks have a `value` (B,) each, use (C, B), and are taken up to a `most` (B,), in any amount.
    """

    limit: Floats
    value: Floats
    use: Floats
    most: Floats

    def worth(self, prices: Floats) -> Floats:
        """Return the terms of D that belong to no job and no node, at prices (C,)."""
        blocks = np.maximum(0.0, self.value - prices @ self.use) * self.most
        return np.append(prices * self.limit, blocks)


NO_COUPLING = Coupling(np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros(0))


@dataclass(frozen=True, eq=False)
class NodeModel:
    """Classes of equal nodes, slots that they supply, and forms of jobs that take them.

    Attributes
    ----------
    capacity, count
        Free amount of each resource on a node of each class, shape (K, R), and the number of nodes
        of each class, shape (K,). Nodes are numbered from 0, class by class.
    cost
        Cost of a node of each class that holds a slot, shape (K,).
    size
        Amount of each resource that each slot takes, shape (Q, R).
    supplied
        Whether nodes of a class may hold a slot, shape (Q, K).
    forms
        Forms of jobs.
    group
        Group of each job, shape (J,), -1 for none: no node holds two slots of a group.
    coupling
        What couples jobs besides nodes.
    """

    capacity: Floats
    count: Ints
    cost: Floats
    size: Floats
    supplied: Mask
    forms: tuple[Form, ...]
    group: Rows
    coupling: Coupling = NO_COUPLING

    @property
    def priced(self) -> int:
        """The number of prices: of slots, and of what couples jobs besides nodes."""
        return len(self.size) + len(self.coupling.limit)

    @cached_property
    def apart(self) -> Ints:
        """The most slots of each kind on one node that jobs of different groups take, (Q,)."""
        alone, pairs = np.zeros(len(self.size), dtype=np.int64), set[tuple[int, int]]()
        for form in self.forms:
            group = self.group[form.jobs]
            for q in np.unique(form.slot[form.slot >= 0]).tolist():
                alone[q] += np.count_nonzero(group < 0)
                pairs.update((q, g) for g in np.unique(group[group >= 0]).tolist())
        for q, _ in pairs:
            alone[q] += 1
        return alone

    @cached_property
    def spread(self) -> Ints:
        """The number of slots of each kind on a node that leaves large groups enough nodes, (Q,).

        A group of g of n jobs needs g nodes, so n / g on a node are enough if all of them run.
        """
        most = np.ones(len(self.size), dtype=np.int64)
        for form in self.forms:
            group = self.group[form.jobs]
            largest = max(1, int(np.bincount(group[group >= 0]).max(initial=0)))
            slots = form.slot[form.slot >= 0]
            most[slots] = np.maximum(most[slots], -(-len(group) // largest))
        return most

    @cached_property
    def most(self) -> Floats:
        """The most slots of each kind on an otherwise empty node of each class, shape (Q, K)."""
        each = np.full(self.supplied.shape, np.inf)
        for r in range(self.size.shape[1]):
            wants = self.size[:, r] > 0
            room = self.capacity[:, r] * (1 + TOLERANCE)
            each[wants] = np.minimum(each[wants], room / self.size[wants, r, None])
        return np.asarray(np.minimum(np.floor(each), self.apart[:, None]) * self.supplied)

    @cached_property
    def demand(self) -> Floats:
        """The most slots of each kind that all jobs can take, shape (Q,)."""
        most = np.zeros(len(self.size) + 1)
        for form in self.forms:
            each = np.zeros_like(most)
            for way, times in zip(form.slot, form.times, strict=True):
                own = np.zeros_like(most)
                np.add.at(own, way, times)
                each = np.maximum(each, own)
            most += each * len(form.jobs)
        return most[:-1]

    @cached_property
    def first(self) -> Rows:
        """The first node of each class, and the number of all nodes, shape (K + 1,)."""
        return np.concatenate([[0], np.cumsum(self.count)])

    @cached_property
    def owner(self) -> Rows:
        """The class of each node, shape (N,)."""
        return np.arange(len(self.count)).repeat(self.count)

    def wanted(self, prices: Floats) -> Floats:
        """Return how many slots of each kind the jobs want at prices (Q,), shape (Q,)."""
        many = np.zeros(len(self.size) + 1)
        for form in self.forms:
            chosen = np.bincount(form.net(prices).argmax(axis=1), minlength=len(form.slot) + 1)
            np.add.at(many, form.slot, form.times * chosen[: len(form.slot), None])
        return many[:-1]

    def picked(self, way: Rows, columns: Sequence[Rows]) -> Rows:
        """Return what stands for each job in its `way` (J,), -1 without one, shape (J,).

        `columns` has, of each form, a number for each job in each way, shape (n, W).
        """
        found = np.full(len(way), -1, dtype=np.int64)
        for form, column in zip(self.forms, columns, strict=True):
            runs = np.flatnonzero(way[form.jobs] >= 0)
            found[form.jobs[runs]] = column[runs, way[form.jobs[runs]]]
        return found


def with_equal_ways(job: Rows, way: Rows) -> Iterator[Rows]:
    """Yield the places of jobs with equal ways, a row per job, shapes (n, W).

    Both arrays are sorted, by job and then by way, and have an entry for each way of each job.
    """
    starts = np.flatnonzero(np.diff(job, prepend=-1))
    ways = np.diff(np.append(starts, len(job)))
    for n in np.unique(ways).tolist():
        rows = starts[ways == n, None] + np.arange(n)
        form = np.zeros(len(rows), dtype=np.int64)
        for column in way[rows].T:
            form = np.unique(form * (way.max() + 1) + column, return_inverse=True)[1].reshape(-1)
        order = np.argsort(form, kind="stable")
        yield from np.split(rows[order], np.flatnonzero(np.diff(form[order])) + 1)
