"""Which idle nodes stay awake for jobs to come: the ski-rental rule on waking.

Idling costs power by the second, sleeping costs a wake-up later (rent or buy: Karlin, Manasse,
Rudolph and Sleator, *Competitive snoopy caching*, Algorithmica 1988). A node that idles until
idling has cost as much as the wake-up, and sleeps then, never costs more than twice what one with
foresight does. The price of a wake-up is ours: what the node draws for the w seconds in which it
cannot run jobs, ``(awake + wake) w``, and what its G GPUs do not earn meanwhile, ``G v w`` with v
the mean value of a GPU in use. At a price p for a watt, with `saved` the watts that a node saves
asleep, the break-even time is ``T = w ((awake + wake) + G v / p) / saved``.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from ronda.formulations.energy import left_w, seconds_left
from ronda.formulations.models.power import extra_gpu_w, extra_w
from ronda.formulations.watts import RackPower, capped, idle_w, may_sleep
from ronda.instances.arrays import Floats
from ronda.instances.plan import Plan
from ronda.instances.round import Round

IDLE = "idle_since"
"""Key, in a plan's details: since when nodes that are awake have had no job."""


def break_even_s(round: Round, gpu_per_watt: float) -> Floats:
    """Return (N,) for how long each node idles before it sleeps.

    `gpu_per_watt` is what a GPU in use earns, over the price of a watt: watts.
    """
    t = round.cluster.topology
    saved_w = t.awake_w - t.sleep_w
    cost_j = t.wake_s * (t.awake_w + t.wake_w + t.node_gpus * gpu_per_watt)
    return np.where(saved_w > 0, cost_j / np.where(saved_w > 0, saved_w, 1.0), np.inf)


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
    awake_w, waking_w, missing = t.awake_w, t.waking_w, list(needed)
    for node in set(range(len(t.node_pool))) - asleep:
        missing[int(t.node_pool[node])] -= 1

    def take(node: int) -> bool:
        """Let a node be awake if there is power for it."""
        nonlocal spare_w
        wake_w = float(waking_w[node]) * (node in now)
        more_w = float(awake_w[node]) + (wake_w - float(t.sleep_w[node]))
        if more_w > spare_w or (racks and not racks.allowed(1 << node, wake_w)):
            return False
        spare_w -= more_w
        if racks:
            racks.add(node, wake_w)
        asleep.remove(node)
        return True

    for node in sorted(asleep, key=lambda n: (n in now, n)):
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
    racks = RackPower(round.cluster, plan.asleep or ())
    for allocation in plan.allocations.values():
        each_w = extra_gpu_w(round, allocation.option)
        for node, gpus in allocation.placement:
            racks.add(node, each_w * gpus)
    return racks


def spare_of(round: Round, plan: Plan) -> float:
    """Return the watts that a plan leaves of the round's limits; infinite without limits."""
    states = {state.job.id: state for state in round.jobs}
    options = {job: allocation.option for job, allocation in plan.allocations.items()}
    watts = np.array([extra_w(round, option) for option in options.values()])
    seconds = np.array([seconds_left(round, states[job], o) for job, o in options.items()])
    return left_w(round, idle_w(round, plan.asleep), watts, seconds)


def rest(round: Round, plan: Plan, initial: Plan | None) -> Plan:
    """Return the plan with the nodes asleep that no job uses, but those that idle for not long yet.

    Nodes sleep only where power or energy is limited, and sleeping saves some. What GPUs of a
    waking node do not earn is not known here, so waking costs what it draws.
    """
    if not may_sleep(round):
        return plan
    topology = round.cluster.topology
    used = {node for held in plan.allocations.values() for node, _ in held.placement}
    saves = topology.awake_w > topology.sleep_w
    able = {*np.flatnonzero(saves).tolist(), *round.asleep}
    unused = tuple(sorted(able - used))
    resting, since = replace(plan, asleep=unused), idle_since(initial)
    none = [0] * len(topology.pools)
    asleep = stand_by(round, resting, none, since, break_even_s(round, 0.0))
    idle = still_idle(round, plan, asleep or (), initial)
    return replace(plan, asleep=asleep, details=plan.details | {IDLE: idle})


def idle_since(initial: Plan | None) -> dict[int, float]:
    """Return since when nodes were idle under the previous plan."""
    before = {} if initial is None else initial.details.get(IDLE, {})
    return {int(node): float(when) for node, when in before.items()}


def still_idle(
    round: Round, plan: Plan, asleep: Collection[int], initial: Plan | None
) -> dict[str, float]:
    """Return since when nodes idle that are awake without a job, for a plan's details."""
    since = idle_since(initial)
    used = {node for held in plan.allocations.values() for node, _ in held.placement}
    idle = set(range(len(round.cluster.topology.node_pool))) - used - set(asleep)
    return {str(node): since.get(node, round.now_s) for node in sorted(idle)}
