"""The free GPUs, watts and joules of a cluster while a policy fills it with jobs in order."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import msgspec
import numpy as np

from ronda.formulations.holdings import Holdings, holdings
from ronda.formulations.node_rules.parts import has_parts
from ronda.formulations.options.application import Requested, application_of
from ronda.formulations.placement import nodes as placing
from ronda.formulations.placement.book import NodeBook
from ronda.formulations.placement.nodes import FreeList, Placement, bits_of
from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.site.accounts import accounts
from ronda.formulations.site.nodes import concerns_nodes
from ronda.formulations.watts import (
    capped,
    extra_gpu_w,
    extra_w,
    left_w,
    may_sleep,
    may_use_j,
    node_w,
    seconds_left,
    spare,
)
from ronda.instances.base import Floats
from ronda.instances.clock import checkpoint
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

Piece = tuple[float, float]
"""The watts added to the cluster without jobs, and their duration in seconds."""


class Draw:
    """The used part of a round's limits on power and energy.

    Parameters
    ----------
    base
        Watts of the cluster without jobs.
    until_end
        Whether the energy budget must cover jobs until they end, because they cannot be stopped.
        Otherwise it must cover them until the end of its window, as later rounds can stop them.

    Attributes
    ----------
    spare_w
        Watts that may still be added for any length of time.
    """

    def __init__(self, round: Round, base: float, *, until_end: bool) -> None:
        self.limited = round.watts is not None
        self._round, self._base = round, base
        self._until_end = until_end
        self._watts: Floats = np.zeros(0)
        self._ends: Floats = np.zeros(0)
        self._new: list[Piece] = []  # taken pieces that are not in the arrays yet
        self._times: Floats = np.zeros(0)  # (m,) ends of pieces
        self._left_j: Floats = np.zeros(0)  # (m,) joules of the budget left by then
        self._tightest = 0
        self._cap_w = np.inf if round.power_cap_w is None else round.power_cap_w - base
        self._rounding = ROUNDING * (round.watts or 0.0)
        self._later_w, self._lost_w = np.inf, 0.0
        if until_end and round.sustained_w is not None:
            self._later_w = round.sustained_w - base
        if until_end and round.energy_j is not None:
            at = np.array([round.window_s, np.nextafter(round.window_s, np.inf)])
            before_j, after_j = may_use_j(round, at).tolist()
            self._lost_w = max(0.0, before_j - after_j) / round.window_s
        self.spare_w = min(self._later_w, left_w(round, base, self._watts, self._ends))

    def seconds(self, state: JobState, option: Option) -> float:
        """Return the seconds for which a job draws power, infinite if its size is unknown."""
        return seconds_left(self._round, state, option)

    def node_seconds(self, seconds: float) -> float:
        """Return the seconds for which a job keeps its node awake: at least the energy window."""
        window_s = self._round.window_s
        return max(window_s, seconds) if seconds < math.inf else window_s

    def fits(self, pieces: Sequence[Piece]) -> bool:
        """Return whether there is room for all given pieces together."""
        if not self.limited or sum(max(0.0, watts) for watts, _ in pieces) <= self.spare_w:
            return True
        if sum(watts for watts, _ in pieces) > self._cap_w + self._rounding:
            return False
        if self._round.energy_j is None:
            return True
        self._settle()
        at_s, left_j = self._times.item(self._tightest), self._left_j.item(self._tightest)
        if sum(w * min(self._end(s), at_s) for w, s in pieces) > left_j + self._rounding * at_s:
            return False
        times, left = self._with(*self._columns(pieces))
        return bool((left >= -self._rounding * times).all())

    def take(self, pieces: Sequence[Piece]) -> None:
        """Take pieces, whether or not there is room."""
        self._new += pieces
        self._cap_w -= sum(watts for watts, _ in pieces)
        self.spare_w -= sum(max(0.0, watts) for watts, _ in pieces)

    def take_all(self, watts: Floats, seconds: Floats) -> None:
        """Take many pieces (n,) at once, before all others."""
        most_s = np.inf if self._until_end else self._round.window_s
        self._watts = watts
        self._ends = np.where(seconds < most_s, seconds, self._round.window_s)
        self._cap_w -= float(watts.sum())
        self.spare_w -= float(np.maximum(0.0, watts).sum())

    def _end(self, seconds: float) -> float:
        most_s = math.inf if self._until_end else self._round.window_s
        return seconds if seconds < most_s else self._round.window_s

    def _columns(self, pieces: Sequence[Piece]) -> tuple[Floats, Floats]:
        """Return the watts of pieces, and the times until which they count."""
        watts, ends = zip(*((watts, self._end(seconds)) for watts, seconds in pieces), strict=True)
        return np.array(watts), np.array(ends)

    def _settle(self) -> None:
        """Update the arrays: piece by piece, or from scratch if many pieces are new."""
        known = len(self._times) > 0
        if known and not self._new:
            return
        if self._new:
            watts, ends = self._columns(self._new)
            known &= len(watts) <= ONE_BY_ONE
            if known:
                self._times, self._left_j = self._with(watts, ends)
            self._watts, self._ends = np.append(self._watts, watts), np.append(self._ends, ends)
            self._new = []
        if not known:
            self._times, spare_w = spare(
                self._round, self._base, self._watts, self._ends, until_end=self._until_end
            )
            self._left_j = spare_w * self._times
        spare_w = self._left_j / self._times
        self._tightest = int(spare_w.argmin())
        self.spare_w = min(self._cap_w, self._later_w, spare_w.item(self._tightest))
        if self._until_end:  # after the window the budget may grow more slowly than within it
            at = self._times == self._round.window_s
            self.spare_w = min(self.spare_w, spare_w[at].min() - self._lost_w)

    def _with(self, watts: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the times at which the power changes, with more pieces, and the joules left."""
        left_j = self._left_j - watts @ np.minimum(ends[:, None], self._times)
        new = ends[(ends > 0) & (ends != self._round.window_s)]
        if not len(new):
            return self._times, left_j
        used = self._base * new + self._watts @ np.minimum(self._ends[:, None], new)
        used += watts @ np.minimum(ends[:, None], new)
        return np.append(self._times, new), np.append(left_j, may_use_j(self._round, new) - used)


ONE_BY_ONE = 8
"""The number of new pieces up to which adding each is quicker than sorting all again."""

Clocks = Callable[[JobState, Option], Option]
"""A function from a job and its option at full clock to the option that it gets."""


def full_clock(state: JobState, option: Option) -> Option:
    """Return the option unchanged."""
    return option


class Room:
    """Free GPUs, watts and joules of a cluster while a policy fills it.

    Parameters
    ----------
    running
        Running jobs that keep their allocations.
    clocks
        Function that sets the clocks of starting jobs.
    most_free
        Whether jobs go to the nodes with most free GPUs, on several nodes if necessary, as in
        Pollux's artifact. Otherwise they are placed as by the Helios artifact's *consolidate*
        placer.
    sleeping
        Whether all nodes without a job sleep. False: only the nodes that sleep now do, and all
        others draw their idle power. None: nodes sleep if that helps to keep a limit.
    wakes
        Whether jobs wake sleeping nodes if awake nodes have no room.
    until_end
        As for `Draw`: whether the energy budget must cover jobs until they end.

    Attributes
    ----------
    limited
        Whether the watts that all jobs share are limited.
    bearable_w
        Watts that jobs may add to the empty room for any length of time; infinite if unlimited.
    idle_w, wake_w
        Watts of each node without a job, and watts that its first job adds, each of shape (N,).
    """

    def __init__(
        self,
        round: Round,
        running: Iterable[JobState],
        *,
        clocks: Clocks = full_clock,
        most_free: bool = False,
        sleeping: bool | None = None,
        wakes: bool = True,
        until_end: bool = True,
    ) -> None:
        self.round, self._clocks, self._requested = round, clocks, Requested(round)
        topology = round.cluster.topology
        self.pools = topology.pools
        sleeping = may_sleep(round) if sleeping is None else sleeping
        pairs = [(state, state.allocation) for state in running]
        held = holdings(round.cluster, [(s, given) for s, given in pairs if given is not None])
        self._free = held.free()
        if not wakes:
            for free in self._free:
                free.take(
                    (n, free.free[free.position[n]]) for n in round.asleep if n in free.position
                )
        self._own: dict[str, list[int]] = {}
        for index, pool in enumerate(self.pools):
            self._own.setdefault(pool.partition, []).append(index)
        self._order = placing.most_free if most_free else placing.consolidate
        self._draw = draw_of(round, sleeping=sleeping, until_end=until_end)
        self.limited, self.bearable_w = self._draw.limited, self._draw.spare_w
        asleep = drowsy(round, sleeping=sleeping)
        self.idle_w = node_w(topology, asleep)
        self.wake_w = waking_w(round, sleeping=sleeping)
        self._waking = any(self.wake_w)
        self._racks = RackPower(round, asleep) if capped(round.cluster) else None
        self._accounts = accounts(round)
        self._book = NodeBook(round) if concerns_nodes(round) else None
        self._in_parts = int(has_parts(round))
        if self._book is not None and not wakes:
            self._book.usable[list(round.asleep)] = False
        self._begin(held)

    def _begin(self, held: Holdings) -> None:
        """Take all but the GPUs of initial holdings, which are already taken."""
        for state, given in held.pairs if self._accounts or self._book is not None else ():
            for account in self._accounts:
                account.take(state, given)
            if self._book is not None:
                self._book.take(state, given)
        used, window_s = held.used, self.round.window_s
        self._awake_until = dict.fromkeys(used, window_s)
        if self.limited:
            watts, seconds = held.watts, held.seconds_left(self.round)
            lasts_s = np.where(np.isfinite(seconds), np.maximum(window_s, seconds), window_s)
            until_s = held.until(lasts_s)[used]
            self._awake_until = dict(zip(used, until_s.tolist(), strict=True))
            if self._waking:
                watts = np.append(watts, [self.wake_w[node] for node in used])
                seconds = np.append(seconds, until_s)
            self._draw.take_all(watts, seconds)
        if self._racks is not None:
            for _, given in held.pairs:
                self._racks.take(given.option, given.placement)

    @property
    def ruled(self) -> bool:
        """Whether rules of the site may treat jobs of equal options differently."""
        return bool(self._accounts) or self._book is not None

    @property
    def used(self) -> Collection[int]:
        """The nodes with a job."""
        return self._awake_until.keys()

    @property
    def free_gpus(self) -> int:
        """The number of free GPUs, or one more if jobs may join others on a GPU."""
        return sum(free.total for free in self._free) + self._in_parts

    def take(self, state: JobState, allocation: Allocation) -> None:
        """Take the GPUs, watts and joules of a job's allocation, and what rules count."""
        for account in self._accounts:
            account.take(state, allocation)
        taken = None if self._book is None else self._book.take(state, allocation)
        option, placement = allocation.option, allocation.placement
        self._free[option.pool].take(placement if taken is None else taken)
        lasts_s = self.round.window_s
        if self.limited:
            self._draw.take(self._pieces(state, option, placement))
            lasts_s = self._draw.node_seconds(self._draw.seconds(state, option))
        for node, _ in placement:
            self._awake_until[node] = max(lasts_s, self._awake_until.get(node, 0.0))
        if self._racks is not None:
            self._racks.take(option, placement)

    def keep(self, state: JobState, held: Allocation) -> bool:
        """Let a job go on with its allocation if that is free; return whether it is."""
        free = self._free[held.option.pool]
        if self._book is not None:
            if not self._book.holds(state, held):
                return False
        elif any(free.free[free.position[node]] < gpus for node, gpus in held.placement):
            return False
        if not self._bears(state, held.option, held.placement):
            return False
        if self._racks and not self._racks.bears(held.option, held.placement):
            return False
        if not all(account.fits(state, held) for account in self._accounts):
            return False
        self.take(state, held)
        return True

    def allows(self, state: JobState, option: Option) -> bool:
        """Return whether limits on what jobs hold allow one more, wherever it is placed."""
        given = Allocation(option=option, placement=())
        return all(account.fits(state, given) for account in self._accounts)

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self._own)

    def nodes(self, pool: int) -> FreeList:
        """Return the room's own list of the free GPUs of a pool's nodes."""
        return self._free[pool]

    def free_in(self, partition: str) -> int:
        """Return the number of free GPUs for the jobs of a partition, as `free_gpus`."""
        return sum(self._free[pool].total for pool in self._own[partition]) + self._in_parts

    def fit(
        self,
        state: JobState,
        teardown_s: float = 0.0,
        beside: Mapping[int, Placement] = MappingProxyType({}),
        bears: Callable[[Option, Placement], bool] | None = None,
        on: int | None = None,
    ) -> Allocation | None:
        """Place a job as requested in the first pool with room, or return None without room.

        Placements in `beside`, keyed by pool, stay free. `bears` may refuse an option at a
        placement. With `on` the job gets the given node or none. The job's allocation is taken.
        """
        for pool, kept in beside.items():
            self._hide(pool, kept)
        ways = (self.way(state, o, teardown_s, bears, on) for o in self.ways(state))
        found = next(filter(None, ways), None)
        for pool, kept in beside.items():
            self._hide(pool, [(node, -gpus) for node, gpus in kept])
        if found is not None:
            self.take(state, found)
        return found

    def _hide(self, pool: int, placement: Iterable[tuple[int, int]]) -> None:
        """Take GPUs that are promised to others (negative: free them)."""
        self._free[pool].take(placement)
        if self._book is not None:
            self._book.hide(placement)

    def ways(self, state: JobState) -> list[Option]:
        """Return the options of a job as requested, in order of its preference for pools."""
        return [self._clocks(state, option) for option in self._requested.options(state)]

    def way(
        self,
        state: JobState,
        option: Option,
        teardown_s: float = 0.0,
        bears: Callable[[Option, Placement], bool] | None = None,
        on: int | None = None,
    ) -> Allocation | None:
        """Return the allocation that a job would get with an option, or None without room."""
        if not self._bears(state, option, ()):
            return None
        if self._book is not None:
            among = None if on is None else np.arange(len(self._book.size)) == on
            placement = self._book.fit(state, option, power=self._racks, among=among)
        else:
            placement = self._place(option) if on is None else self._place_on(option, on)
        if placement is None or (self._waking and not self._bears(state, option, placement)):
            return None
        spread = spread_over(self.round, state, option, placement)
        if spread is None:
            return None
        if teardown_s:
            spread = msgspec.structs.replace(spread, teardown_s=teardown_s)
        if spread is not option and not self._bears(state, spread, placement):
            return None
        if bears is not None and not bears(spread, placement):
            return None
        given = Allocation(option=spread, placement=placement)
        if self._book is not None and option.share is not None:
            given = self._book.named(state, given)
        return given if all(account.fits(state, given) for account in self._accounts) else None

    def _bears(self, state: JobState, option: Option, placement: Placement) -> bool:
        """Return whether there are enough watts for a job at a placement."""
        return not self.limited or self._draw.fits(self._pieces(state, option, placement))

    def _place(self, option: Option) -> Placement | None:
        """Return a placement for an option, on awake nodes if they have room, or None."""
        place = self._place_in_a_rack if option.span == "rack" else self._place_among
        awake = place(option, self._without_sleepers(option.pool)) if self.round.asleep else None
        return awake or place(option, self._free[option.pool])

    def _place_on(self, option: Option, node: int) -> Placement | None:
        """Return the placement of an option on a given node, or None without room."""
        free = self._free[option.pool]
        if node not in free.position or free.free[free.position[node]] < option.gpus:
            return None
        placement = ((node, option.gpus),)
        if self._racks is not None and not self._racks.bears(option, placement):
            return None
        return placement

    def _without_sleepers(self, pool: int) -> FreeList:
        """Return the free GPUs of a pool's nodes without sleeping nodes."""
        free = self._free[pool].copy()
        for node in self.round.asleep:
            if node in free.position and node not in self._awake_until:
                free.take(((node, free.free[free.position[node]]),))  # some GPUs may be promised
        return free

    def _place_in_a_rack(self, option: Option, free: FreeList) -> Placement | None:
        """Return a placement for an option in the fullest rack with room, or None."""
        rack_of: list[int] = self.round.cluster.topology.node_rack.tolist()
        left = Counter[int]()
        for node, gpus in zip(free.nodes, free.free, strict=True):
            left[rack_of[node]] += gpus
        for rack, gpus in sorted(left.items(), key=lambda item: item[1]):
            if gpus < option.gpus:
                continue
            inside = free.copy()
            inside.take(
                (n, g) for n, g in zip(free.nodes, free.free, strict=True) if rack_of[n] != rack
            )
            placement = self._place_among(option, inside)
            if placement is not None:
                return placement
        return None

    def _place_among(self, option: Option, free: FreeList) -> Placement | None:
        """Return a placement for an option within the power caps of racks, or None without room."""
        placement = self._order(free, option.gpus)
        if placement is None or self._racks is None:
            return placement
        if self._racks.bears(option, placement):
            return placement
        return self._place_by_racks(option, free.copy())

    def _place_by_racks(self, option: Option, free: FreeList) -> Placement | None:
        """Return a placement for an option without nodes in racks that have no watts left."""
        assert self._racks is not None
        piece = min(option.gpus, self.pools[option.pool].gpus_per_node)
        each_w = extra_gpu_w(self.round, option) * piece
        allowed = self._racks.allowed(bits_of(free.nodes), each_w, -(-option.gpus // piece))
        for node, gpus in list(free.emptiest_first()):
            index = free.nodes[node]
            if not allowed >> index & 1:
                free.take(((index, gpus),))
        placement = self._order(free, option.gpus)
        if placement is None or not self._racks.bears(option, placement):
            return None
        return placement

    def _pieces(self, state: JobState, option: Option, placement: Placement) -> list[Piece]:
        """Return a job's power at a placement, with nodes that it wakes or keeps awake longer."""
        seconds = self._draw.seconds(state, option)
        pieces = [(extra_w(self.round, option), seconds)]
        lasts_s = self._draw.node_seconds(seconds)
        for node, _ in placement if self._waking else ():
            watts, until_s = self.wake_w[node], self._awake_until.get(node)
            if until_s is None:
                pieces.append((watts, lasts_s))
            elif lasts_s > until_s:
                pieces += [(watts, lasts_s), (-watts, until_s)]
        return pieces


def spread_over(
    round: Round, state: JobState, option: Option, placement: Placement
) -> Option | None:
    """Return an option as it runs at a placement, or None if that is not worth a start."""
    if option.span == "node" and len(placement) == 1:
        return option
    of = application_of(round, state, option.pool)
    nodes, racks = len(placement), round.cluster.topology.racks_of(node for node, _ in placement)
    gpus = option.computing
    if of is None or not of.worth_starting(gpus, nodes, racks, option.batch, option.clock):
        return None
    return of.spread(option, nodes, racks)


def draw_of(round: Round, *, sleeping: bool, until_end: bool) -> Draw:
    """Return the limits on jobs' power in a cluster that is awake, or asleep if `sleeping`."""
    asleep = drowsy(round, sleeping=sleeping)
    base = float(node_w(round.cluster.topology, asleep).sum())
    return Draw(round, base, until_end=until_end)


def drowsy(round: Round, *, sleeping: bool) -> Sequence[int]:
    """Return the nodes that sleep without a job: all if `sleeping`, else the current sleepers."""
    return range(len(round.cluster.topology.node_gpus)) if sleeping else round.asleep


def waking_w(round: Round, *, sleeping: bool) -> list[float]:
    """Return the watts that the first job adds on each node that sleeps otherwise, shape (N,).

    They are the node's idle power and the power of waking it. `drowsy` says which nodes sleep.
    """
    topology = round.cluster.topology
    watts, asleep = np.zeros(len(topology.node_gpus)), list(drowsy(round, sleeping=sleeping))
    awake_w = node_w(topology, (), round.asleep)
    watts[asleep] = awake_w[asleep] - topology.sleep_w[asleep]
    return watts.tolist()


def start_in_order(
    room: Room,
    waiting: Sequence[JobState],
    *,
    blocking: bool = True,
    teardown_s: float = 0.0,
    nodes: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Allocation]:
    """Return allocations of waiting jobs in order, as far as there is room.

    A job in `nodes` starts only on the given node. If `blocking`, the first job without room stops
    the starts in its partition, and in all partitions if watts, which they share, are limited.
    Otherwise later jobs are tried.
    """
    started, blocked = {}, set[str]()
    for state in waiting:
        checkpoint()
        partition = state.job.partition
        if partition in blocked:
            continue
        allocation = None
        if room.free_in(partition):
            allocation = room.fit(state, teardown_s, on=nodes.get(state.job.id))
        if allocation is not None:
            started[state.job.id] = allocation
        elif blocking:
            blocked.add(partition)
            if room.limited or not room.free_gpus or len(blocked) == room.partitions:
                break
    return started


def admit(
    round: Round, order: Sequence[JobState], *, clocks: Clocks = full_clock
) -> list[JobState]:
    """Return the jobs, in order, for which the pools' GPUs and the watts are enough.

    Only numbers count, not nodes. A starting job keeps as many nodes awake, in fractions, as its
    GPUs fill. A job for which too little is left does not block later jobs. Running jobs that may
    not be stopped come first.
    """
    pools, sleeping = round.cluster.topology.pools, may_sleep(round)
    left = [pool.gpus for pool in pools]
    draw = draw_of(round, sleeping=sleeping, until_end=False)
    node_w = waking_w(round, sleeping=sleeping)
    awake = set[int]()
    admitted, requested = [], Requested(round)
    pinned = [s for s in order if s.allocation is not None and not s.job.preemptible]
    firm = {state.job.id for state in pinned}
    for state in pinned + [s for s in order if s.job.id not in firm]:
        checkpoint()
        nodes_w, new = 0.0, set[int]()
        if state.allocation is not None:
            options = [state.allocation.option]
            if draw.limited:
                new = {node for node, _ in state.allocation.placement} - awake
                nodes_w = sum(node_w[node] for node in new)
        elif any(left):
            options = [clocks(state, option) for option in requested.options(state)]
        else:
            continue
        for option in options:
            pieces: list[Piece] = []
            if draw.limited:
                if state.allocation is None:
                    nodes_w = max(node_w) * option.gpus / pools[option.pool].gpus_per_node
                pieces = [(extra_w(round, option), draw.seconds(state, option)), (nodes_w, np.inf)]
            enough = left[option.pool] >= option.gpus and draw.fits(pieces)
            if enough or state.job.id in firm:
                left[option.pool] -= option.gpus
                if draw.limited:
                    draw.take(pieces)
                    awake |= new
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
    nodes: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Allocation]:
    """Return the allocations of the jobs that `admit` admits, and of jobs that fit next to them.

    Admitted running jobs stay where they are, and other admitted jobs start in order (`nodes` is as
    for `start_in_order`). A job that finds no nodes waits without blocking later jobs. `completed`
    uses the rest. As every round decides again, the energy of the window may be spent.
    """
    admitted = admit(round, order, clocks=clocks)
    stay = [s for s in admitted if s.allocation is not None]
    allocations = {s.job.id: s.allocation for s in stay if s.allocation is not None}
    room = Room(round, stay, clocks=clocks, most_free=most_free, until_end=False)
    start = partial(start_in_order, room, blocking=False, teardown_s=teardown_s, nodes=nodes)
    allocations |= start([s for s in admitted if s.allocation is None])
    return completed(room, order, allocations, start)


def completed(
    room: Room,
    order: Iterable[JobState],
    allocations: dict[str, Allocation],
    start: Callable[[Sequence[JobState]], dict[str, Allocation]],
) -> dict[str, Allocation]:
    """Return the allocations, with those of jobs that still fit next to them, in order.

    First, running jobs go on if no other job took their place, so that no job stops in vain. Then
    all jobs without an allocation `start` where they can.
    """
    left = [state for state in order if state.job.id not in allocations]
    held, kept = room.round.held, dict[str, Allocation]()
    for state in left:
        here = held.get(state.job.id)
        if here is not None and room.keep(state, here):
            kept[state.job.id] = here
    return allocations | kept | start([s for s in left if s.job.id not in kept])
