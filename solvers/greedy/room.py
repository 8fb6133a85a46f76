"""Room: free GPUs and watts of a cluster while a policy fills it with jobs in order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ronda.formulations.bit_sets import bits_of
from ronda.formulations.models.power import extra_w
from ronda.formulations.options.application import application_of, requested_options
from ronda.formulations.placement import orders
from ronda.formulations.placement.nodes import FreeList, Placement, free_lists
from ronda.formulations.watts import RackPower, capped, node_w
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.round import Round

ROUNDING = 1e-12
"""Relative rounding allowed against the watts that are left."""


Clocks = Callable[[JobState, Option], Option]
"""From a job and its option at full clock to the option that it is to run with."""


def full_clock(state: JobState, option: Option) -> Option:
    """Return the option as it is."""
    return option


@dataclass(frozen=True)
class Clocked:
    """A policy that decides GPUs (and batch) at full clock and leaves the clock to a setting.

    Whatever such a policy gives a job afresh goes through `clocks`, which is what the suffix
    ``+zeus`` replaces (`ronda.solvers.policies.energy.zeus`); what runs on keeps its clock.
    """

    def clocks(self, round: Round) -> Clocks:
        """Return the setting for a round."""
        return full_clock


class Room:
    """Free GPUs and watts of a cluster while a policy fills it.

    The cluster's power must stay below the cap and below what the energy budget can bear
    indefinitely, because a rigid job that has started cannot be slowed down.

    Parameters
    ----------
    running
        Those of the running jobs that keep what they hold.
    clocks
        How jobs that start here are clocked.
    most_free
        Whether jobs go to the nodes with most free GPUs, on several if they must, as in Pollux's
        artifact; else as the Helios artifact's *consolidate* placer does.
    sleeping
        Whether nodes without a job sleep, and are woken by the jobs placed there; else nodes that
        sleep now are not used, and all others draw their idle power.
    """

    def __init__(
        self,
        round: Round,
        running: Iterable[JobState],
        *,
        clocks: Clocks = full_clock,
        most_free: bool = False,
        sleeping: bool = False,
    ) -> None:
        self.round, self._clocks = round, clocks
        topology = round.cluster.topology
        self.pools = topology.pools
        self._free = free_nodes(round, sleeping=sleeping)
        self._order = orders.most_free if most_free else orders.consolidate
        self._waking_w = (topology.awake_w - topology.sleep_w).tolist() if sleeping else None
        self.used: set[int] = set()
        self.watts = spare_w(round, sleeping=sleeping)
        self._racks = None
        if capped(round.cluster):
            drowsy = range(len(topology.node_gpus)) if sleeping else round.asleep
            self._racks = RackPower(round.cluster, drowsy)
        for state in running:
            assert state.allocation is not None
            self.take(state.allocation)

    def take(self, allocation: Allocation) -> None:
        """Use up what an allocation holds."""
        option, placement = allocation.option, allocation.placement
        self._free[option.pool].take(placement)
        self.watts -= self._more_w(option, placement)
        self.used.update(node for node, _ in placement)
        if self._racks is not None:
            for node, watts in self._pieces_w(option, placement):
                self._racks.add(node, watts)

    def fit(self, state: JobState, teardown_s: float = 0.0) -> Allocation | None:
        """Place a job as requested in the first pool with room, and take it; None without room."""
        for requested in requested_options(self.round, state):
            option = self._clocks(state, requested)
            if extra_w(self.round, option) > self.watts * (1 + ROUNDING):
                continue
            placement = self._place(option)
            if placement is None or self._more_w(option, placement) > self.watts * (1 + ROUNDING):
                continue
            spread = spread_over(self.round, state, option, len(placement))
            if spread is None:
                continue
            option = spread
            if teardown_s:
                option = msgspec.structs.replace(option, teardown_s=teardown_s)
            allocation = Allocation(option=option, placement=placement)
            self.take(allocation)
            return allocation
        return None

    def _place(self, option: Option) -> Placement | None:
        """Return where an option goes, within the power caps of racks; None without room."""
        free = self._free[option.pool]
        placement = self._order(free, option.gpus)
        if placement is None or self._racks is None:
            return placement
        if self._racks.fits(self._pieces_w(option, placement)):
            return placement
        return self._place_by_racks(option, free.copy())

    def _place_by_racks(self, option: Option, free: FreeList) -> Placement | None:
        """Return where an option goes if nodes whose racks have no watts left are hidden."""
        assert self._racks is not None
        piece = min(option.gpus, self.pools[option.pool].gpus_per_node)
        each_w = extra_w(self.round, option) / option.gpus * piece
        allowed = self._racks.allowed(bits_of(free.nodes), each_w, -(-option.gpus // piece))
        for node, gpus in list(free.emptiest_first()):
            index = free.nodes[node]
            if not allowed >> index & 1:
                free.take(((index, gpus),))
        placement = self._order(free, option.gpus)
        if placement is None or not self._racks.fits(self._pieces_w(option, placement)):
            return None
        return placement

    def _pieces_w(self, option: Option, placement: Placement) -> list[tuple[int, float]]:
        """Return pairs (node, watts beyond those of its GPUs idle)."""
        each_w = extra_w(self.round, option) / option.gpus
        return [(node, gpus * each_w) for node, gpus in placement]

    def _more_w(self, option: Option, placement: Placement) -> float:
        """Return the watts that a job adds to the cluster there, waking nodes included."""
        watts = extra_w(self.round, option)
        if self._waking_w is not None:
            watts += sum(self._waking_w[node] for node, _ in placement if node not in self.used)
        return watts


def spread_over(round: Round, state: JobState, option: Option, nodes: int) -> Option | None:
    """Return an option as it runs on some number of nodes; None if it has no speed there."""
    of = application_of(round, state, option.pool)
    return of.spread(option, nodes) if of is not None else None


def spare_w(round: Round, *, sleeping: bool = False) -> float:
    """Return the watts that jobs may add to a cluster without jobs, indefinitely; may be negative.

    Nodes are awake, or asleep if `sleeping`.
    """
    limits = [w for w in (round.watts, round.sustained_w) if w is not None]
    if not limits:
        return float("inf")
    topology = round.cluster.topology
    asleep = range(len(topology.node_gpus)) if sleeping else ()
    return min(limits) - float(node_w(topology, asleep).sum())


def free_nodes(round: Round, *, sleeping: bool = False) -> list[FreeList]:
    """Return the nodes of each pool, all free but those that may not be used."""
    free = [nodes.copy() for nodes in free_lists(round.cluster)]
    if not sleeping:
        topology = round.cluster.topology
        for node in round.asleep:
            gpus = int(topology.node_gpus[node])
            free[int(topology.node_pool[node])].take(((node, gpus),))
    return free


def start_in_order(
    room: Room, waiting: Sequence[JobState], *, blocking: bool = True, teardown_s: float = 0.0
) -> dict[str, Allocation]:
    """Return allocations of waiting jobs in order, as far as there is room.

    If `blocking` the first job without room ends it; else those behind it are tried.
    """
    started = {}
    for state in waiting:
        allocation = room.fit(state, teardown_s)
        if allocation is not None:
            started[state.job.id] = allocation
        elif blocking:
            break
    return started


def admit(
    round: Round, order: Sequence[JobState], *, clocks: Clocks = full_clock
) -> list[JobState]:
    """Return the jobs that get a share of their pool's GPUs and of the watts, in order.

    Only numbers count, not nodes. A job that finds too few left does not block those behind it;
    running jobs that may not be stopped come first.
    """
    pools = round.cluster.topology.pools
    left, watts = [pool.gpus for pool in pools], spare_w(round)
    admitted = []
    pinned = [s for s in order if s.allocation is not None and not s.job.preemptible]
    firm = {state.job.id for state in pinned}
    for state in pinned + [s for s in order if s.job.id not in firm]:
        if state.allocation is not None:
            options = [state.allocation.option]
        elif any(left):
            options = [clocks(state, option) for option in requested_options(round, state)]
        else:
            continue
        for option in options:
            more_w = extra_w(round, option)
            enough = left[option.pool] >= option.gpus and more_w <= watts * (1 + ROUNDING)
            if enough or state.job.id in firm:
                left[option.pool] -= option.gpus
                watts -= more_w
                admitted.append(state)
                break
    return admitted


def preempt_in_order(
    round: Round,
    order: Sequence[JobState],
    *,
    clocks: Clocks = full_clock,
    most_free: bool = False,
    teardown_s: float = 0.0,
) -> dict[str, Allocation]:
    """Return the allocations of the jobs that `admit` admits; running jobs it does not stop.

    Running jobs that are admitted stay where they are. Others start in order; one that finds no
    nodes waits without blocking those behind it.
    """
    admitted = admit(round, order, clocks=clocks)
    stay = [s for s in admitted if s.allocation is not None]
    allocations = {s.job.id: s.allocation for s in stay if s.allocation is not None}
    starting = [s for s in admitted if s.allocation is None]
    if starting:
        room = Room(round, stay, clocks=clocks, most_free=most_free)
        allocations |= start_in_order(room, starting, blocking=False, teardown_s=teardown_s)
    return allocations
