"""Hosts below their switches, and what is inside a node: Lingjun's network, Azure's nodes."""

from collections import Counter
from pathlib import Path

import networkx as nx
import pytest

from ronda.formulations.topology import ROOT, cluster_tree, racks_above
from ronda.instances.errors import InputError
from ronda.instances.traces.fabric import read_hosts, read_node

SOURCE = Path(__file__).resolve().parents[2] / "data" / "topology"


def test_the_racks_of_lingjun():
    """847 hosts of 8 A100 below 48 top-of-rack, 3 aggregation switches and a core."""
    cluster = read_hosts(SOURCE / "lingjun_hosts.csv")
    assert (len(cluster.topology.node_gpus), cluster.gpus) == (847, 6776)
    tree = cluster_tree(cluster)
    assert nx.is_arborescence(tree)
    kinds = Counter(nx.single_source_shortest_path_length(tree, ROOT).values())
    assert kinds == {0: 1, 1: 1, 2: 3, 3: len(cluster.node_groups), 4: 847}
    above = racks_above(cluster)
    assert all(len(above[group.rack]) == 3 for group in cluster.node_groups)
    assert len({group.rack.split("/")[2] for group in cluster.node_groups}) == 48


@pytest.mark.parametrize(
    ("machine", "gpus", "numa", "switches"),
    [("ncv4", 4, 4, 0), ("ndv2", 8, 2, 0), ("ndv4", 8, 4, 4), ("ndv5", 8, 2, 8)],
)
def test_the_inside_of_azures_nodes(machine, gpus, numa, switches):
    """As Azure documents them; equal parts are drawn once, with how many there are."""
    drawn = read_node(SOURCE / f"azure_{machine}_nccl_topo.xml")
    assert f"{gpus} GPUs" in drawn.nodes[0]["label"]
    counted = Counter()
    for vertex, about in drawn.nodes(data=True):
        path = nx.shortest_path(drawn, 0, vertex)
        number = 1
        for place in path[1:]:
            times, _, _ = drawn.nodes[place]["label"].partition(" × ")
            number *= int(times) if times.isdigit() else 1
        counted[about["kind"]] += number
    assert (counted["gpu"], counted["processor"], counted["switch"]) == (gpus, numa, switches)


@pytest.mark.parametrize(
    ("text", "words"),
    [("<system/>", "without a GPU"), ("{}", "well-formed"), (None, "no such file")],
)
def test_what_is_no_node_is_refused(text, words, tmp_path):
    """The file, what was found, what was expected."""
    path = tmp_path / "node.xml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_node(path)
    assert str(caught.value).startswith(f"{path}: found ")
    assert "\n" not in str(caught.value)


def test_hosts_without_a_column_are_refused(tmp_path):
    """The header is named."""
    (tmp_path / "hosts.csv").write_text("host,DSW,PSW\nh,a,b\n")
    with pytest.raises(InputError, match="ASW"):
        read_hosts(tmp_path / "hosts.csv")
