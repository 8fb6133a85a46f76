"""The power that the caps of racks leave during placement, and a check of placed jobs.

A set of nodes is one integer, whose bits are indices in the cluster.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np

from ronda.formulations.placement.nodes import bits, bits_of, lowest_bits
from ronda.formulations.topology import racks_above
from ronda.formulations.watts import TOLERANCE, capped, idle_w, node_w, pieces_w, wakes
from ronda.instances.job import Allocation, Option, used_nodes
from ronda.instances.round import Round


class RackPower:
    """The watts left below the cap of every capped rack.

    A node that no job uses counts as awake and idle or, if it is `drowsy` (asleep until a job uses
    it), as sleeping. A new job adds its power beyond the idle power of its GPUs, and wakes the
    node. A node that is asleep or waking now also draws the power of waking when a job uses it.
    """

    __slots__ = ("_by_wake", "_caps_of", "_drowsy", "_left", "_members", "_round", "_wake_w")

    def __init__(self, round: Round, drowsy: Iterable[int]) -> None:
        self._round, cluster, topology = round, round.cluster, round.cluster.topology
        caps = {r.name: r.power_cap_w for r in cluster.racks if r.power_cap_w is not None}
        lineages = [
            tuple(above for above in racks_above(cluster)[name] if above in caps)
            for name in topology.racks
        ]
        self._caps_of = [lineages[rack] for rack in topology.node_rack.tolist()]
        awake_w = node_w(topology, (), [*round.asleep, *round.waking])
        self._wake_w: list[float] = (awake_w - topology.sleep_w).tolist()
        still = sorted(set(drowsy))
        self._drowsy = bits_of(still)
        awake_w[still] = topology.sleep_w[still]
        left = {name: watts * (1 + TOLERANCE) for name, watts in caps.items()}
        members: defaultdict[str, int] = defaultdict(int)
        by_wake: dict[str, defaultdict[float, int]] = {n: defaultdict(int) for n in caps}
        for node, watts in enumerate(awake_w.tolist()):
            for name in self._caps_of[node]:
                left[name] -= watts
                members[name] |= 1 << node
                by_wake[name][self._wake_w[node]] |= 1 << node
        self._left = left
        # Small subtrees first: a rack before the row that holds it.
        self._members = dict(sorted(members.items(), key=lambda item: item[1].bit_count()))
        self._by_wake = {name: sorted(masks.items()) for name, masks in by_wake.items()}

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        for name in ("_by_wake", "_caps_of", "_drowsy", "_members", "_round", "_wake_w"):
            setattr(twin, name, getattr(self, name))
        twin._left = dict(self._left)
        return twin

    def add(self, node: int, watts: float) -> None:
        """Add `watts` (negative to remove power) to `node`, which is awake from now on."""
        if self._drowsy >> node & 1:
            self._drowsy ^= 1 << node
            watts += self._wake_w[node]
        for name in self._caps_of[node]:
            self._left[name] -= watts

    def take(self, option: Option, placement: Iterable[tuple[int, int]], sign: int = 1) -> None:
        """Add the power of a job on its nodes (negative: remove it)."""
        for node, watts in pieces_w(self._round, option, placement):
            self.add(node, sign * watts)

    def bears(self, option: Option, placement: Iterable[tuple[int, int]]) -> bool:
        """Return whether the power of a job may be added on its nodes."""
        return self.fits(pieces_w(self._round, option, placement))

    def allowed(self, among: int, watts: float, count: int = 1) -> int:
        """Return the nodes of the set `among` that may take `watts` more.

        If `count` is above 1, all returned nodes may take that power at the same time. Where a cap
        does not allow all nodes, awake nodes and low indices come first.
        """
        for name, members in self._members.items():
            left, inside = self._left[name], members & among
            if not inside:
                continue
            refused = inside if left < watts else 0
            for wake_w, mask in self._by_wake[name]:
                if left < watts + wake_w:
                    refused |= mask & inside & self._drowsy
            among &= ~refused
            if count > 1 and inside != refused:
                among &= ~(inside & ~refused) | self._together(name, inside & ~refused, watts)
        return among

    def fits(self, pieces: Iterable[tuple[int, float]]) -> bool:
        """Return whether all pairs (node, watts) may be added together."""
        trial = self.copy()
        for node, watts in pieces:
            if not trial.allowed(1 << node, watts):
                return False
            trial.add(node, watts)
        return True

    def _together(self, name: str, inside: int, watts: float) -> int:
        """Return the nodes `inside` a capped rack that may take `watts` each at the same time."""
        left, drowsy = self._left[name], inside & self._drowsy
        chosen = inside & ~drowsy
        if watts > 0:
            chosen = lowest_bits(chosen, min(chosen.bit_count(), int(left // watts)))
        # A job below idle power is no reserve for other nodes, as it may not go to its node.
        left -= max(watts, 0.0) * chosen.bit_count()
        for node in bits(drowsy):
            need = watts + self._wake_w[node]
            if need <= left:
                chosen |= 1 << node
                left -= need
        return chosen


def keeps_limits(round: Round, allocations: Mapping[str, Allocation]) -> bool:
    """Return whether allocations keep the power limits of the cluster and of its racks.

    Sleeping nodes wake if they get a job.
    """
    limit = round.watts
    if limit is None and not capped(round.cluster):
        return True
    pieces = []
    for each in allocations.values():
        pieces += pieces_w(round, each.option, each.placement)
    if limit is not None:
        used = used_nodes(allocations.values())
        still = tuple(node for node in round.asleep if node not in used)
        drawn_w = idle_w(round, still) + float(wakes(round, still)[0].sum())
        drawn_w += float(np.sum([watts for _, watts in pieces]))
        if drawn_w > limit * (1 + TOLERANCE):
            return False
    return RackPower(round, round.asleep).fits(pieces)
