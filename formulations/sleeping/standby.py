"""Which idle nodes stay awake for jobs to come: the ski-rental rule on waking.

Whether to keep a node awake that no job uses is the question whether to rent or to buy skis
(Karlin, Manasse, Rudolph and Sleator, *Competitive snoopy caching*, Algorithmica 1988): idling
costs power by the second, sleeping costs a wake-up later. A node that idles for just as long as it
takes for idling to cost as much as the wake-up, and sleeps then, never costs more than twice what
one with foresight does. The price of a wake-up is ours:

* what the node draws for the w seconds in which it cannot run jobs, ``(awake + wake) w``;
* what its G GPUs do not earn meanwhile, ``G v w`` with v the mean value of a GPU in use,

so at a price p for a watt the break-even time is ``T = w ((awake + wake) + G v / p) / saved``, with
`saved` the watts that a node saves asleep. With a price on energy that is high T is short.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ronda.formulations.models.power import extra_gpu_w, extra_w
from ronda.formulations.placement.moves import idle_w
from ronda.formulations.watts.racks import RackPower, capped
from ronda.instances.arrays import Floats
from ronda.instances.plan import Plan
from ronda.instances.round import Round


def break_even_s(round: Round, gpu_per_watt: float) -> Floats:
    """Return (N,) for how long each node idles before it sleeps.

    Parameters
    ----------
    round
        The round.
    gpu_per_watt
        What a GPU in use earns, over the price of a watt: watts.
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

    First the nodes that the plan needs wake; then those stay awake that have idled for less than
    their limit, most recently used first; all only as far as the watts of the round, and of racks,
    go.

    Parameters
    ----------
    round, plan
        The round, and the plan with its nodes asleep.
    needed
        (P,) how many nodes of each pool must be awake.
    idle_since
        Since when nodes that are awake have had no job.
    limit_s
        (N,) for how long each node idles before it sleeps.
    """
    if not plan.asleep:
        return plan.asleep
    t, racks = round.cluster.topology, _racks(round, plan)
    spare_w = np.inf if round.watts is None else round.watts - drawn_w(round, plan)
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


def drawn_w(round: Round, plan: Plan) -> float:
    """Return the watts that the cluster draws under a plan, when its jobs progress."""
    extra = sum(extra_w(round, allocation.option) for allocation in plan.allocations.values())
    return idle_w(round, plan.asleep) + extra
