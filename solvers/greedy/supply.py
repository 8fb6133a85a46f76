"""The watts that power caps leave from now on, given the expected ends of running jobs."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.watts import extra_gpu_w, rack_caps
from ronda.instances.base import Floats
from ronda.instances.job import Allocation, Option
from ronda.instances.violation import ROUNDING
from ronda.solvers.greedy.room import Room

Pieces = Iterable[tuple[int, int]]
"""Pairs (index of a node in the cluster, GPUs on that node)."""


class PowerSupply:
    """Watts left to jobs over time, in the cluster (row 0) and in each rack with a cap.

    An energy budget counts as the constant power that it can sustain. From `times_s[k]` seconds
    from now until the next time, ``left_w[r, k]`` watts are left. A node that would sleep without a
    job draws its idle power until the expected end of its last job.

    Parameters
    ----------
    ends
        Seconds for which each current allocation lasts.
    """

    def __init__(self, room: Room, ends: Iterable[tuple[float, Allocation]]) -> None:
        self._round, self._wake_w = room.round, np.array(room.wake_w)
        topology, caps = room.round.cluster.topology, rack_caps(room.round.cluster)
        racks = [np.isin(topology.node_rack, list(cap.racks)) for cap in caps]
        self._under = np.array([np.ones(len(self._wake_w), dtype=bool), *racks])
        idle_w = [float(room.idle_w[inside].sum()) for inside in racks]
        limits = [room.bearable_w, *(c.cap_w - w for c, w in zip(caps, idle_w, strict=True))]
        self._rounding = ROUNDING * np.maximum(1.0, np.abs(limits))[:, None]
        self.times_s = np.zeros(1)
        self.left_w: Floats = np.array(limits)[:, None]
        self._awake_s = np.zeros(len(self._wake_w))
        for lasts_s, held in sorted(
            ends, key=lambda end: -end[0]
        ):  # the job that keeps a node awake longest first
            self.take(0.0, lasts_s, self.need(held.option, held.placement, 0.0), held.placement)

    def need(self, option: Option, pieces: Pieces, start_s: float) -> Floats:
        """Return the watts of an option on `pieces`, with the nodes that it wakes, shape (R,)."""
        nodes, gpus = np.array(list(pieces)).T
        asleep = self._awake_s[nodes] <= start_s
        each_w = extra_gpu_w(self._round, option) * gpus + self._wake_w[nodes] * asleep
        needed: Floats = self._under[:, nodes] @ each_w
        return needed

    def bears(self, start_s: float, lasts_s: float, need: Floats) -> bool:
        """Return whether the watts `need` (R,) are left for `lasts_s` from a start in `times_s`."""
        return bool((self._least(start_s, lasts_s) >= need - self._rounding[:, 0]).all())

    def enough(self, times_s: Floats, watts: float) -> NDArray[np.bool_]:
        """Return at which times the cluster has `watts` left for the moment."""
        at = np.searchsorted(self.times_s, times_s, "right") - 1
        return np.asarray(self.left_w[0, at] >= watts - self._rounding[0])

    def open_nodes(
        self, start_s: float, lasts_s: float, watts: float, nodes: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Return which nodes' racks have `watts` and the watts of waking left for some time."""
        need = watts + self._wake_w[nodes] * (self._awake_s[nodes] <= start_s)
        left = self._least(start_s, lasts_s)[:, None] + self._rounding
        return np.asarray(((left >= need) | ~self._under[:, nodes]).all(axis=0))

    def take(self, start_s: float, lasts_s: float, need: Floats, pieces: Pieces) -> None:
        """Take the watts `need` (R,), and keep nodes awake, from a start for some time."""
        end_s = start_s + lasts_s
        for moment_s in (start_s, end_s):
            k = int(np.searchsorted(self.times_s, moment_s))
            if np.isfinite(moment_s) and moment_s not in self.times_s[k : k + 1]:
                self.times_s = np.insert(self.times_s, k, moment_s)
                self.left_w = np.insert(self.left_w, k, self.left_w[:, k - 1], axis=1)
        first, last = np.searchsorted(self.times_s, (start_s, end_s))
        self.left_w[:, first:last] -= need[:, None]
        for node, _ in pieces:
            self._awake_s[node] = max(self._awake_s[node], end_s)

    def _least(self, start_s: float, lasts_s: float) -> Floats:
        """Return the least watts left from a start for some time, shape (R,)."""
        first = int(np.searchsorted(self.times_s, start_s, "right")) - 1
        last = int(np.searchsorted(self.times_s, start_s + lasts_s, "left"))
        least: Floats = self.left_w[:, first : max(last, first + 1)].min(axis=1)
        return least
