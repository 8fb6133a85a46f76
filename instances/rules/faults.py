"""What must hold for faults: nodes that exist, and one thing at a time on each."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from ronda.instances.cluster import Cluster
from ronda.instances.faults import Faults
from ronda.instances.rules.problem import Problem, show

Span = tuple[float, float, int]  # from, until, index in the list


def fault_problems(faults: Faults, cluster: Cluster) -> Iterator[Problem]:
    """Yield what is inconsistent in the faults of a (consistent) cluster."""
    nodes = sum(group.count for group in cluster.node_groups)
    for name in ("outages", "stragglers"):
        by_node: defaultdict[int, list[Span]] = defaultdict(list)
        for k, fault in enumerate(getattr(faults, name)):
            place = f"faults.{name}[{k}]"
            if fault.node >= nodes:
                yield Problem(f"{place}.node", str(fault.node), f"a node, 0 to {nodes - 1}")
            if fault.start_s >= fault.end_s:
                yield Problem(f"{place}.end_s", f"{fault.end_s:g}", f"after {fault.start_s:g}")
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
    """Check that each span begins when the one before it is over, or later."""
    for before, after in pairwise(spans):
        if after[0] < before[1]:
            found = f"one{where} from {after[0]:g} s, while [{before[2]}] lasts"
            yield Problem(f"{place}[{after[2]}]", found, f"{before[1]:g} s or later")


def out_problems(cluster: Cluster) -> Iterator[Problem]:
    """Yield what is inconsistent in the GPUs out of service of a (consistent) cluster."""
    sizes = [group.gpus_per_node for group in cluster.node_groups for _ in range(group.count)]
    if any(a >= b for (a, _), (b, _) in pairwise(cluster.out)):
        yield Problem("cluster.out", show(cluster.out), "ascending nodes, each once")
    for k, (node, gpus) in enumerate(cluster.out):
        if node >= len(sizes):
            yield Problem(f"cluster.out[{k}]", f"node {node}", f"a node, 0 to {len(sizes) - 1}")
        elif gpus > sizes[node]:
            yield Problem(f"cluster.out[{k}]", f"{gpus} GPUs", f"at most the {sizes[node]} it has")
