"""The free room of a cluster over time, if jobs only end and no other starts."""

from collections.abc import Mapping
from functools import cached_property
from math import inf

import numpy as np

from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY, SeenJob, Snapshot
from ronda.questions.why.limits import Limits, held_on


class FreeRoom:
    """The nodes of a snapshot, what runs on them, and when it ends.

    Attributes
    ----------
    resources, has
        Names of the R resources, GPUs first, and what each node offers of them, shape (N, R).
    running, ends
        The jobs that run, by their ends, and these ends, shape (J,): at the time limit, or when a
        job is believed to end; infinite if nobody says. A job that should have ended ends now.
    holdings
        The job and the node of each holding, by place, and its amounts, shape (H, R).
    limits
        What the jobs may hold together.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.node = {node.name: n for n, node in enumerate(snapshot.nodes)}
        named = {r for node in snapshot.nodes for r in node.has}
        named |= {r for job in snapshot.jobs for r in job.per}
        first = [GPUS, CPU, MEMORY]
        self.resources = [r for r in first if r in named] + sorted(named - set(first))
        self._column = {r: k for k, r in enumerate(self.resources)}
        self.has = np.zeros((len(snapshot.nodes), len(self.resources)))
        for n, node in enumerate(snapshot.nodes):
            self.has[n] = self.vector(node.has)
        going = [job for job in snapshot.jobs if job.start_s is not None]
        self.running = sorted(going, key=lambda job: (self._end(job), job.id))
        self.ends = np.array([self._end(job) for job in self.running], dtype=float)
        self.limits = Limits(snapshot, self.running)
        of, on, amounts = list[int](), list[int](), list[Floats]()
        for j, job in enumerate(self.running):
            for name in job.on:
                of.append(j)
                on.append(self.node[name])
                amounts.append(self.vector(held_on(job, snapshot.nodes[on[-1]])))
        held = np.array(amounts).reshape(len(of), len(self.resources))
        self.holdings: tuple[Rows, Rows, Floats] = np.array(of, int), np.array(on, int), held
        nodes, now_s = self.snapshot.nodes, self.snapshot.now_s
        out = np.array([node.out is not None for node in nodes], dtype=bool)
        since = [inf if node.leaves_s is None else max(now_s, node.leaves_s) for node in nodes]
        until = np.array([inf if node.back_s is None else node.back_s for node in nodes])
        self._closed = out, np.where(out, -inf, np.array(since)), until
        self._usable: dict[tuple[object, ...], Mask] = {}

    def vector(self, amounts: Mapping[str, float]) -> Floats:
        """Return amounts by resource as a row, shape (R,)."""
        row = np.zeros(len(self.resources))
        for name, amount in amounts.items():
            row[self._column[name]] = amount
        return row

    def _end(self, job: SeenJob) -> float:
        end_s = (job.start_s or 0.0) + job.may_run_s if job.ends_s is None else job.ends_s
        return max(end_s, self.snapshot.now_s)

    @cached_property
    def times(self) -> Floats:
        """The times at which something becomes free, ascending, from now on, shape (T,)."""
        *_, until = self._closed
        found = np.append(self.ends, until)
        now_s = self.snapshot.now_s
        return np.unique(np.append(found[(found > now_s) & np.isfinite(found)], now_s))

    @cached_property
    def over_time(self) -> tuple[Floats, Floats]:
        """What jobs hold at each of `times`, (T, N, R), and how many jobs are there, (T, N)."""
        used, jobs = zip(*(self.used(at_s) for at_s in self.times.tolist()), strict=True)
        return np.array(used), np.array(jobs)

    def used(self, at_s: float) -> tuple[Floats, Floats]:
        """Return what jobs hold on each node at a time, (N, R), and how many jobs are there."""
        of, on, held = self.holdings
        going = self.ends[of] > at_s
        on, held, nodes = on[going], held[going], len(self.has)
        used = np.empty_like(self.has)
        for r in range(len(self.resources)):
            used[:, r] = np.bincount(on, held[:, r], nodes)
        return used, np.bincount(on, minlength=nodes).astype(float)

    def open(self, at_s: float, limit_s: float, *, out: bool = True, leaving: bool = True) -> Mask:
        """Return the nodes that a job may hold from a time for so long, shape (N,).

        Without `out`, nodes that take no jobs now count as open; without `leaving`, those that
        leave later do.
        """
        closed, since, until = self._closed
        shut = (since < at_s + limit_s) & (until > at_s)
        if not out:
            shut &= ~closed
        if not leaving:
            shut &= closed
        return ~shut

    def turns(self, limit_s: float) -> Floats:
        """Return the times after which nodes close for a job of a time limit, ascending."""
        closed, since, _ = self._closed
        last = since[~closed & np.isfinite(since)] - limit_s
        return np.unique(last[last >= self.snapshot.now_s])

    def may_use(self, job: SeenJob, partition: str | None, skip: frozenset[str]) -> Mask:
        """Return the nodes that a job may use whatever is free, shape (N,).

        What a job says of its nodes and is in `skip` does not count: ``partition``, ``gpu_types``,
        ``features``, ``nodes``.
        """
        key = (
            None if "partition" in skip else partition,
            () if "gpu_types" in skip else job.gpu_types,
            () if "features" in skip else job.features,
            ((), ()) if "nodes" in skip else (job.nodes, job.not_nodes),
        )
        if key not in self._usable:
            within, types, labels, (named, banned) = key
            self._usable[key] = np.array(
                [
                    (within is None or not node.partitions or within in node.partitions)
                    and (not types or node.gpu_type in types)
                    and set(labels) <= set(node.features)
                    and (not named or node.name in named)
                    and node.name not in banned
                    for node in self.snapshot.nodes
                ],
                dtype=bool,
            )
        return self._usable[key]

    def racks(self, level: str) -> list[str | None]:
        """Return the rack of each node on a level, or None."""
        return [dict(node.racks).get(level) for node in self.snapshot.nodes]


def pieces_on(free: Floats, per: Floats) -> Floats:
    """Return how many pieces that need `per` (R,) fit each node with so much free (N, R)."""
    asked = per > 0
    if not asked.any():
        return np.full(len(free), inf)
    each = np.floor(free[:, asked] / per[asked] + 1e-9)
    return np.asarray(np.maximum(each.min(axis=1), 0.0))
