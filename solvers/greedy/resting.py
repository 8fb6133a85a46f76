"""Powering off: nodes without a job sleep once idling has cost as much as waking them would.

Every policy that leaves nodes to the driver's care ends its decision here. Nodes sleep only where
power or energy is limited, and sleeping saves some (`ronda.formulations.watts.may_sleep`).
"""

from collections.abc import Collection

import numpy as np
from msgspec.structs import replace

from ronda.formulations.sleeping.standby import break_even_s, stand_by
from ronda.formulations.watts import may_sleep
from ronda.instances.plan import Plan
from ronda.instances.round import Round

IDLE = "idle_since"
"""Key, in a plan's details: since when nodes that are awake have had no job."""


def rest(round: Round, plan: Plan, initial: Plan | None) -> Plan:
    """Return the plan with the nodes asleep that no job uses, but those that idle for not long yet.

    What GPUs of a waking node do not earn is not known here, so waking costs what it draws
    (`ronda.formulations.sleeping.standby`).
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
