"""The choice of idle nodes that stay awake for future jobs, by the ski-rental rule.

An idle node costs power every second, and a sleeping node costs a wake-up later (rent or buy:
Karlin, Manasse, Rudolph and Sleator, *Competitive snoopy caching*, Algorithmica 1988). If a node
idles until this has cost as much as the wake-up, and goes to sleep at that time, it never costs
more than twice as much as with foresight. The price of a wake-up is the energy that the node draws
in the w seconds in which it cannot run jobs. If a sleeping node saves `saved` watts, the break-even
time is ``T = w (awake + wake) / saved``.

A policy that puts a price on watts may keep more nodes awake than pay for themselves. For these the
same time runs from the moment when they became too many (`standing`). Until it ends, their power is
spent in any case, and jobs may use them for only the extra power of their GPUs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.holdings import held_under
from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.watts import (
    capped,
    idle_w,
    left_w,
    may_sleep,
    wakes,
)
from ronda.instances.base import Floats
from ronda.instances.job import used_nodes
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round


class IdleNodes(PlanMemory, frozen=True):
    """The times in seconds since which awake nodes have had no job."""

    key: ClassVar[str] = "idle_nodes"

    since_s: dict[int, float] = {}


class SurplusNodes(PlanMemory, frozen=True):
    """The times in seconds since which awake nodes have not paid for themselves, per pool."""

    key: ClassVar[str] = "surplus_nodes"

    since_s: dict[str, list[float]] = {}


def break_even_s(round: Round) -> Floats:
    """Return the seconds for which each node idles before it sleeps, shape (N,)."""
    t = round.cluster.topology
    saved_w = t.awake_w - t.sleep_w
    cost_j = t.wake_s * (t.awake_w + t.wake_w)
    return np.where(saved_w > 0, cost_j / np.where(saved_w > 0, saved_w, 1.0), np.inf)


@dataclass(frozen=True, slots=True)
class Standing:
    """The awake nodes of each pool under a plan, of which some may not pay for themselves.

    ``awake`` (P,) counts all awake nodes. ``since`` maps each pool to the times since which nodes
    have not paid for themselves, and ``left_s`` is the time for which the last of these nodes still
    stands by, 0 if there is none.
    """

    awake: tuple[int, ...]
    since: dict[str, list[float]]
    left_s: float


def standing(round: Round, needed: Sequence[int], initial: Plan | None) -> Standing:
    """Return the nodes that stay awake if `needed` (P,) of them pay for themselves.

    The other nodes that are awake now stand by for the least break-even time of their pool, which
    starts when they became too many. The nodes that became too many last are needed again first.
    """
    t, now_s = round.cluster.topology, round.now_s
    there = t.node_gpus > 0
    limit_s = np.full(len(t.pools), np.inf)
    np.minimum.at(limit_s, t.node_pool[there], break_even_s(round)[there])
    there[list(round.asleep)] = False
    awake = np.bincount(t.node_pool[there], minlength=len(t.pools)).tolist()
    before = SurplusNodes.recall(initial).since_s
    counts, since, left_s = [], {}, 0.0
    for p, pool in enumerate(t.pools):
        more = max(0, awake[p] - needed[p])
        own = [*before.get(pool.name, ())][:more]
        own += [now_s] * (more - len(own))
        left = [float(limit_s[p]) - (now_s - when) for when in own]
        left_s = max(left_s, *left, 0.0)
        counts.append(needed[p] + sum(1 for each in left if each > 0))
        since[pool.name] = own
    return Standing(tuple(counts), since, left_s)


def stand_by(
    round: Round,
    plan: Plan,
    needed: Sequence[int],
    idle_since: Mapping[int, float],
    limit_s: Floats,
) -> tuple[int, ...] | None:
    """Return the nodes that sleep while some unused nodes stay awake or wake.

    First nodes wake until `needed` (P,) of each pool are awake. After that, nodes stay awake that
    have idled (`idle_since`) for less than their limit in `limit_s` (N,), most recently used first.
    Both happen only as far as the watts of the round and of racks allow.
    """
    if not plan.asleep:
        return plan.asleep
    t, racks = round.cluster.topology, _racks(round, plan)
    spare_w = spare_of(round, plan)
    asleep, now = set(plan.asleep), set(round.asleep)
    awake_w, waking_w = t.awake_w, t.waking_w
    awake = t.node_gpus > 0
    awake[list(asleep)] = False
    missing = needed - np.bincount(t.node_pool[awake], minlength=len(t.pools))

    def take(node: int) -> bool:
        """Wake a node, or keep it awake, if there is power for it."""
        nonlocal spare_w
        wake_w = float(waking_w[node]) * (node in now)
        more_w = float(awake_w[node]) + (wake_w - float(t.sleep_w[node]))
        if more_w > spare_w or (racks and not racks.allowed(1 << node, 0.0)):
            return False
        spare_w -= more_w
        if racks:
            racks.add(node, 0.0)
        asleep.remove(node)
        return True

    for node in sorted(asleep, key=lambda n: (n in now, n)) if (missing > 0).any() else ():
        pool = int(t.node_pool[node])
        if missing[pool] > 0 and take(node):
            missing[pool] -= 1
    idle = {n: round.now_s - idle_since.get(n, round.now_s) for n in asleep - now}
    for node in sorted(idle, key=lambda n: (idle[n], n)):
        if idle[node] < limit_s[node]:
            take(node)
    return tuple(sorted(asleep))


def _racks(round: Round, plan: Plan) -> RackPower | None:
    """Return the power that a plan leaves of the caps of racks, or None without caps."""
    if not capped(round.cluster):
        return None
    racks = RackPower(round, plan.asleep or ())
    for allocation in plan.allocations.values():
        racks.take(allocation.option, allocation.placement)
    return racks


def spare_of(round: Round, plan: Plan) -> float:
    """Return the watts that a plan leaves of the round's limits, infinite without limits."""
    held = held_under(round, plan)
    wake_w, wake_s = wakes(round, plan.asleep)
    watts = np.append(held.watts, wake_w)
    seconds = np.append(held.seconds_left(round), wake_s)
    return left_w(round, idle_w(round, plan.asleep), watts, seconds)


def rest(round: Round, plan: Plan, initial: Plan | None) -> Plan:
    """Return the plan with unused nodes asleep, except for nodes that became idle recently.

    Nodes sleep only where power or energy is limited and sleep saves some. They wake if the plan
    places a job on them.
    """
    if not may_sleep(round):
        return woken(round, plan)
    resting, since = replace(plan, asleep=unused(round, plan)), IdleNodes.recall(initial).since_s
    none = [0] * len(round.cluster.topology.pools)
    asleep = stand_by(round, resting, none, since, break_even_s(round))
    used, now_s = used_nodes(plan.allocations.values()), round.now_s
    idle = sorted(set(range(len(round.cluster.topology.node_pool))) - used - set(asleep or ()))
    still = IdleNodes({node: since.get(node, now_s) for node in idle})
    return replace(plan, asleep=asleep, memory=plan.memory | still.noted())


def woken(round: Round, plan: Plan) -> Plan:
    """Return the plan with its used nodes awake, including nodes that sleep now."""
    used = used_nodes(plan.allocations.values()).intersection(round.asleep)
    if not used:
        return plan
    asleep = round.asleep if plan.asleep is None else plan.asleep
    return replace(plan, asleep=tuple(node for node in asleep if node not in used))


def unused(round: Round, plan: Plan) -> tuple[int, ...]:
    """Return the nodes without a job that sleep now, or would save watts asleep."""
    topology = round.cluster.topology
    used = used_nodes(plan.allocations.values())
    able = {*np.flatnonzero(topology.awake_w > topology.sleep_w).tolist(), *round.asleep}
    return tuple(sorted(able - used))


def used_by_pool(round: Round, used: Collection[int]) -> list[tuple[int, int, str]]:
    """Return the number of nodes with jobs, the number of nodes and the name of each pool."""
    topology = round.cluster.topology
    there = topology.node_gpus > 0
    pools = len(topology.pools)
    busy = np.bincount(topology.node_pool[list(used)], minlength=pools)
    total = np.bincount(topology.node_pool[there], minlength=pools)
    names = [pool.name for pool in topology.pools]
    return list(zip(busy.tolist(), total.tolist(), names, strict=True))


def with_awake(round: Round, plan: Plan, awake: Sequence[int]) -> Plan:
    """Return the plan with `awake` nodes of each pool awake, including nodes with jobs.

    Nodes without jobs that are awake now stay awake before others wake. Power limits are kept.
    """
    resting = replace(plan, asleep=unused(round, plan))
    never = np.zeros(len(round.cluster.topology.node_gpus))
    return replace(plan, asleep=stand_by(round, resting, awake, {}, never))
