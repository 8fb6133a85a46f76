"""Real networks: the hosts of a cluster below their switches, and what is inside one node."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from ronda.instances.cluster import Cluster, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, load, unpack
from ronda.instances.traces.rigid import A100_NODE

if TYPE_CHECKING:
    import networkx as nx

# The first digits of a PCI device's class.
_DEVICES = {
    "0x0604": ("switch", "PCIe switch"),
    "0x0302": ("gpu", "GPU"),
    "0x0207": ("nic", "network interface"),
    "0x0200": ("nic", "network interface"),
}


def read_hosts(path: str | Path) -> Cluster:
    """Return a cluster of equal nodes below the switches that a CSV file of hosts names.

    Each host has its core, aggregation and top-of-rack switch (``DSW``, ``PSW``, ``ASW``), as in
    the data of Alibaba's Lingjun cluster (Cao et al., SIGCOMM 2024). A rack holds the hosts of one
    top-of-rack switch below one aggregation switch, which is the pod above it. The file says
    nothing of the nodes: Lingjun's have 8 A100 each, and their watts are an assumption.

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


class _Part(NamedTuple):
    """What is inside a node: its kind, its name, and what hangs on it."""

    kind: str
    label: str
    below: tuple["_Part", ...]


def read_node(path: str | Path) -> "nx.DiGraph[int]":
    """Return what an NCCL topology file says is inside a node, equal parts as one with a count.

    NUMA domains, PCIe switches, GPUs and network interfaces with the speed of their PCIe links.
    Vertices are numbered from the node, 0, and have `kind` and `label`, as those of
    `ronda.formulations.topology.outline`.

    Raises
    ------
    InputError
        If the file cannot be read or describes no GPU.
    """
    import networkx as nx

    expected = "a topology file of NCCL: <system> with <cpu> and <pci>"
    text = unpack(load(Path(path)), label(path))
    try:
        system = ET.fromstring(text)
    except ET.ParseError as error:
        raise InputError(str(path), str(error), expected) from None
    kinds = (_DEVICES.get(e.get("class", "")[:6]) for e in system.iter("pci"))
    gpus = sum(kind is not None and kind[0] == "gpu" for kind in kinds)
    if not gpus:
        raise InputError(str(path), f"<{system.tag}> without a GPU", expected)
    drawn: nx.DiGraph[int] = nx.DiGraph()

    def add(part: _Part, count: int, above: int | None) -> None:
        vertex, times = len(drawn), f"{count} × " if count > 1 else ""
        drawn.add_node(vertex, kind=part.kind, label=f"{times}{part.label}")
        if above is not None:
            drawn.add_edge(above, vertex)
        for below, number in Counter(part.below).items():
            add(below, number, vertex)

    inside = f"{Path(path).stem}: a node of {gpus} GPUs"
    add(_Part("node", inside, _parts(system)), 1, None)
    return drawn


def _parts(element: ET.Element) -> tuple[_Part, ...]:
    """Return what hangs on an element of the file."""
    found = []
    for part in element:
        if part.tag == "cpu":
            found.append(_Part("processor", "NUMA domain", _parts(part)))
        elif part.tag == "pci":
            code = part.get("class", "")
            kind, name = _DEVICES.get(code[:6], ("device", f"device of class {code}"))
            speed = part.get("link_speed", "").removesuffix(" PCIe")
            link = f": PCIe {speed} × {part.get('link_width')}" if speed else ""
            found.append(_Part(kind, name + link, _parts(part)))
    return tuple(found)
