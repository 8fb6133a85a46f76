"""Wake or wait: the number of nodes awake, with the waiting of the queue in the same sum."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.options.application import Requested, requested_options
from ronda.formulations.sleeping import used_by_pool, with_awake
from ronda.formulations.watts import may_sleep
from ronda.instances.arrays import Floats
from ronda.instances.base import Record
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import future_of
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.policies.rigid.queues import queued
from ronda.systems.helios.forecasts import HOURS_AHEAD, STEP_S, daily_paths, past
from ronda.systems.helios.lot_sizing import costs, weights, whole


class WantedNodes(Record, frozen=True):
    """The nodes of a pool that were wanted in the last steps, since the first."""

    first: int
    wants: dict[int, int] = {}


class WantedBefore(PlanMemory, frozen=True):
    """The nodes that were wanted in the steps before, by pool."""

    key: ClassVar[str] = "wanted_nodes"

    pools: dict[str, WantedNodes] = {}


@dataclass(frozen=True)
class WakeOrWait(TimelyPolicy):
    """Start jobs in the order of `qssf`; wake nodes where that costs less than the queue waits.

    In node-seconds, for w nodes of a pool that wake now, the sum is::

        price [w > 0] + w keep + delay (seconds that the jobs of the queue wait) + C(awake)

    The queue's waiting follows from when running jobs are believed to end: each job in its turn
    gets the earliest start that leaves those before it theirs. A job that would go on waiting is
    expected to wait at least as long as it has. C is the two-stage lot sizing of
    `ronda.systems.helios.lot_sizing` over quantile paths of the peak, by the hour of the
    day in an earlier series: nodes awake for a step, and later wake-ups. Nodes go to sleep once
    that has cost less for `keep` steps of ten minutes.

    Parameters
    ----------
    price
        The cost of a wake-up, in nodes awake for ten minutes, as for ``ronda sleep --policy
        lot-sizing``.
    delay
        The cost of a job's waiting, in nodes awake for as long.
    keep
        Steps for which a node stays awake at least, and for which its sleep must pay.
    history
        As for `ces-queue`.
    """

    price: Annotated[float, msgspec.Meta(ge=0)] = 100.0
    delay: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    keep: Annotated[int, msgspec.Meta(ge=1, le=144)] = 9
    history: str = ""

    name: ClassVar[str] = "wake-or-wait"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def __post_init__(self) -> None:
        """Refuse a history from which nothing can be learnt."""
        past(self.history)

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start what fits on awake nodes; wake nodes for others, or let them wait."""
        order = queued(round, "qssf")
        limited = may_sleep(round)  # then sleep keeps a limit, and jobs wake what they need
        room = Room(round, round.running, sleeping=limited, wakes=limited)
        started = start_in_order(room, order)
        late = [state for state in order if state.job.id not in started]
        woken = set[int]()
        if late and round.asleep and not limited:
            woken = self._woken(room, order, started, late)
        if woken:
            asleep = tuple(node for node in round.asleep if node not in woken)
            room = Room(replace(round, asleep=asleep), round.running, sleeping=False, wakes=False)
            for state in order:
                if state.job.id in started:
                    room.take(state, started[state.job.id])
            started |= start_in_order(room, late)
        plan = Plan(policy=self.name, allocations=round.held | started)
        return self._let_sleep(round, plan, room.used, woken, initial)

    def _woken(
        self,
        room: Room,
        order: Sequence[JobState],
        started: Mapping[str, Allocation],
        late: Sequence[JobState],
    ) -> set[int]:
        """Return the nodes to wake for jobs that found no room on those that are awake."""
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
                lost_s = queue.lost_s(pool, jobs, sleepers[:count], HOURS_AHEAD * 3600.0)
                sum_s = self.delay * lost_s + count * self.keep * STEP_S
                sum_s += self.price * STEP_S * (count > 0)
                if sum_s < best_s:
                    best_s, best = sum_s, count
            woken.update(sleepers[:best])
        return woken

    def _let_sleep(
        self,
        round: Round,
        plan: Plan,
        used: Collection[int],
        woken: Collection[int],
        initial: Plan | None,
    ) -> Plan:
        """Return the plan with the nodes awake that cost least beyond those with a job."""
        node_pool = round.cluster.topology.node_pool
        before = WantedBefore.recall(initial).pools
        step, awake, memory = int(round.now_s // STEP_S), list[int](), dict[str, WantedNodes]()
        off = {*_asleep(round)} - {*woken}
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
        plan = replace(plan, memory=WantedBefore(memory).noted())
        return with_awake(round, plan, awake)


class Waiting:
    """The waiting of jobs that found no room, beside running jobs and those just `started`."""

    def __init__(self, room: Room, started: Sequence[tuple[JobState, Allocation]]) -> None:
        self._room, self._started = room, started
        self._requested = Requested(room.round)

    def by_pool(self, jobs: Sequence[JobState]) -> dict[int, list[JobState]]:
        """Return the first jobs of each pool; each job counts for the pool that it prefers."""
        found: dict[int, list[JobState]] = {}
        for state in jobs:
            for option in requested_options(self._room.round, state)[:1]:
                found.setdefault(option.pool, []).append(state)
        # More of a queue than its first 20 jobs is not foreseen: it would take too long.
        return {pool: states[:20] for pool, states in found.items()}

    def lost_s(
        self, pool: int, jobs: Sequence[JobState], woken: Sequence[int], most_s: float
    ) -> float:
        """Return the seconds that jobs wait in all, each at most `most_s`, if nodes wake now.

        Each job gets the earliest start that leaves those before it theirs. A job that starts on no
        waking node waits at least as long again as it has: ends are believed, not known.
        """
        now_s = self._room.round.now_s
        wake_s = max((float(self._room.round.cluster.topology.wake_s[n]) for n in woken), default=0)
        future = future_of(self._room, pool, self._started, self._requested, woken)
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
    """Return 0, 1, 2, 3, 4, 6, 8, 12, ... and `most`, the numbers of nodes to try."""
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
    """Return (D, X) the cost of 0, 1, ... idle nodes awake from each step of the day on."""
    paths, levels = daily_paths(history, nodes)
    return costs(whole(paths), weights(levels), price)
