"""Which idle nodes stay awake for jobs to come: the ski-rental rule on waking.

Idling costs power by the second, sleeping costs a wake-up later (rent or buy: Karlin, Manasse,
Rudolph and Sleator, *Competitive snoopy caching*, Algorithmica 1988). A node that idles until
idling has cost as much as the wake-up, and sleeps then, never costs more than twice what one with
foresight does. The price of a wake-up is what the node draws for the w seconds in which it cannot
run jobs. With `saved` the watts that it saves asleep, the break-even time is
``T = w (awake + wake) / saved``.

A policy that puts a price on watts may have more nodes awake than pay for themselves: for these the
same time runs from when they came to be too many (`standing`). Until then their power is spent
anyway, and jobs may use them for what their GPUs draw besides.
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
    extra_gpu_w,
    idle_w,
    left_w,
    may_sleep,
    wakes,
)
from ronda.instances.arrays import Floats
from ronda.instances.job import used_nodes
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round


class IdleNodes(PlanMemory, frozen=True):
    """Since when nodes that are awake have had no job, in seconds."""

    key: ClassVar[str] = "idle_nodes"

    since_s: dict[int, float] = {}


class SurplusNodes(PlanMemory, frozen=True):
    """Since when nodes are awake that do not pay for themselves, in seconds by pool."""

    key: ClassVar[str] = "surplus_nodes"

    since_s: dict[str, list[float]] = {}


def break_even_s(round: Round) -> Floats:
    """Return (N,) for how long each node idles before it sleeps."""
    t = round.cluster.topology
    saved_w = t.awake_w - t.sleep_w
    cost_j = t.wake_s * (t.awake_w + t.wake_w)
    return np.where(saved_w > 0, cost_j / np.where(saved_w > 0, saved_w, 1.0), np.inf)


@dataclass(frozen=True, slots=True)
class Standing:
    """How many nodes of each pool are awake under a plan, more than pay for themselves.

    ``awake`` (P,) counts those that do as well; ``since`` says, by pool, since when the others do
    not, and ``left_s`` for how much longer the last of them stands by: 0 if there is none.
    """

    awake: tuple[int, ...]
    since: dict[str, list[float]]
    left_s: float


def standing(round: Round, needed: Sequence[int], initial: Plan | None) -> Standing:
    """Return how many nodes stay awake if `needed` (P,) pay for themselves.

    Of the nodes that are awake now the others stand by for the least break-even time of their pool
    from when they came to be too many. Those that came last are needed again first.
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
    """Return the nodes that sleep if some that no job uses stay, or become, awake.

    First nodes wake until `needed` (P,) of each pool are awake; then those stay awake that have
    idled (`idle_since`) for less than their limit (N,), most recently used first; all only as far
    as the watts of the round, and of racks, go.
    """
    if not plan.asleep:
        return plan.asleep
    t, racks = round.cluster.topology, _racks(round, plan)
    spare_w = spare_of(round, plan)
    asleep, now = set(plan.asleep), set(round.asleep)
    awake_w, waking_w = t.awake_w, t.waking_w
    awake = np.ones(len(t.node_pool), dtype=bool)
    awake[list(asleep)] = False
    missing = needed - np.bincount(t.node_pool[awake], minlength=len(t.pools))

    def take(node: int) -> bool:
        """Let a node be awake if there is power for it."""
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
    """Return what racks with a power cap have left under a plan; None without caps."""
    if not capped(round.cluster):
        return None
    racks = RackPower(round, plan.asleep or ())
    for allocation in plan.allocations.values():
        each_w = extra_gpu_w(round, allocation.option)
        for node, gpus in allocation.placement:
            racks.add(node, each_w * gpus)
    return racks


def spare_of(round: Round, plan: Plan) -> float:
    """Return the watts that a plan leaves of the round's limits; infinite without limits."""
    held = held_under(round, plan)
    wake_w, wake_s = wakes(round, plan.asleep)
    watts = np.append(held.watts, wake_w)
    seconds = np.append(held.seconds_left(round.now_s), wake_s)
    return left_w(round, idle_w(round, plan.asleep), watts, seconds)


def rest(round: Round, plan: Plan, initial: Plan | None) -> Plan:
    """Return the plan with the nodes asleep that no job uses, but those that idle for not long yet.

    Nodes sleep only where power or energy is limited, and sleeping saves some; they wake wherever
    a job is placed on them.
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
    """Return the plan with the nodes awake that sleep now, and have a job under it."""
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
    """Return, for each pool, how many nodes have a job, how many there are, and its name."""
    topology = round.cluster.topology
    there = topology.node_gpus > 0
    pools = len(topology.pools)
    busy = np.bincount(topology.node_pool[list(used)], minlength=pools)
    total = np.bincount(topology.node_pool[there], minlength=pools)
    names = [pool.name for pool in topology.pools]
    return list(zip(busy.tolist(), total.tolist(), names, strict=True))


def with_awake(round: Round, plan: Plan, awake: Sequence[int]) -> Plan:
    """Return the plan with `awake` nodes of each pool awake, those with jobs and others.

    Of the others those that are awake now stay so first. Power limits are held.
    """
    resting = replace(plan, asleep=unused(round, plan))
    never = np.zeros(len(round.cluster.topology.node_gpus))
    return replace(plan, asleep=stand_by(round, resting, awake, {}, never))
