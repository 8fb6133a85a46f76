"""What must hold for power caps and energy budgets: shapes, and room for what idles anyway."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ronda.instances.budget import Budget, StepSeries
from ronda.instances.cluster import Cluster
from ronda.instances.instance import Round
from ronda.instances.problem import Problem
from ronda.instances.rules_cluster import strictly_ascending

_SLACK = 1e-9  # relative: a limit that a program set to the idle power itself must pass


def budget_problems(budget: Budget, cluster: Cluster) -> Iterator[Problem]:
    """Yield what is inconsistent or impossible in the limits of a (consistent) cluster."""
    idle_w = cluster.topology.idle_w
    if budget.power_cap_w is not None:
        yield from _series(budget.power_cap_w, "budget.power_cap_w", idle_w)
    energy = budget.energy
    if energy is not None and _below(energy.sustained_w, idle_w):
        found = f"{energy.joules:g} J for {energy.horizon_s:g} s"
        expected = f"at least {idle_w * energy.horizon_s:g} J: idle nodes draw {idle_w:g} W"
        yield Problem("budget.energy.joules", found, expected)
    yield from _rack_caps(cluster, _idle_by_node(cluster))


def limit_problems(round: Round) -> Iterator[Problem]:
    """Yield the limits of a round that idle and sleeping nodes alone exceed."""
    draw = _idle_by_node(round.cluster)
    asleep = [n for n in round.asleep if n < len(draw)]
    draw[asleep] = round.cluster.topology.sleep_w[asleep]
    least = float(draw.sum())
    for field in ("power_cap_w", "sustained_w"):
        limit = getattr(round, field)
        if limit is not None and _below(limit, least):
            yield Problem(field, f"{limit:g} W", _at_least(least))
    if round.energy_j is not None and _below(round.energy_j, least * round.window_s):
        found = f"{round.energy_j:g} J for the next {round.window_s:g} s"
        expected = f"at least {least * round.window_s:g} J: idle nodes draw {least:g} W"
        yield Problem("energy_j", found, expected)
    yield from _rack_caps(round.cluster, draw)


def _series(series: StepSeries, place: str, least_w: float) -> Iterator[Problem]:
    """Check that times ascend from 0, and that each has a value, which is enough."""
    if len(series.values) != len(series.times_s):
        found = f"{len(series.values)} values for {len(series.times_s)} times"
        yield Problem(f"{place}.values", found, "a value for each time")
    if not strictly_ascending(series.times_s):
        yield Problem(f"{place}.times_s", "times that do not ascend", "ascending times from 0")
    elif series.times_s[0] != 0:
        yield Problem(f"{place}.times_s[0]", f"{series.times_s[0]:g}", "0")
    for k, value in enumerate(series.values):
        if _below(value, least_w):
            yield Problem(f"{place}.values[{k}]", f"{value:g} W", _at_least(least_w))


def _rack_caps(cluster: Cluster, draw_w: NDArray[np.float64]) -> Iterator[Problem]:
    """Check that no rack's cap is below what the nodes under it draw anyway."""
    topology = cluster.topology
    parent = {r.name: r.parent for r in cluster.racks}
    below = dict.fromkeys(parent, 0.0)
    for k, name in enumerate(topology.racks):
        own = float(draw_w[topology.node_rack == k].sum())
        at: str | None = name
        while at:
            below[at] += own
            at = parent[at]
    for k, rack in enumerate(cluster.racks):
        if rack.power_cap_w is not None and _below(rack.power_cap_w, below[rack.name]):
            found = f"{rack.power_cap_w:g} W"
            yield Problem(f"cluster.racks[{k}].power_cap_w", found, _at_least(below[rack.name]))


def _idle_by_node(cluster: Cluster) -> NDArray[np.float64]:
    """Return the watts of each node awake with all its GPUs idle."""
    topology = cluster.topology
    return topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w


def _below(limit: float, least: float) -> bool:
    return limit < least * (1 - _SLACK)


def _at_least(least_w: float) -> str:
    return f"at least {least_w:g} W, which idle nodes draw anyway"
