"""What the policies for rigid jobs share: start jobs in some order as the user asked for them."""

import msgspec
import numpy as np

from ronda.formulations.consolidate import Consolidate
from ronda.formulations.requested import requested_options
from ronda.instances.cluster import Topology
from ronda.instances.instance import Round
from ronda.instances.job import Allocation, JobState, Option


class Room:
    """Free GPUs and watts of a cluster while a policy fills it.

    Nodes are chosen as the Helios artifact's *consolidate* placer does. The cluster's power must
    stay below the cap and below what the energy budget can bear for ever, because a rigid job
    that has started cannot be slowed down.
    """

    def __init__(self, round: Round, running: tuple[JobState, ...]) -> None:
        self.round = round
        topology = round.cluster.topology
        self.pools = topology.pools
        self._placers = _placers(topology, frozenset(round.asleep))
        limits = [w for w in (round.watts, round.sustained_w) if w is not None]
        self.watts = min(limits) - topology.idle_w if limits else float("inf")
        for state in running:
            assert state.allocation is not None
            self.take(state.allocation)

    def take(self, allocation: Allocation) -> None:
        """Use up what an allocation holds."""
        self._placers[allocation.option.pool].take(allocation.placement)
        self.watts -= self._extra_w(allocation.option)

    def fit(self, state: JobState, teardown_s: float = 0.0) -> Allocation | None:
        """Place a job as requested in the first pool with room, and take it; None without room."""
        for option in requested_options(self.round, state):
            if self._extra_w(option) > self.watts * (1 + 1e-12):
                continue
            placement = self._placers[option.pool].place(option.gpus)
            if placement is not None:
                if teardown_s:
                    option = msgspec.structs.replace(option, teardown_s=teardown_s)
                allocation = Allocation(option=option, placement=placement)
                self.take(allocation)
                return allocation
        return None

    def _extra_w(self, option: Option) -> float:
        """Return the watts that a job adds to a cluster whose GPUs idle."""
        return option.power_w - option.gpus * self.pools[option.pool].gpu_type.idle_w


def _placers(topology: Topology, asleep: frozenset[int]) -> list[Consolidate]:
    """Return an empty placer for each pool, over its nodes that are awake."""
    placers = []
    for index, pool in enumerate(topology.pools):
        nodes = [n for n in np.flatnonzero(topology.node_pool == index).tolist() if n not in asleep]
        free = topology.node_gpus[nodes].tolist()
        placers.append(Consolidate(free, pool.gpus_per_node, nodes))
    return placers


def keep(round: Round) -> dict[str, Allocation]:
    """Return the allocations that run, untouched."""
    return {s.job.id: s.allocation for s in round.running if s.allocation is not None}


def start_in_order(
    round: Round, waiting: list[JobState] | tuple[JobState, ...]
) -> dict[str, Allocation]:
    """Keep what runs and start waiting jobs in order until the first one that has no room."""
    allocations = keep(round)
    if waiting:
        room = Room(round, round.running)
        for state in waiting:
            allocation = room.fit(state)
            if allocation is None:
                break
            allocations[state.job.id] = allocation
    return allocations
