"""The power of nodes without jobs, the power that a job adds, and the power left by cap and budget.

Equal nodes form a `NodeClass`. `ronda.formulations.placement.rack_power` computes the power that
the caps of racks leave during placement.

**Energy over time.** By t seconds from now, the cluster may use ``L(t) = B + (E - B) t / W`` joules
within the window of W seconds, and ``B + sustained t`` after it, where B is the banked energy
(`ronda.instances.round`). A load that draws w more watts for d more seconds uses ``w min(t, d)`` of
them by t. Such loads are jobs, beyond their idle GPUs and outside pauses, and nodes that wake. A
plan must keep ``base t + Σ_k w_k min(t, d_k) <= L(t)`` at every t of the window (`left_w`,
`tightest_s`); at one t, this is a row of the allocation model
(`ronda.formulations.allocation.rows.energy`).

**Shares.** Policies that fill up a round job by job charge each job a single share of the window.
With ``M(t) = L(t) - (base + h) t`` for loads that draw h watts for the whole window, ::

    Σ_k w_k share_k <= E / W - base,   share_k = d/W max(1, M(W) / M(d)),   d = min(W, d_k)

is enough, since ``min(t, d) / M(t)`` is greatest at d or W. This rule is our own. It is exact for
jobs of one length together with the loads h, and for all jobs where all of E may be used at once:
in that case an option is charged ``w min(W, d)`` joules. h counts the jobs that run for longer than
the window, and their nodes. If a plan stops such jobs, `left_w` shows whether the jobs in their
place draw too much too soon.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.topology import racks_above
from ronda.instances.base import Floats
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

TOLERANCE = 2e-7
"""The share of a limit by which rounding may exceed it, more than the tolerance of solvers and less
than that of the checker."""


def node_w(topology: Topology, asleep: Iterable[int] = (), woken: Iterable[int] = ()) -> Floats:
    """Return the watts of each node without jobs, shape (N,).

    `asleep` nodes sleep, `woken` nodes also draw the power of waking, and other nodes are awake
    with all GPUs idle.
    """
    watts, asleep, woken = topology.awake_w.copy(), list(asleep), list(woken)
    watts[woken] += topology.waking_w[woken]
    watts[asleep] = topology.sleep_w[asleep]
    return watts


def idle_w(round: Round, asleep: tuple[int, ...] | None) -> float:
    """Return the watts of the cluster without any progressing job, once woken nodes are awake.

    `asleep` are the nodes that sleep under the plan; None stands for the nodes that sleep now.
    """
    sleeping = round.asleep if asleep is None else asleep
    return float(node_w(round.cluster.topology, sleeping).sum())


def wakes(round: Round, asleep: tuple[int, ...] | None) -> tuple[Floats, Floats]:
    """Return the extra watts of waking, and the seconds for which each woken node draws them.

    `asleep` is as in `idle_w`.
    """
    topology = round.cluster.topology
    woken = sorted(set(round.asleep).difference(round.asleep if asleep is None else asleep))
    return topology.waking_w[woken], topology.wake_s[woken]


def extra_w(round: Round, option: Option) -> float:
    """Return the watts that a job adds to a cluster whose GPUs idle."""
    pool = round.cluster.topology.pools[option.pool]
    return option.power_w - option.own_gpus * pool.gpu_type.idle_w


def drawn_w(
    round: Round, allocations: Mapping[str, Allocation], asleep: tuple[int, ...] | None
) -> float:
    """Return the watts of the cluster with its jobs, once every pause and wake-up is over.

    `asleep` is as in `idle_w`.
    """
    return idle_w(round, asleep) + sum(extra_w(round, a.option) for a in allocations.values())


def extra_gpu_w(round: Round, option: Option) -> float:
    """Return the watts that a job adds on each of its GPUs."""
    return extra_w(round, option) / option.gpus


def pieces_w(
    round: Round, option: Option, placement: Iterable[tuple[int, int]]
) -> list[tuple[int, float]]:
    """Return the nodes of a placement, each with the watts that a job adds there."""
    each_w = extra_gpu_w(round, option)
    return [(node, gpus * each_w) for node, gpus in placement]


def least_node_w(topology: Topology) -> Floats:
    """Return the watts of each node without jobs, awake or asleep, whichever is less, (N,)."""
    return np.minimum(topology.awake_w, topology.sleep_w)


def least_held_w(topology: Topology) -> Floats:
    """Return the least watts that a held GPU of each pool adds to `least_node_w`, shape (P,).

    An awake node with u of its n GPUs held draws ``awake - least >= (awake - least) u / n`` watts
    more than its least power, as u <= n.
    """
    held = np.full(len(topology.pools), np.inf)
    up = topology.node_gpus > 0
    each = (topology.awake_w - least_node_w(topology))[up] / topology.node_gpus[up]
    np.minimum.at(held, topology.node_pool[up], each)
    return held


@dataclass(frozen=True, slots=True)
class NodeClass:
    """A class of nodes that no constraint of the allocation model can tell apart.

    The ``name`` is that of the pool, with a number if the pool has several classes. ``rack`` is an
    index into ``topology.racks`` if a power cap limits the rack, else -1. ``awake_w`` and
    ``sleep_w`` are the watts of one node awake with all GPUs idle, and asleep. A node that sleeps
    now draws ``wake_w`` more watts for ``wake_s`` seconds if it is woken. A node that is already
    waking draws ``still_w`` more watts, which all limits but the caps of racks already exclude.
    """

    name: str
    pool: int
    rack: int
    count: int
    gpus_per_node: int
    awake_w: float
    sleep_w: float
    wake_w: float = 0.0
    wake_s: float = 0.0
    still_w: float = 0.0

    @property
    def more_w(self) -> float:
        """The watts that one awake node draws at once beyond a sleeping node."""
        return self.awake_w - self.sleep_w + self.wake_w

    @property
    def more_in_rack_w(self) -> float:
        """The watts of `more_w` that count against a cap on the node's rack."""
        return self.more_w + self.still_w

    def more_j(self, seconds: float) -> float:
        """Return the joules that an awake node uses beyond a sleeping one in the next `seconds`."""
        waking_j = self.wake_w * min(self.wake_s, seconds)
        return (self.awake_w - self.sleep_w) * seconds + waking_j


@dataclass(frozen=True, slots=True)
class RackCap:
    """A power cap on a rack and all ``racks`` below it (indices into ``topology.racks``)."""

    name: str
    cap_w: float
    racks: frozenset[int]


@per_record(maxsize=8)
def rack_caps(cluster: Cluster) -> tuple[RackCap, ...]:
    """Return the power caps of racks, each with the racks of its subtree that hold nodes."""
    if all(rack.power_cap_w is None for rack in cluster.racks):
        return ()
    above = [racks_above(cluster)[name] for name in cluster.topology.racks]
    caps = [
        RackCap(
            rack.name,
            rack.power_cap_w,
            frozenset(r for r, names in enumerate(above) if rack.name in names),
        )
        for rack in cluster.racks
        if rack.power_cap_w is not None
    ]
    return tuple(cap for cap in caps if cap.racks)


def outermost_w(cluster: Cluster) -> float | None:
    """Return the sum of the outermost racks' power caps if these cover all nodes, else None.

    The caps of racks imply this limit but not the reverse, as placement decides where a job draws.
    """
    caps = rack_caps(cluster)
    outermost = [c for c in caps if not any(c.racks < other.racks for other in caps)]
    tightest = {c.racks: min(o.cap_w for o in outermost if o.racks == c.racks) for c in outermost}
    covered = frozenset[int]().union(*tightest)
    return sum(tightest.values()) if len(covered) == len(cluster.topology.racks) else None


def node_classes(round: Round) -> tuple[NodeClass, ...]:
    """Return the classes of equal nodes, in the order in which they appear in the cluster.

    Two nodes are equal if they have the same pool, number of GPUs, power awake, asleep and while
    waking, and (where racks have power caps) rack. Nodes out of service have no class.
    """
    return _classified(round)[0]


def classes_of_nodes(round: Round) -> list[int]:
    """Return the index of each node's class, -1 for nodes out of service, shape (N,)."""
    return _classified(round)[1]


def _classified(round: Round) -> tuple[tuple[NodeClass, ...], list[int]]:
    waking_w = round.cluster.topology.waking_w
    drowsy = ([n for n in nodes if waking_w[n] > 0] for nodes in (round.asleep, round.waking))
    asleep, waking = (tuple(nodes) for nodes in drowsy)
    return _node_classes(round.cluster, asleep, waking)


@per_record(maxsize=8)
def _node_classes(
    cluster: Cluster, asleep: tuple[int, ...], waking: tuple[int, ...]
) -> tuple[tuple[NodeClass, ...], list[int]]:
    topology = cluster.topology
    capped = frozenset[int]().union(*(cap.racks for cap in rack_caps(cluster)))
    rack = np.where(np.isin(topology.node_rack, sorted(capped)), topology.node_rack, -1)
    wake_w, wake_s, still_w = (np.zeros(len(rack)) for _ in range(3))
    wake_w[list(asleep)] = topology.waking_w[list(asleep)]
    wake_s[list(asleep)] = topology.wake_s[list(asleep)]
    still_w[list(waking)] = topology.waking_w[list(waking)]
    columns = (
        topology.node_pool,
        rack,
        topology.node_gpus,
        topology.awake_w,
        topology.sleep_w,
        wake_w,
        wake_s,
        np.where(rack >= 0, still_w, 0.0),
    )
    kinds = list(zip(*(column.tolist() for column in columns), strict=True))
    up = (topology.node_gpus > 0).tolist()
    alike = Counter(kind for kind, there in zip(kinds, up, strict=True) if there)
    several = Counter(pool for pool, *_ in alike)
    numbered: Counter[int] = Counter()
    classes = []
    for (pool, in_rack, gpus, *watts), count in alike.items():
        numbered[pool] += 1
        name = topology.pools[pool].name
        if several[pool] > 1:
            name = f"{name}#{numbered[pool]}"
        classes.append(NodeClass(name, pool, in_rack, count, gpus, *watts))
    index = {kind: k for k, kind in enumerate(alike)}
    return tuple(classes), [index[k] if there else -1 for k, there in zip(kinds, up, strict=True)]


def awake_for(classes: Sequence[NodeClass], gpus: Sequence[int]) -> list[int]:
    """Return how many nodes of each class the given `gpus` (P,) of pools keep awake.

    Nodes that save the least power asleep, per GPU, come first.
    """
    counts, left = [0] * len(classes), list(gpus)
    for c in _by_saving(classes, [kind.more_w for kind in classes]):
        kind = classes[c]
        counts[c] = min(kind.count, -(-left[kind.pool] // kind.gpus_per_node))
        left[kind.pool] = max(0, left[kind.pool] - counts[c] * kind.gpus_per_node)
    return counts


def most_awake(classes: Sequence[NodeClass], nodes: Sequence[int]) -> list[int]:
    """Return how many nodes of each class may be awake if `nodes` (P,) of each pool may be awake.

    Nodes that save the least power asleep, per GPU, come first.
    """
    counts, left = [0] * len(classes), list(nodes)
    for c in _by_saving(classes, [kind.more_w for kind in classes]):
        counts[c] = min(classes[c].count, left[classes[c].pool])
        left[classes[c].pool] -= counts[c]
    return counts


def least_awake(
    classes: Sequence[NodeClass], gpus: Sequence[int], saved: Sequence[float]
) -> Floats:
    """Return the fractional numbers of awake nodes (C,) that hold `gpus` (P,) at the least cost.

    `saved` (C,) is the power or energy that one sleeping node of each class saves.
    """
    counts, left = np.zeros(len(classes)), list(gpus)
    for c in _by_saving(classes, saved):
        kind = classes[c]
        used = min(left[kind.pool], kind.count * kind.gpus_per_node)
        left[kind.pool] -= used
        counts[c] = used / kind.gpus_per_node if saved[c] > 0 else kind.count
    return counts


def _by_saving(classes: Sequence[NodeClass], saved: Sequence[float]) -> list[int]:
    """Return the classes sorted by the saving of a sleeping node per GPU, the least first."""
    each = [max(0.0, w) / kind.gpus_per_node for w, kind in zip(saved, classes, strict=True)]
    return sorted(range(len(classes)), key=each.__getitem__)


def node_steps_w(classes: Sequence[NodeClass], pool: int) -> Floats:
    """Return the watts beyond sleep of the nodes that 0, 1, … GPUs of a pool keep awake.

    The nodes are as in `awake_for`. Nodes that sleep now also draw the power of waking.
    """
    order = _by_saving(classes, [kind.more_w for kind in classes])
    own = [classes[c] for c in order if classes[c].pool == pool]
    counts = [kind.count for kind in own]
    sizes = np.repeat([kind.gpus_per_node for kind in own], counts)
    awake_w = np.cumsum(np.repeat([max(0.0, kind.more_w) for kind in own], counts))
    return np.append(0.0, awake_w.repeat(sizes)) if own else np.zeros(1)


def by_pool(classes: Sequence[NodeClass], counts: Sequence[int], pools: int) -> list[int]:
    """Return the number of nodes in each pool from the `counts` of classes, shape (P,)."""
    found = [0] * pools
    for kind, count in zip(classes, counts, strict=True):
        found[kind.pool] += count
    return found


def nodes_for(classes: Sequence[NodeClass], gpus: Sequence[int]) -> list[int]:
    """Return how many nodes of each pool the given `gpus` (P,) keep awake, shape (P,)."""
    return by_pool(classes, awake_for(classes, gpus), len(gpus))


def may_sleep(round: Round) -> bool:
    """Return whether sleeping nodes can help in this round.

    They can help if power is limited (by a cap, energy or racks) and some node draws less power
    asleep than awake and idle, with the power of waking included.
    """
    limited = round.watts is not None or bool(rack_caps(round.cluster))
    return limited and any(kind.more_in_rack_w > 0 for kind in node_classes(round))


def base_w(round: Round) -> float:
    """Return the watts of the cluster without jobs, with nodes asleep where this can help."""
    topology = round.cluster.topology
    return float((least_node_w(topology) if may_sleep(round) else topology.awake_w).sum())


def capped(cluster: Cluster) -> bool:
    """Return whether any rack has a power cap."""
    return any(rack.power_cap_w is not None for rack in cluster.racks)


def seconds_left(round: Round, state: JobState, option: Option) -> float:
    """Return the seconds for which a job will draw an option's power, infinite if nothing is known.

    A job draws no more after the time limit at which the site ends it.
    """
    work, most_s = state.remaining_at(round.now_s), round.may_hold_s(state)
    return most_s if work is None else min(most_s, work / option.rate + option.teardown_s)


def may_use_j(round: Round, seconds: Floats) -> Floats:
    """Return the joules L(t) that the cluster may use in each of the next `seconds` t."""
    assert round.energy_j is not None
    energy_j, window_s = round.energy_j, round.window_s
    mean_w = energy_j / window_s
    later_w = mean_w if round.sustained_w is None else min(round.sustained_w, mean_w)
    banked_j = energy_j if round.banked_j is None else round.banked_j
    within = banked_j + (energy_j - banked_j) * (seconds / window_s)
    later = later_w * seconds + (round.banked_j or 0.0)
    return np.where(seconds <= window_s, within, later)


def share(round: Round, seconds: Floats) -> Floats:
    """Return the share of its watts that each job is charged throughout the window (see above).

    `seconds` are the times for which jobs draw power. The round has an energy budget.
    """
    assert round.energy_j is not None
    window_s, d = round.window_s, np.minimum(seconds, round.window_s)
    base = base_w(round) + _lasting_w(round)
    whole, left = round.energy_j - base * window_s, may_use_j(round, d) - base * d
    scarcer = np.divide(whole, left, out=np.ones_like(d), where=left > 0)
    shares = d / window_s * np.maximum(1.0, scarcer)
    return np.where(shares < 1.0 - ROUNDING, shares, 1.0)


@per_record(maxsize=2)
def _lasting_w(round: Round) -> float:
    """Return the watts beyond the base that running jobs and their nodes draw all window long."""
    topology = round.cluster.topology
    found, used = 0.0, set[int]()
    for state in round.running:
        held = state.allocation
        if held is None:
            continue
        used.update(node for node, _ in held.placement)
        if seconds_left(round, state, held.option) >= round.window_s:
            found += max(0.0, extra_w(round, held.option))
    rests = topology.sleep_w < topology.awake_w
    rests[list(used)] = False
    asleep = np.flatnonzero(rests)
    return found + max(0.0, float(node_w(topology, asleep).sum()) - base_w(round))


def left_w(round: Round, base: float, watts: Floats, seconds: Floats) -> float:
    """Return the additional watts that the limits allow throughout the window, negative if broken.

    Parameters
    ----------
    base
        The watts of the cluster without jobs.
    watts, seconds
        The watts that loads add, beyond idle GPUs, and the seconds for which they do, (n,) each;
        infinite seconds count as the window.
    """
    left = np.inf
    if round.power_cap_w is not None:
        left = round.power_cap_w - base - float(watts.sum())
    if round.energy_j is None:
        return float(left)
    return float(min(left, spare(round, base, watts, seconds)[1].min()))


def tightest_s(round: Round, base: float, watts: Floats, seconds: Floats) -> tuple[float, bool]:
    """Return the time until which the energy budget leaves the fewest watts, and whether it holds.

    It holds if the use exceeds the allowed energy at no time, up to rounding. The arguments are as
    in `left_w`.
    """
    times, spare_w = spare(round, base, watts, seconds)
    kept = spare_w >= -TOLERANCE * may_use_j(round, times) / times
    least = int(np.where(kept.all() | ~kept, spare_w, np.inf).argmin())
    return float(times[least]), bool(kept[least])


def spare(
    round: Round, base: float, watts: Floats, seconds: Floats, *, until_end: bool = False
) -> tuple[Floats, Floats]:
    """Return the times at which the slope of used energy changes, and the watts left until each.

    Between these times, both used and allowed energy are linear, so no time in between is worse.
    With `until_end`, times up to the end of the last job count, and not only those in the window.
    The other arguments are as in `left_w`.
    """
    window_s = round.window_s
    d = np.where(np.isfinite(seconds), seconds, window_s)
    if not until_end:
        d = np.minimum(d, window_s)
    order = np.argsort(d, kind="stable")
    times = np.append(d[order], window_s)
    ended_j = np.append(0.0, np.cumsum((watts * d)[order]))
    going_w = float(watts.sum()) - np.append(0.0, np.cumsum(watts[order]))
    before = np.searchsorted(times[:-1], times, side="left")  # the jobs that end before each time
    used = base * times + ended_j[before] + going_w[before] * times
    some = times > 0
    return times[some], (may_use_j(round, times) - used)[some] / times[some]
