"""What the options of a round may use together: GPUs of each pool, and watts."""

from dataclasses import dataclass

import numpy as np

from ronda.formulations.allocation.case import case_of, charged_w
from ronda.formulations.allocation.rows import gpus
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import base_w, may_sleep, rack_caps
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Cluster
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Limits:
    """Capacities, and what each option takes of them.

    A set of options is within the limits if ``demand`` (R, K) summed over it is at most
    ``capacity`` (R,), where the sums for watts are increased by ``node_w[p][g]`` for each pool p of
    which the set uses g GPUs: the watts, beyond their sleep, of the nodes that these keep awake;
    ``node_w`` is empty if no node may sleep. ``names`` are ``gpus[POOL]`` of every pool, then
    ``watts`` and ``energy``, above those of the cluster without jobs, if they are limited: at
    once, and on average over the energy window.
    """

    names: tuple[str, ...]
    capacity: Floats
    demand: Floats
    node_w: tuple[Floats, ...] = ()


def limits(round: Round, table: OptionTable) -> Limits:
    """Return the limits of a round.

    An option adds ``power_w - gpus * idle_w`` watts to those of its GPUs idle. Nodes that no job
    needs sleep if that saves power that is limited; otherwise all nodes are awake. The jobs are
    taken to be packed into as few nodes as their GPUs need, which sizes that divide each other
    always allow.
    """
    rows = list(gpus(case_of(round, table, np.arange(len(table)))))
    names, demand = [row.name for row in rows], [row.use for row in rows]
    capacity = [float(pool.gpus) for pool in table.pools]
    watts = [w for w in (round.power_cap_w, capped_w(round.cluster)) if w is not None]
    named = [("watts", w, table.extra_w) for w in sorted(watts)[:1]]
    if round.energy_j is not None:
        named.append(("energy", round.energy_j / round.window_s, charged_w(round, table)))
    node_w: tuple[Floats, ...] = ()
    if named and may_sleep(round):
        node_w = tuple(node_steps_w(round, p) for p in range(len(table.pools)))
    for name, limit_w, use in _binding(named):
        names.append(name)
        capacity.append(limit_w - base_w(round))
        # Less than idle would let a job pay for others; profiles without a power curve draw idle.
        demand.append(np.maximum(use, 0.0))
    return Limits(tuple(names), np.array(capacity), np.array(demand, dtype=float), node_w)


def _binding(named: list[tuple[str, float, Floats]]) -> list[tuple[str, float, Floats]]:
    """Return the limits on watts but for one that another one implies."""
    if len(named) < 2:
        return named
    low, high = sorted(named, key=lambda limit: limit[1])
    return [low] if (low[2] >= high[2]).all() else named


def node_steps_w(round: Round, pool: int) -> Floats:
    """Return the watts beyond sleep of the nodes that 0, 1, … GPUs of a pool keep awake.

    In a pool of unequal nodes all are taken as small as the smallest and as thirsty as the
    thirstiest: it is the placement that chooses among them. Nodes that sleep are taken last, and
    draw what waking takes besides.
    """
    t = round.cluster.topology
    own = t.in_service(pool)
    if not own.any():
        return np.zeros(1)
    sizes, saves = t.node_gpus[own], np.maximum(t.awake_w - t.sleep_w, 0.0)[own]
    nodes = np.minimum(-(-np.arange(sizes.sum() + 1) // sizes.min()), len(sizes))
    sleeping = [node for node in round.asleep if own[node]]
    woken = np.maximum(nodes - (len(sizes) - len(sleeping)), 0)
    idle_w = np.minimum(nodes * saves.max(), saves.sum())
    return np.asarray(idle_w + woken * t.waking_w[sleeping].max(initial=0.0))


def capped_w(cluster: Cluster) -> float | None:
    """Return the sum of the outermost racks' power caps if these cover all nodes, else None.

    Necessary for the racks' caps, not sufficient: which rack a job draws from, placement decides.
    """
    caps = rack_caps(cluster)
    outermost = [c for c in caps if not any(c.racks < other.racks for other in caps)]
    tightest = {c.racks: min(o.cap_w for o in outermost if o.racks == c.racks) for c in outermost}
    covered = frozenset[int]().union(*tightest)
    return sum(tightest.values()) if len(covered) == len(cluster.topology.racks) else None
