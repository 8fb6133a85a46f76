"""What nodes draw without jobs, what a job adds, and what cap and budget leave for jobs.

Equal nodes make a `NodeClass`. What racks' caps leave while jobs are placed is in
`ronda.formulations.placement.rack_power`.

**The energy ahead** is what a budget bears over time, and what each option takes of its window. By
t seconds from now the cluster may use ``L(t) = B + (E - B) t / W`` joules within the window of W
seconds and ``B + sustained t`` after it, with B what is banked (`ronda.instances.round`). What
draws w watts more for d more seconds uses ``w min(t, d)`` of them by t: a job besides its idle
GPUs, but not in its pauses, and a node that wakes. A plan must keep ``base t + Σ_k w_k min(t, d_k)
<= L(t)`` at every t of the window (`left_w`, `overspent_s`); at one t it is a row of the allocation
model (`ronda.formulations.allocation.rows.energy`).

Policies that fill up a round job by job charge each its **share** of the window once. With ``M(t) =
L(t) - (base + h) t`` for what draws h watts on for the whole window, ::

    Σ_k w_k share_k <= E / W - base,   share_k = d/W max(1, M(W) / M(d)),   d = min(W, d_k)

is enough, since ``min(t, d) / M(t)`` is greatest at d or W. It is exact for jobs of one length
and what draws h, and for all jobs where all of E may be used at once: an option is then charged
``w min(W, d)`` joules. As h counts what runs now for longer than the window, and its nodes: should
a plan stop that, `left_w` shows whether the jobs in its place draw too much too soon. Ours.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.topology import racks_above
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

TOLERANCE = 2e-7
"""Share of a limit by which rounding may exceed it: more than what solvers take for that, less than
what the checker forgives."""


def node_w(topology: Topology, asleep: Iterable[int] = (), woken: Iterable[int] = ()) -> Floats:
    """Return (N,) the watts of each node without jobs: awake with all GPUs idle, if in no list.

    `asleep` nodes sleep; `woken` ones draw what waking takes besides.
    """
    watts, asleep, woken = topology.awake_w.copy(), list(asleep), list(woken)
    watts[woken] += topology.waking_w[woken]
    watts[asleep] = topology.sleep_w[asleep]
    return watts


def idle_w(round: Round, asleep: tuple[int, ...] | None) -> float:
    """Return the watts of the cluster without any progressing job, once woken nodes are awake.

    `asleep` are the nodes that sleep under the plan; None: those that sleep now.
    """
    sleeping = round.asleep if asleep is None else asleep
    return float(node_w(round.cluster.topology, sleeping).sum())


def wakes(round: Round, asleep: tuple[int, ...] | None) -> tuple[Floats, Floats]:
    """Return the watts that waking takes besides, and for how many seconds, of each woken node.

    `asleep` as for `idle_w`.
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

    `asleep` as for `idle_w`.
    """
    return idle_w(round, asleep) + sum(extra_w(round, a.option) for a in allocations.values())


def extra_gpu_w(round: Round, option: Option) -> float:
    """Return the watts that a job adds on each of its GPUs."""
    pool = round.cluster.topology.pools[option.pool]
    return option.power_w / option.gpus - pool.gpu_type.idle_w / option.width


def least_node_w(topology: Topology) -> Floats:
    """Return (N,) the watts of each node without jobs, awake or asleep, whichever is less."""
    return np.minimum(topology.awake_w, topology.sleep_w)


def least_held_w(topology: Topology) -> Floats:
    """Return the least watts that a held GPU of each pool adds to `least_node_w`, shape (P,).

    A node awake with u of its n GPUs held draws ``awake - least >= (awake - least) u / n`` more
    than its least, as u <= n.
    """
    held = np.full(len(topology.pools), np.inf)
    up = topology.node_gpus > 0
    each = (topology.awake_w - least_node_w(topology))[up] / topology.node_gpus[up]
    np.minimum.at(held, topology.node_pool[up], each)
    return held


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that no constraint of the allocation model can tell apart.

    The ``name`` is that of the pool, with a number if the pool has several classes; ``rack`` is an
    index into ``topology.racks`` if a power cap limits the rack, else -1. ``awake_w`` and
    ``sleep_w`` are of one node, awake with all GPUs idle, or asleep. One that sleeps now draws
    ``wake_w`` besides for ``wake_s`` seconds if it is woken. ``still_w`` is what one that is still
    waking draws besides, which has been taken off all limits but the caps of racks.
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
        """Watts at once that one node awake draws more than asleep."""
        return self.awake_w - self.sleep_w + self.wake_w

    @property
    def more_in_rack_w(self) -> float:
        """The same, as they count against a cap on its rack."""
        return self.more_w + self.still_w

    def more_j(self, seconds: float) -> float:
        """Return the joules that one node awake uses more than asleep in some time from now."""
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

    Necessary for the racks' caps, not sufficient: which rack a job draws from, placement decides.
    """
    caps = rack_caps(cluster)
    outermost = [c for c in caps if not any(c.racks < other.racks for other in caps)]
    tightest = {c.racks: min(o.cap_w for o in outermost if o.racks == c.racks) for c in outermost}
    covered = frozenset[int]().union(*tightest)
    return sum(tightest.values()) if len(covered) == len(cluster.topology.racks) else None


def node_classes(round: Round) -> tuple[NodeClass, ...]:
    """Return the classes of equal nodes, in the order in which they appear in the cluster.

    Two nodes are equal if pool, number of GPUs, powers awake, asleep and while they wake, and
    (where a rack's power is capped) the rack are the same. Nodes out of service are of no class.
    """
    return _classified(round)[0]


def classes_of_nodes(round: Round) -> list[int]:
    """Return (N,) the index of each node's class; -1 out of service."""
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
    """Return how many nodes of each class a number of GPUs in each pool (P,) keeps awake.

    Nodes that save least asleep, per GPU, come first.
    """
    counts, left = [0] * len(classes), list(gpus)
    for c in _by_saving(classes, [kind.more_w for kind in classes]):
        kind = classes[c]
        counts[c] = min(kind.count, -(-left[kind.pool] // kind.gpus_per_node))
        left[kind.pool] = max(0, left[kind.pool] - counts[c] * kind.gpus_per_node)
    return counts


def most_awake(classes: Sequence[NodeClass], nodes: Sequence[int]) -> list[int]:
    """Return how many nodes of each class may be awake if a number of each pool (P,) may.

    Nodes that save least asleep, per GPU, come first.
    """
    counts, left = [0] * len(classes), list(nodes)
    for c in _by_saving(classes, [kind.more_w for kind in classes]):
        counts[c] = min(classes[c].count, left[classes[c].pool])
        left[classes[c].pool] -= counts[c]
    return counts


def least_awake(
    classes: Sequence[NodeClass], gpus: Sequence[int], saved: Sequence[float]
) -> Floats:
    """Return (C,) nodes awake, in fractions, that hold GPUs of each pool (P,) at least cost.

    `saved` (C,) is what one node of each class saves asleep.
    """
    counts, left = np.zeros(len(classes)), list(gpus)
    for c in _by_saving(classes, saved):
        kind = classes[c]
        used = min(left[kind.pool], kind.count * kind.gpus_per_node)
        left[kind.pool] -= used
        counts[c] = used / kind.gpus_per_node if saved[c] > 0 else kind.count
    return counts


def _by_saving(classes: Sequence[NodeClass], saved: Sequence[float]) -> list[int]:
    """Return the classes by what a GPU's share of a node saves asleep, the least first."""
    each = [max(0.0, w) / kind.gpus_per_node for w, kind in zip(saved, classes, strict=True)]
    return sorted(range(len(classes)), key=each.__getitem__)


def node_steps_w(classes: Sequence[NodeClass], pool: int) -> Floats:
    """Return the watts beyond sleep of the nodes that 0, 1, … GPUs of a pool keep awake.

    Nodes as of `awake_for`; those that sleep now draw what waking takes besides.
    """
    order = _by_saving(classes, [kind.more_w for kind in classes])
    own = [classes[c] for c in order if classes[c].pool == pool]
    counts = [kind.count for kind in own]
    sizes = np.repeat([kind.gpus_per_node for kind in own], counts)
    awake_w = np.cumsum(np.repeat([max(0.0, kind.more_w) for kind in own], counts))
    return np.append(0.0, awake_w.repeat(sizes)) if own else np.zeros(1)


def by_pool(classes: Sequence[NodeClass], counts: Sequence[int], pools: int) -> list[int]:
    """Return (P,) the nodes of each pool, from the nodes of each class."""
    found = [0] * pools
    for kind, count in zip(classes, counts, strict=True):
        found[kind.pool] += count
    return found


def nodes_for(classes: Sequence[NodeClass], gpus: Sequence[int]) -> list[int]:
    """Return (P,) how many nodes of each pool a number of GPUs in each pool (P,) keeps awake."""
    return by_pool(classes, awake_for(classes, gpus), len(gpus))


def may_sleep(round: Round) -> bool:
    """Return whether sleeping nodes can help in this round.

    They can if power is limited (cap, energy or rack) and some node draws less asleep than idle,
    or than it takes to wake it.
    """
    limited = round.watts is not None or bool(rack_caps(round.cluster))
    return limited and any(kind.more_in_rack_w > 0 for kind in node_classes(round))


def base_w(round: Round) -> float:
    """Return the watts of the cluster without jobs, with nodes asleep where that can help."""
    topology = round.cluster.topology
    return float((least_node_w(topology) if may_sleep(round) else topology.awake_w).sum())


def capped(cluster: Cluster) -> bool:
    """Return whether any rack has a power cap."""
    return any(rack.power_cap_w is not None for rack in cluster.racks)


def seconds_left(round: Round, state: JobState, option: Option) -> float:
    """Return for how long a job will draw an option's power; infinite if its size is not known."""
    work = state.remaining_at(round.now_s)
    return np.inf if work is None else work / option.rate + option.teardown_s


def may_use_j(round: Round, seconds: Floats) -> Floats:
    """Return the joules L(t) that the cluster may use within each of some times from now."""
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

    `seconds` is for how long it draws them. The round has an energy budget.
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
    """Return the watts that what runs now draws beyond the base for the whole window."""
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
    """Return the watts that may come on top for as long as is looked ahead; below 0: too much.

    Parameters
    ----------
    base
        Watts of the cluster without jobs.
    watts, seconds
        (n,) what jobs add to their idle GPUs, and for how long; infinite counts as the window.
    """
    left = np.inf
    if round.power_cap_w is not None:
        left = round.power_cap_w - base - float(watts.sum())
    if round.energy_j is None:
        return float(left)
    return float(min(left, spare(round, base, watts, seconds)[1].min()))


def tightest_s(round: Round, base: float, watts: Floats, seconds: Floats) -> tuple[float, bool]:
    """Return the time until which the energy budget leaves least watts, and whether it is kept.

    It is, if by no time more is used than may be, up to rounding. Arguments as of `left_w`.
    """
    times, spare_w = spare(round, base, watts, seconds)
    kept = spare_w >= -TOLERANCE * may_use_j(round, times) / times
    least = int(np.where(kept.all() | ~kept, spare_w, np.inf).argmin())
    return float(times[least]), bool(kept[least])


def spare(
    round: Round, base: float, watts: Floats, seconds: Floats, *, until_end: bool = False
) -> tuple[Floats, Floats]:
    """Return the times at which what is used bends, and the watts that are left until each.

    In between both what is used and what may be used are linear: no time there is worse. With
    `until_end` the last job's end is looked at, and not that of the window only. Other arguments as
    of `left_w`.
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
