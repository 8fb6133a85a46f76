"""The tree of a cluster, with nodes in racks, racks in other racks or rows, and one root.

`ronda.instances.cluster.Topology` has arrays of the GPUs, power and rack of each node. The tree is
a networkx graph, made at the first question about the places above or below another one.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from ronda.instances.base import Rows
from ronda.instances.cluster import Cluster
from ronda.instances.models.cache import per_record

if TYPE_CHECKING:
    import networkx as nx

Place = tuple[str, str | int]
"""A vertex of the tree, as its kind ("cluster", "rack", "node") and a rack's name or node index."""

ROOT: Place = ("cluster", "")

FEW = 6
"""The most equal racks below one place that an outline shows one by one."""


@per_record(maxsize=8)
def cluster_tree(cluster: Cluster) -> "nx.DiGraph[Place]":
    """Return the tree, with edges from the root to the nodes; callers must not change it.

    Racks have the attribute `cap_w` (watts or None). Nodes have the attributes `pool` (index) and
    `gpus`. Nodes outside any rack share the rack "".
    """
    import networkx as nx

    topology = cluster.topology
    tree: nx.DiGraph[Place] = nx.DiGraph()
    tree.add_node(ROOT)
    for rack in cluster.racks:
        above = ROOT if rack.parent is None else ("rack", rack.parent)
        tree.add_edge(above, ("rack", rack.name))
        tree.add_node(("rack", rack.name), cap_w=rack.power_cap_w)
    if "" in topology.racks:
        tree.add_edge(ROOT, ("rack", ""))
        tree.add_node(("rack", ""), cap_w=None)
    racks, pools = topology.node_rack.tolist(), topology.node_pool.tolist()
    for node, gpus in enumerate(topology.node_gpus.tolist()):
        tree.add_node(("node", node), pool=pools[node], gpus=gpus)
        tree.add_edge(("rack", topology.racks[racks[node]]), ("node", node))
    return tree


@per_record(maxsize=8)
def racks_above(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Return for each rack its name and the names of all racks that hold it, from the inside out.

    Decisions call this function, so it does without networkx, which takes half a second to load.
    """
    parents: dict[str | None, str | None] = {rack.name: rack.parent for rack in cluster.racks}
    found = {}
    for name in (*(rack.name for rack in cluster.racks), *cluster.topology.racks):
        path, above = [name], parents.get(name)
        while above is not None:
            path.append(above)
            above = parents[above]
        found[name] = tuple(path)
    return found


@per_record(maxsize=32)
def regions(cluster: Cluster, within: str) -> Rows:
    """Return the region of each node, (N,): itself, or its innermost rack of a level.

    Racks are numbered as in ``cluster.racks``; -1 is outside all racks of the level.
    """
    topology = cluster.topology
    if within == "node":
        return np.arange(len(topology.node_gpus))
    number = {rack.name: r for r, rack in enumerate(cluster.racks) if rack.level == within}
    above = racks_above(cluster)
    at = [next((number[r] for r in above[name] if r in number), -1) for name in topology.racks]
    return np.array(at)[topology.node_rack]


def outline(cluster: Cluster, name: str) -> "nx.DiGraph[int]":
    """Return a readable tree, in which equal nodes and many equal racks are one counted vertex.

    Vertices are numbered from the root, 0, and have the attributes `kind` and `label`.
    """
    import networkx as nx

    tree = cluster_tree(cluster)
    drawn: nx.DiGraph[int] = nx.DiGraph()

    def add(places: list[Place], above: int | None) -> None:
        vertex = len(drawn)
        drawn.add_node(vertex, kind=places[0][0], label=_label(cluster, places, name))
        if above is not None:
            drawn.add_edge(above, vertex)
        for equal in _equal_parts(tree, places[0]):
            add(equal, vertex)

    add([ROOT], None)
    return drawn


def _equal_parts(tree: "nx.DiGraph[Place]", place: Place) -> list[list[Place]]:
    """Return the parts directly below a place, grouped if equal; skip a lone unnamed rack."""
    below = list(tree.successors(place))
    if below == [("rack", "")]:
        return _equal_parts(tree, below[0])
    alike: defaultdict[Hashable, list[Place]] = defaultdict(list)
    for part in below:
        alike[_shape(tree, part)].append(part)
    found = []
    for parts in alike.values():
        together = parts[0][0] == "node" or len(parts) > FEW
        found += [parts] if together else [[part] for part in parts]
    return sorted(found, key=lambda parts: below.index(parts[0]))


def _shape(tree: "nx.DiGraph[Place]", place: Place) -> Hashable:
    below = Counter(_shape(tree, part) for part in tree.successors(place))
    return place[0], tuple(tree.nodes[place].values()), frozenset(below.items())


def _label(cluster: Cluster, places: list[Place], name: str) -> str:
    """Return a text that describes equal places."""
    import networkx as nx

    tree, pools = cluster_tree(cluster), cluster.topology.pools
    kind, first = places[0]
    times = f"{len(places)} × " if len(places) > 1 else ""
    if kind == "node":
        about = tree.nodes[places[0]]
        pool = pools[about["pool"]]
        owner = f", {pool.partition}" if len({pool.partition for pool in pools}) > 1 else ""
        return f"{times}node of {about['gpus']} {pool.gpu_type.name}{owner}"
    gpus = [tree.nodes[p]["gpus"] for p in nx.descendants(tree, places[0]) if p[0] == "node"]
    size = f"{len(gpus)} node{'s' * (len(gpus) != 1)}, {sum(gpus):,} GPU{'s' * (sum(gpus) != 1)}"
    if kind == "cluster":
        return f"{name}: {size}"
    called = f"rack {first}" if first else "nodes without a rack"
    if times:
        called, size = f"{times}rack ({first}, …, {places[-1][1]})", f"{size} each"
    cap_w = tree.nodes[places[0]]["cap_w"]
    return f"{called}: {size}" + (f", at most {cap_w:,g} W" if cap_w is not None else "")
