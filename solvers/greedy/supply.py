"""Watts that power caps leave from now on, by when running jobs are believed to end."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.watts import extra_gpu_w, rack_caps
from ronda.instances.arrays import Floats
from ronda.instances.job import Allocation, Option
from ronda.instances.violation import ROUNDING
from ronda.solvers.greedy.room import Room

Pieces = Iterable[tuple[int, int]]
"""Pairs (index of a node in the cluster, GPUs there)."""


class PowerSupply:
    """Watts left to jobs, of the cluster (row 0) and of each rack with a cap, as time passes.

    An energy budget counts as the power that it bears throughout. From `times_s[k]` seconds from
    now until the next of them ``left_w[r, k]`` are left. A node that sleeps without a job draws its
    idle power until the last job there is believed to end.

    Parameters
    ----------
    ends
        For how many seconds each allocation of now lasts.
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
        ):  # who keeps a node awake longest
            self.take(0.0, lasts_s, self.need(held.option, held.placement, 0.0), held.placement)

    def need(self, option: Option, pieces: Pieces, start_s: float) -> Floats:
        """Return (R,) the watts that an option takes there, with the nodes that it keeps awake."""
        nodes, gpus = np.array(list(pieces)).T
        asleep = self._awake_s[nodes] <= start_s
        each_w = extra_gpu_w(self._round, option) * gpus + self._wake_w[nodes] * asleep
        needed: Floats = self._under[:, nodes] @ each_w
        return needed

    def bears(self, start_s: float, lasts_s: float, need: Floats) -> bool:
        """Return whether (R,) watts are left from a start, a time known, for some time."""
        return bool((self._least(start_s, lasts_s) >= need - self._rounding[:, 0]).all())

    def enough(self, times_s: Floats, watts: float) -> NDArray[np.bool_]:
        """Tell at which times the cluster, for a moment, has `watts` left."""
        at = np.searchsorted(self.times_s, times_s, "right") - 1
        return np.asarray(self.left_w[0, at] >= watts - self._rounding[0])

    def open_nodes(
        self, start_s: float, lasts_s: float, watts: float, nodes: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Tell which nodes' racks have `watts`, and those to wake the node, left for some time."""
        need = watts + self._wake_w[nodes] * (self._awake_s[nodes] <= start_s)
        left = self._least(start_s, lasts_s)[:, None] + self._rounding
        return np.asarray(((left >= need) | ~self._under[:, nodes]).all(axis=0))

    def take(self, start_s: float, lasts_s: float, need: Floats, pieces: Pieces) -> None:
        """Use (R,) watts, and keep nodes awake, from a start for some time."""
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
        """Return (R,) the least watts left from a start for some time."""
        first = int(np.searchsorted(self.times_s, start_s, "right")) - 1
        last = int(np.searchsorted(self.times_s, start_s + lasts_s, "left"))
        least: Floats = self.left_w[:, first : max(last, first + 1)].min(axis=1)
        return least
