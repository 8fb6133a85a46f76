"""Real networks: clusters whose hosts are grouped by their switches."""

from pathlib import Path

from ronda.instances.cluster import Cluster, NodeGroup, Rack
from ronda.instances.traces.rigid import A100_NODE


def read_hosts(path: str | Path) -> Cluster:
    """Return a cluster of equal nodes in racks, from a CSV file of hosts and switches.

    Each host has a core, an aggregation and a top-of-rack switch (``DSW``, ``PSW``, ``ASW``), as in
    the data of Alibaba's Lingjun cluster (Cao et al., SIGCOMM 2024). A rack holds the hosts of one
    top-of-rack switch below one aggregation switch, which becomes the pod above the rack. The file
    does not describe the nodes. Nodes of Lingjun have 8 A100 each; their watts are an assumption.

    Raises
    ------
    InputError
        If the file cannot be read or lacks a column.
    """
    from ronda.instances.traces.table import read_columns, refuse  # loads pandas

    names = {"core": ("DSW",), "pod": ("PSW",), "rack": ("ASW",)}
    hosts = read_columns(path, names, kind="host")
    for column, header in hosts.attrs["headers"].items():
        refuse(path, hosts, (hosts[column] == "").to_numpy(), column, "a switch", header)
    racks = hosts.groupby(["core", "pod", "rack"]).size()
    above = {Rack(name=core) for core, _, _ in racks.index}
    above |= {Rack(name=f"{core}/{pod}", parent=core) for core, pod, _ in racks.index}
    lowest = [
        Rack(name=f"{core}/{pod}/{rack}", parent=f"{core}/{pod}") for core, pod, rack in racks.index
    ]
    groups = (
        NodeGroup(
            name=rack.name,
            count=int(count),
            gpus_per_node=A100_NODE.gpus,
            gpu_type=A100_NODE.gpu.name,
            rack=rack.name,
            host_idle_w=A100_NODE.host_idle_w,
        )
        for rack, count in zip(lowest, racks, strict=True)
    )
    return Cluster(
        gpu_types=(A100_NODE.gpu,),
        racks=(*sorted(above, key=lambda rack: rack.name), *lowest),
        node_groups=tuple(groups),
    )
