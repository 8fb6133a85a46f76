"""Wake or wait: the choice of awake nodes by one sum of node costs and the queue's waiting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.options.application import Requested, requested_options
from ronda.formulations.sleeping import used_by_pool, with_awake
from ronda.formulations.watts import may_sleep
from ronda.instances.base import Floats, Record
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import Allocation, JobState, used_nodes
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import ends_of, future_of
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.policies.rigid.queues import queued
from ronda.solvers.registry import composed
from ronda.systems.helios.forecasts import AHEAD, daily_paths
from ronda.systems.helios.lot_sizing import costs, weights, whole
from ronda.systems.helios.stepwise import BASES, SLEEPS_BESIDE, Stepwise


class WantedNodes(Record, frozen=True):
    """The number of nodes of a pool that had least cost in each of the last steps."""

    first: int
    wants: dict[int, int] = {}


class WantedBefore(PlanMemory, frozen=True):
    """The numbers of nodes that had least cost in previous steps, keyed by pool."""

    key: ClassVar[str] = "wanted_nodes"

    pools: dict[str, WantedNodes] = {}


@dataclass(frozen=True, kw_only=True)
class LotSleep(Stepwise):
    """Let lot sizing choose how many nodes are awake beside the jobs that the base policy decides.

    The number of awake nodes has the least cost of awake nodes and later wake-ups by two-stage lot
    sizing (`ronda.systems.helios.lot_sizing`) over quantile paths of the peak, which come from the
    hour of the day in an earlier series. Nodes go to sleep once sleep has cost less for `keep`
    steps. A job for which the base policy finds no room on awake nodes wakes the nodes that it
    needs, and waits for them.

    Parameters
    ----------
    price
        Cost of a wake-up, in nodes awake for a step, as for ``ronda sleep --policy lot-sizing``.
    keep
        Number of steps that a node stays awake at least and for which its sleep must pay off.
    history
        An earlier demand series, as for `CesSleep`.
    step_s
        Length of a step in seconds, as for `CesSleep`.
    """

    price: Annotated[float, msgspec.Meta(ge=0)] = 100.0
    keep: Annotated[int, msgspec.Meta(ge=1, le=144)] = 9

    def let_sleep(self, round: Round, plan: Plan, initial: Plan | None) -> Plan:
        """Return the plan with the number of awake unused nodes that costs least."""
        node_pool = round.cluster.topology.node_pool
        before, used = WantedBefore.recall(initial).pools, used_nodes(plan.allocations.values())
        step, awake, memory = int(round.now_s // self.step_s), list[int](), dict[str, WantedNodes]()
        off = {*_asleep(round)} & {*(round.asleep if plan.asleep is None else plan.asleep)}
        woken = {*_asleep(round)} - off
        for index, (busy, total, pool) in enumerate(used_by_pool(round, used)):
            table = _cost(self.history, total, self.price)
            least = busy + int(table[step % len(table)].argmin())
            known = before.get(pool, WantedNodes(step))
            wants = {k: n for k, n in known.wants.items() if k > step - self.keep}
            wants[step] = max(least, wants.get(step, 0))
            now = total - sum(int(node_pool[node]) == index for node in off)
            if any(int(node_pool[node]) == index for node in woken):
                now = max(now, least)
            elif step >= known.first + self.keep - 1:
                now = max(busy, min(now, max(wants.values())))
            awake.append(min(total, now))
            memory[pool] = WantedNodes(known.first, wants)
        plan = replace(plan, memory=plan.memory | WantedBefore(memory).noted())
        return with_awake(round, plan, awake)


__getattr__ = composed(
    BASES, LotSleep, "lot-sizing", "with nodes asleep by lot sizing", SLEEPS_BESIDE
)


@dataclass(frozen=True, kw_only=True)
class WakeOrWait(LotSleep):
    """Start jobs in the order of `qssf` and wake nodes if that costs less than letting jobs wait.

    If w nodes of a pool wake now, the cost in node-seconds is::

        price [w > 0] + w keep + delay (seconds that the jobs of the queue wait) + C(awake)

    The queue's waiting follows from the expected ends of running jobs. Each job in turn gets the
    earliest start that does not delay the jobs before it. A job that would go on waiting is
    expected to wait at least as long as it has waited so far. C, and the nodes that go to sleep,
    are those of `LotSleep`.

    Parameters
    ----------
    delay
        Cost of a job's waiting, in nodes awake for the same time.
    """

    delay: Annotated[float, msgspec.Meta(ge=0)] = 10.0

    name: ClassVar[str] = "wake-or-wait"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start the jobs that fit on awake nodes; wake nodes for the others or let them wait."""
        order = queued(round, "qssf")
        limited = may_sleep(round)  # in that case sleep keeps a limit, and jobs wake their nodes
        room = Room(round, round.running, sleeping=limited, wakes=limited)
        started = start_in_order(room, order)
        late = [state for state in order if state.job.id not in started]
        woken = set[int]()
        if late and round.asleep and not limited:
            woken = self._woken(room, order, started, late)
        asleep = tuple(node for node in round.asleep if node not in woken)
        if woken:
            room = Room(replace(round, asleep=asleep), round.running, sleeping=False, wakes=False)
            for state in order:
                if state.job.id in started:
                    room.take(state, started[state.job.id])
            started |= start_in_order(room, late)
        plan = Plan(policy=self.name, allocations=round.held | started, asleep=asleep)
        return self.let_sleep(round, plan, initial)

    def _woken(
        self,
        room: Room,
        order: Sequence[JobState],
        started: Mapping[str, Allocation],
        late: Sequence[JobState],
    ) -> set[int]:
        """Return the nodes to wake for jobs that found no room on awake nodes."""
        queue = Waiting(room, [(s, started[s.job.id]) for s in order if s.job.id in started])
        topology = room.round.cluster.topology
        woken = set[int]()
        for pool, jobs in queue.by_pool(late).items():
            sleepers = [n for n in _asleep(room.round) if int(topology.node_pool[n]) == pool]
            gpus = topology.pools[pool].gpus_per_node
            most = min(len(sleepers), sum(ceil(s.job.gpus / gpus) for s in jobs))
            best_s, best = inf, 0
            for count in widening(most):
                checkpoint()
                lost_s = queue.lost_s(pool, jobs, sleepers[:count], AHEAD * self.step_s)
                sum_s = self.delay * lost_s + count * self.keep * self.step_s
                sum_s += self.price * self.step_s * (count > 0)
                if sum_s < best_s:
                    best_s, best = sum_s, count
            woken.update(sleepers[:best])
        return woken


class Waiting:
    """The waiting of jobs that found no room among the running and the just `started` jobs."""

    def __init__(self, room: Room, started: Sequence[tuple[JobState, Allocation]]) -> None:
        self._room, self._started = room, started
        self._requested = Requested(room.round)

    def by_pool(self, jobs: Sequence[JobState]) -> dict[int, list[JobState]]:
        """Return the first jobs of each pool; each job is assigned to its preferred pool."""
        found: dict[int, list[JobState]] = {}
        for state in jobs:
            for option in requested_options(self._room.round, state)[:1]:
                found.setdefault(option.pool, []).append(state)
        # Only the first 20 jobs of a queue are planned ahead; more would take too long.
        return {pool: states[:20] for pool, states in found.items()}

    def lost_s(
        self, pool: int, jobs: Sequence[JobState], woken: Sequence[int], most_s: float
    ) -> float:
        """Return the total seconds that jobs wait, each at most `most_s`, if nodes wake now.

        Each job gets the earliest start that does not delay the jobs before it. A job that starts
        on no waking node is expected to wait at least as long as it has waited so far, because the
        ends of jobs are only estimates.
        """
        now_s = self._room.round.now_s
        wake_s = max((float(self._room.round.cluster.topology.wake_s[n]) for n in woken), default=0)
        ends = ends_of(self._room.round, self._started, self._requested)
        future = future_of(self._room, pool, ends, woken)
        total_s = 0.0
        for state in jobs:
            lasts_s = self._requested.remaining_s(state)
            found = future.earliest(state.job.gpus, lasts_s)
            waits_s = most_s
            if found is not None:
                waits_s = found[0]
                future.take(waits_s, lasts_s, found[1])
            if waits_s > wake_s:
                waits_s = max(waits_s, now_s - state.job.submit_s)
            total_s += min(waits_s, most_s)
        return total_s


def widening(most: int) -> Iterator[int]:
    """Yield the numbers of nodes to try: 0, 1, 2, 3, 4, 6, 8, 12, ... and `most`."""
    yield 0
    count, step = 1, 1
    while count < most:
        yield count
        if count >= 4 * step:
            step *= 2
        count += step
    if most:
        yield most


def _asleep(round: Round) -> list[int]:
    return [node for node in round.asleep if round.cluster.topology.node_gpus[node] > 0]


@lru_cache(maxsize=8)
def _cost(history: str, nodes: int, price: float) -> Floats:
    """Return the cost of 0, 1, ... awake idle nodes from each step of the day, shape (D, X)."""
    paths, levels = daily_paths(history, nodes)
    return costs(whole(paths), weights(levels), price)
