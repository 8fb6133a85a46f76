"""Rules for a cluster: names, references, the rack tree, clocks and faults."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ronda.instances.cluster import Cluster, Rack
from ronda.instances.instance import Faults, Outage
from ronda.instances.rules.problem import Problem, one_of, show, too_many
from ronda.instances.site import Tenant

Span = tuple[float, float, int]  # from, until, index in the list


def cluster_problems(cluster: Cluster) -> Iterator[Problem]:
    """Yield the inconsistencies in a cluster."""
    yield from _names(cluster)
    yield from _references(cluster)
    yield from tree_problems(cluster.racks, "cluster.racks")
    for k, gpu_type in enumerate(cluster.gpu_types):
        place = f"cluster.gpu_types[{k}].clocks"
        if not strictly_ascending(gpu_type.clocks) or gpu_type.clocks[-1] != 1:
            yield Problem(place, show(gpu_type.clocks), "ascending levels that end in 1")
    nodes = sum(g.count for g in cluster.node_groups)
    yield from too_many("cluster.node_groups", "nodes", nodes)
    yield from too_many("cluster.node_groups", "gpus", cluster.gpus)


def strictly_ascending(values: tuple[float, ...]) -> bool:
    """Return whether values are non-empty and strictly ascending."""
    return bool(values) and all(a < b for a, b in pairwise(values))


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def owners(cluster: Cluster) -> set[str]:
    """Return the names of all partitions, which always include "default"."""
    return {"default", *(p.name for p in cluster.partitions)}


def _names(cluster: Cluster) -> Iterator[Problem]:
    for field in ("gpu_types", "node_groups", "racks", "partitions"):
        for name in repeated(x.name for x in getattr(cluster, field)):
            yield Problem(f"cluster.{field}", f"the name {show(name)} twice", "unique names")
    for field in ("gpu_types", "node_groups"):
        if not getattr(cluster, field):
            yield Problem(f"cluster.{field}", "none", "at least one")


def _references(cluster: Cluster) -> Iterator[Problem]:
    types = [t.name for t in cluster.gpu_types]
    racks = [r.name for r in cluster.racks]
    partitions = sorted(owners(cluster))
    for k, group in enumerate(cluster.node_groups):
        place = f"cluster.node_groups[{k}]"
        if group.gpu_type not in types:
            yield Problem(f"{place}.gpu_type", show(group.gpu_type), one_of(types))
        if group.rack is not None and group.rack not in racks:
            yield Problem(f"{place}.rack", show(group.rack), one_of(racks))
        if group.partition not in partitions:
            yield Problem(f"{place}.partition", show(group.partition), one_of(partitions))


def tree_problems(members: Sequence[Rack | Tenant], place: str) -> Iterator[Problem]:
    """Yield the parents that do not exist, and each cycle of members below themselves once."""
    parent = {member.name: member.parent for member in members}
    settled: set[str] = set()
    for k, member in enumerate(members):
        if member.parent is not None and member.parent not in parent:
            yield Problem(f"{place}[{k}].parent", show(member.parent), one_of(parent))
        path: list[str] = []
        at: str | None = member.name
        while at in parent and at not in settled and at not in path:
            path.append(at)
            at = parent[at]
        if at in path:
            around = [show(name) for name in [*path[path.index(at) :], at]]
            cycle = " in ".join(around if len(around) <= 8 else [*around[:7], "…", around[-1]])
            tree = f"a tree of {place.rpartition('.')[2]}"
            yield Problem(f"{place}[{k}].parent", f"a cycle: {cycle}", tree)
        settled.update(path)


def fault_problems(faults: Faults, cluster: Cluster) -> Iterator[Problem]:
    """Yield the inconsistencies in the faults on a (consistent) cluster."""
    nodes = sum(group.count for group in cluster.node_groups)
    for name in ("outages", "stragglers"):
        by_node: defaultdict[int, list[Span]] = defaultdict(list)
        for k, fault in enumerate(getattr(faults, name)):
            place = f"faults.{name}[{k}]"
            if fault.node >= nodes:
                yield Problem(f"{place}.node", str(fault.node), f"a node, 0 to {nodes - 1}")
            if fault.start_s >= fault.end_s:
                yield Problem(f"{place}.end_s", f"{fault.end_s:g}", f"after {fault.start_s:g}")
            if isinstance(fault, Outage) and fault.open and fault.notice_s is None:
                yield Problem(f"{place}.open", "true, for a failure", "notice_s too, or false")
            since_s = fault.known_s if name == "outages" else fault.start_s
            by_node[fault.node].append((since_s, fault.end_s, k))
        for node, spans in sorted(by_node.items()):
            yield from _apart(sorted(spans), f"faults.{name}", f" on node {node}")
    silences = [(start_s, end_s, k) for k, (start_s, end_s) in enumerate(faults.silences)]
    for start_s, end_s, k in silences:
        if start_s >= end_s:
            yield Problem(f"faults.silences[{k}]", show([start_s, end_s]), "a start before the end")
    yield from _apart(silences, "faults.silences", "")


def _apart(spans: list[Span], place: str, where: str) -> Iterator[Problem]:
    for before, after in pairwise(spans):
        if after[0] < before[1]:
            found = f"one{where} from {after[0]:g} s, while [{before[2]}] lasts"
            yield Problem(f"{place}[{after[2]}]", found, f"{before[1]:g} s or later")


def out_problems(cluster: Cluster) -> Iterator[Problem]:
    """Yield the inconsistencies in the GPUs out of service of a (consistent) cluster."""
    sizes = [group.gpus_per_node for group in cluster.node_groups for _ in range(group.count)]
    if any(a >= b for (a, _), (b, _) in pairwise(cluster.out)):
        yield Problem("cluster.out", show(cluster.out), "ascending nodes, each once")
    for k, (node, gpus) in enumerate(cluster.out):
        if node >= len(sizes):
            yield Problem(f"cluster.out[{k}]", f"node {node}", f"a node, 0 to {len(sizes) - 1}")
        elif gpus > sizes[node]:
            yield Problem(f"cluster.out[{k}]", f"{gpus} GPUs", f"at most the {sizes[node]} it has")
