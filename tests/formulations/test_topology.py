"""The tree of a cluster: what is above, below and beside, and its outline for people."""

import subprocess
import sys

import pytest

from ronda.formulations.topology import (
    cluster_tree,
    outline,
    racks_above,
)
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack


def group(name, rack=None, count=2, gpus=8, kind="v"):
    """Return equal nodes in a rack."""
    return NodeGroup(name=name, count=count, gpus_per_node=gpus, gpu_type=kind, rack=rack)


@pytest.fixture
def rows():
    """Return a cluster: a row of two racks and a node of its own, and two nodes in no rack."""
    return Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16), GpuType(name="w", memory_gib=16)),
        racks=(
            Rack(name="a", parent="row", power_cap_w=5000),
            Rack(name="row", parent=None),
            Rack(name="b", parent="row"),
        ),
        node_groups=(
            group("g0", "a"),
            group("g1", "b", kind="w"),
            group("g2", "row", count=1),
            group("g3"),
            group("g4", "a", count=1, gpus=4),
        ),
    )


def test_racks_above_are_named_from_the_inside_out(rows):
    """A rack, then what holds it; the rack without a name is in none."""
    assert racks_above(rows) == {"a": ("a", "row"), "b": ("b", "row"), "row": ("row",), "": ("",)}


def test_the_tree_is_made_once(rows):
    """A second question finds the tree of the first, with caps and GPUs on it."""
    tree = cluster_tree(rows)
    assert cluster_tree(rows) is tree
    assert tree.nodes["rack", "a"]["cap_w"] == 5000
    assert tree.nodes["node", 7] == {"pool": 0, "gpus": 4}


def lines(cluster):
    """Return an outline as lines, indented by depth."""
    drawn, found = outline(cluster, "name"), []

    def add(vertex, depth):
        found.append("  " * depth + drawn.nodes[vertex]["label"])
        for below in drawn.successors(vertex):
            add(below, depth + 1)

    add(0, 0)
    return found


def test_an_outline_counts_equal_nodes(rows):
    """Two nodes of 8 in rack a are one line with a count, the node of 4 another one."""
    assert lines(rows) == [
        "name: 8 nodes, 60 GPUs",
        "  rack row: 6 nodes, 44 GPUs",
        "    rack a: 3 nodes, 20 GPUs, at most 5,000 W",
        "      2 × node of 8 v",
        "      node of 4 v",
        "    rack b: 2 nodes, 16 GPUs",
        "      2 × node of 8 w",
        "    node of 8 v",
        "  nodes without a rack: 2 nodes, 16 GPUs",
        "    2 × node of 8 v",
    ]


def test_an_outline_counts_many_equal_racks():
    """Nine racks of two nodes are one line, the tenth with another cap is its own."""
    names = [f"r{k}" for k in range(10)]
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        racks=tuple(Rack(name=n, power_cap_w=9000 if n == "r3" else None) for n in names),
        node_groups=tuple(group(f"g{n}", n) for n in names),
    )
    assert lines(cluster) == [
        "name: 20 nodes, 160 GPUs",
        "  9 × rack (r0, …, r9): 2 nodes, 16 GPUs each",
        "    2 × node of 8 v",
        "  rack r3: 2 nodes, 16 GPUs, at most 9,000 W",
        "    2 × node of 8 v",
    ]


@pytest.mark.parametrize("policy", ["fifo", "prices"])
def test_decisions_do_not_load_networkx(policy):
    """Not even where racks have caps: a deadline is over before it is loaded."""
    code = f"""
import sys, ronda
from msgspec.structs import replace
made = ronda.load("probe-racks")
racks = tuple(replace(rack, power_cap_w=1e6) for rack in made.cluster.racks)
ronda.run(replace(made, cluster=replace(made.cluster, racks=racks)), {policy!r})
sys.exit("networkx" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
