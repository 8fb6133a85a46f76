"""Hosts below their switches: Lingjun's network."""

from collections import Counter
from pathlib import Path

import networkx as nx
import pytest

from ronda.formulations.topology import ROOT, cluster_tree, racks_above
from ronda.instances.errors import InputError
from ronda.instances.traces.fabric import read_hosts

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


def test_hosts_without_a_column_are_refused(tmp_path):
    """The header is named."""
    (tmp_path / "hosts.csv").write_text("host,DSW,PSW\nh,a,b\n")
    with pytest.raises(InputError, match="ASW"):
        read_hosts(tmp_path / "hosts.csv")
