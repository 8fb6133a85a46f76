"""The cluster behind a log: given, or as far as the nodes of its jobs show it.

Of a cluster that is not given, a node has what was in use on it at once, or on another node of its
kind: the nodes of the same partitions, GPU type and name apart from digits. This is a lower bound.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, partitions_of
from ronda.instances.traces.logs.runs import LogRun
from ronda.instances.traces.rigid import UNKNOWN_GIB, Machine, machine_of
from ronda.instances.traces.slurm_cells import node_names

UNTYPED = "gpu"
"""The GPU type of a log that names none."""

USUAL = 8
"""The GPUs of a node of a log that says nothing of nodes."""


@dataclass(frozen=True)
class SeenCluster:
    """A cluster, with the names that a log has for its parts.

    Attributes
    ----------
    cluster
        The cluster.
    index
        Indices of the nodes by name.
    home
        The cluster's partition of each partition of the log, and the feature of its nodes if it has
        not all of them.
    machines
        The described types of GPUs.
    notes
        What was inferred.
    """

    cluster: Cluster
    index: Mapping[str, int]
    home: Mapping[str, tuple[str, tuple[str, ...]]]
    machines: Mapping[str, Machine] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def spread(run: LogRun) -> dict[str, int]:
    """Return a run's GPUs on each of its nodes by name, spread as evenly as they can be."""
    names = node_names(run.nodes)
    each, more = divmod(int(run.gpus), len(names)) if names else (0, 0)
    return {name: each + (k < more) for k, name in enumerate(names) if each + (k < more)}


def natural(name: str) -> list[tuple[int, str]]:
    """Return the key that orders ``n2`` before ``n10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _PARTS.findall(name)]


_PARTS = re.compile(r"[0-9]+|[^0-9]+")


def given_cluster(cluster: Cluster, runs: Iterable[LogRun]) -> SeenCluster:
    """Return a given cluster, in which nodes of the log are those of equal partition and GPU type.

    Nodes with the most GPUs in use come first, as groups of nodes with the most GPUs do. Which of
    equal nodes a name belongs to makes no difference.
    """
    most, pools = dict[str, int](), dict[str, tuple[str, str]]()
    whole = not cluster.partitions
    for run in runs:
        for name, gpus in spread(run).items():
            most[name] = max(most.get(name, 0), gpus)
            kind = run.kinds[0] if len(run.kinds) == 1 else ""
            if name not in pools or kind:
                pools[name] = ("default" if whole else run.partition, kind)
    slots = defaultdict[tuple[str, str], list[int]](list)
    firsts = accumulate((group.count for group in cluster.node_groups), initial=0)
    groups = zip(cluster.node_groups, firsts, strict=False)
    for group, first in sorted(groups, key=lambda each: -each[0].gpus_per_node):
        slots[group.partition, group.gpu_type] += range(first, first + group.count)
    index = dict[str, int]()
    for name in sorted(most, key=lambda each: (-most[each], natural(each))):
        partition, kind = pools[name]
        known = [own for where, own in slots if where == partition]
        kind = known[0] if not kind and len(known) == 1 else kind
        if free := slots.get((partition, kind)):
            index[name] = free.pop(0)
    home = _homes({each.name: {each.name} for each in cluster.partitions})
    lost = sorted(most.keys() - index.keys(), key=natural)
    words = "nodes of the log that the cluster does not have"
    notes = (f"{words}: {len(lost):,}, such as {lost[0]}",) if lost else ()
    return SeenCluster(cluster, index, home, notes=notes)


@dataclass
class _Node:
    """What a log shows of a node."""

    partitions: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    uses: list[tuple[float, int, float, float]] = field(default_factory=list)
    shares: set[tuple[float, float, float]] = field(default_factory=set)

    def dense(self, gpus: int) -> tuple[float, float]:
        """Return the most cores and GiB of a job here if it has its GPUs on as few nodes as can be.

        A cluster with less could not hold the job in such a way.
        """
        packed = [(cpus * min(n, gpus), gib * min(n, gpus)) for n, cpus, gib in self.shares]
        return max(cpus for cpus, _ in packed), max(gib for _, gib in packed)

    def peaks(self) -> tuple[int, float, float]:
        """Return the most GPUs, cores and GiB in use at once; what ends at a time ends first."""
        uses = sorted(self.uses, key=lambda use: (use[0], use[1] > 0))
        gpus, cpus, gib = (max(accumulate(use[k] for use in uses)) for k in (1, 2, 3))
        return int(gpus), round(cpus, 6), round(gib, 6)


def inferred_cluster(
    runs: Sequence[LogRun], until_s: float, described: Sequence[Machine]
) -> SeenCluster:
    """Return the cluster that the runs of a log show."""
    nodes = defaultdict[str, _Node](_Node)
    for run in runs:
        ends_s = run.gone_s(until_s)
        for name, gpus in spread(run).items():
            node, share = nodes[name], gpus / run.gpus
            node.partitions[run.partition or "default"] += 1
            node.kinds.update(run.kinds[:1])
            cpus, gib = run.cpus * share, run.memory_gib * share
            node.uses += [(run.start_s, gpus, cpus, gib), (ends_s, -gpus, -cpus, -gib)]
            node.shares.add((run.gpus, run.cpus / run.gpus, run.memory_gib / run.gpus))
    if not nodes:
        return _without_names(runs, until_s, described)
    typed = _types_of_partitions(runs)
    kinds = {
        name: max(node.kinds, key=lambda k: (node.kinds[k], k))
        if node.kinds
        else next((typed[p] for p in node.partitions if p in typed), UNTYPED)
        for name, node in nodes.items()
    }
    home = _homes({name: set(node.partitions) for name, node in nodes.items()})
    families = defaultdict[tuple[str, str, str, tuple[str, ...]], list[str]](list)
    for name in sorted(nodes, key=natural):
        parts = tuple(sorted(nodes[name].partitions))
        stem = re.sub("[0-9]+", "#", name)
        families[home[parts[0]][0], kinds[name], stem, parts].append(name)
    groups, index = list[NodeGroup](), dict[str, int]()
    for (partition, kind, stem, parts), names in sorted(families.items()):
        peaks = [nodes[name].peaks() for name in names]
        gpus = max(peak[0] for peak in peaks)
        dense = [nodes[name].dense(gpus) for name in names]
        cpus, gib = (
            max(max(p[k + 1], d[k]) for p, d in zip(peaks, dense, strict=True)) for k in (0, 1)
        )
        has = {"cpu": cpus} if kind != "cpu" and cpus else {}
        groups.append(
            NodeGroup(
                name=f"{partition}/{kind}/{stem}" + (f"/{len(groups)}" if groups else ""),
                count=len(names),
                gpus_per_node=gpus,
                gpu_type=kind,
                partition=partition,
                features=tuple(p for p in parts if home[p][1]),
                has=has | ({"memory_gib": gib} if gib else {}),
                host_idle_w=machine_of(kind, described).host_idle_w,
            )
        )
        index |= {name: len(index) + k for k, name in enumerate(names)}
    shared = [p for p, (of, features) in home.items() if features or of != p]
    notes = [f"cluster: {len(nodes):,} nodes that the log names, in {len(groups):,} groups"]
    notes.append("nodes: each has what was in use at once on one of its kind, a lower bound")
    if shared:
        notes.append(f"partitions with common nodes, which are features: {', '.join(shared)}")
    return seen_groups(groups, index, home, described, notes)


def _without_names(
    runs: Sequence[LogRun], until_s: float, described: Sequence[Machine]
) -> SeenCluster:
    """Return a cluster for a log that names no nodes, from the GPUs in use at once in each pool."""
    typed = _types_of_partitions(runs)
    uses = defaultdict[tuple[str, str], _Node](_Node)
    widest = Counter[tuple[str, str]]()
    for run in runs:
        partition = run.partition or "default"
        pool = partition, run.kinds[0] if run.kinds else typed.get(partition, UNTYPED)
        ends_s = run.gone_s(until_s)
        gpus = int(run.gpus)
        uses[pool].uses += [(run.start_s, gpus, 0.0, 0.0), (ends_s, -gpus, 0.0, 0.0)]
        widest[pool] = max(widest[pool], -(-gpus // (run.count or -(-gpus // USUAL))))
    groups = []
    for (partition, kind), seen in sorted(uses.items(), key=lambda each: each[0]):
        each = min(widest[partition, kind], seen.peaks()[0])
        groups.append(
            NodeGroup(
                name=f"{partition}/{kind}",
                count=-(-seen.peaks()[0] // each),
                gpus_per_node=each,
                gpu_type=kind,
                partition=partition,
                host_idle_w=machine_of(kind, described).host_idle_w,
            )
        )
    home = _homes({partition: {partition} for partition, _ in uses})
    notes = [
        "cluster: the log names no nodes; each partition has the GPUs that were in use at once, a "
        "lower bound, on nodes as large as its widest job on one (--cluster knows better)"
    ]
    return seen_groups(groups, {}, home, described, notes)


def _types_of_partitions(runs: Iterable[LogRun]) -> dict[str, str]:
    """Return the most frequent GPU type of each partition."""
    found = defaultdict[str, Counter[str]](Counter)
    for run in runs:
        if len(run.kinds) == 1:
            found[run.partition or "default"][run.kinds[0]] += 1
    return {name: max(own, key=lambda k: (own[k], k)) for name, own in found.items()}


def _homes(nodes: Mapping[str, set[str]]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the partition of the cluster that each partition of the log is part of.

    Partitions of the log with a node in common are one, and its nodes have the features that tell
    them apart.
    """
    joined = dict[str, set[str]]()
    for own in nodes.values():
        whole = set[str]().union(own, *(joined[p] for p in own if p in joined))
        joined |= dict.fromkeys(whole, whole)
    home = dict[str, tuple[str, tuple[str, ...]]]()
    for partition, whole in joined.items():
        within = [own for own in nodes.values() if own & whole]
        everywhere = all(partition in own for own in within)
        home[partition] = ("+".join(sorted(whole)), () if everywhere else (partition,))
    return home


def seen_groups(
    groups: Sequence[NodeGroup],
    index: Mapping[str, int],
    home: Mapping[str, tuple[str, tuple[str, ...]]],
    described: Sequence[Machine],
    notes: list[str],
) -> SeenCluster:
    """Return the cluster of some groups of nodes, with notes on what nobody described."""
    types, machines = [], {}
    for kind in dict.fromkeys(group.gpu_type for group in groups):
        machine = machine_of(kind, described)
        watts = machine.gpu
        types.append(GpuType(name=kind, memory_gib=watts.memory_gib, idle_w=watts.idle_w))
        if machine.busy_w:
            machines[kind] = machine
    if unknown := [each.name for each in types if each.name not in machines]:
        notes.append(
            f"GPU types of unknown memory and watts, taken for {UNKNOWN_GIB:g} GiB and 0 W: "
            f"{', '.join(unknown)} (--gpu describes them)"
        )
    cluster = Cluster(
        gpu_types=tuple(types),
        node_groups=tuple(groups),
        partitions=partitions_of(group.partition for group in groups),
    )
    return SeenCluster(cluster, index, home, machines, tuple(notes))
