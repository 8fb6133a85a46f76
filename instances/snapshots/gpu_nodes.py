"""The nodes of a snapshot that have GPUs, as the cluster of a round."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack, partitions_of
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Noted, SeenJob, SeenNode, Snapshot
from ronda.instances.traces.rigid import MACHINES, UNKNOWN_GIB, machine_of


def label_of(partitions: Iterable[str]) -> str:
    """Return the feature of nodes that jobs of any of some partitions may use."""
    return "partition:" + "|".join(sorted(partitions))


class GpuNodes:
    """Nodes with GPUs in equal groups, and their numbers in a round.

    Partitions of a round own their nodes. If each node and each job has exactly one partition, they
    stay as they are. Otherwise there is one, and nodes have a feature for each set of partitions
    that jobs name. `apart` says which, `nodes` are in the order of the round, and `number` has
    their places in it by name.
    """

    def __init__(self, seen: Snapshot, jobs: Sequence[SeenJob], noted: Noted) -> None:
        able = [node for node in seen.nodes if node.has.get(GPUS, 0) >= 1]
        self.noted = noted
        named = [each.partitions for each in able] + [each.partitions for each in jobs]
        self.apart = all(len(partitions) == 1 for partitions in named)
        self._asked = sorted({job.partitions for job in jobs if job.partitions})
        self._racks: dict[tuple[tuple[str, str], ...], Rack] = {}
        alike: dict[bytes, list[SeenNode]] = {}
        for node in able:
            alike.setdefault(msgspec.json.encode(self._group(node)), []).append(node)
        self.nodes = [node for members in alike.values() for node in members]
        self.number = {node.name: k for k, node in enumerate(self.nodes)}
        self._groups = [
            replace(
                self._group(members[0]),
                name="..".join(dict.fromkeys((members[0].name, members[-1].name))),
                count=len(members),
            )
            for members in alike.values()
        ]

    def home(self, partitions: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the partition of a round, and the features, for a job of some partitions."""
        if self.apart:
            return partitions[0], ()
        return "default", (label_of(partitions),) if partitions else ()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster in full: nothing out of service, nothing taken."""
        types: dict[str, GpuType] = {}
        for node in self.nodes:
            name = _model(node)
            if name not in types:
                types[name] = self._type(name, node)
        return Cluster(
            gpu_types=tuple(types.values()),
            node_groups=tuple(self._groups),
            racks=tuple(self._racks.values()),
            partitions=partitions_of(group.partition for group in self._groups),
        )

    def _group(self, node: SeenNode) -> NodeGroup:
        whole = int(node.has[GPUS])
        asked = [set(p) for p in self._asked if not node.partitions or {*p} & {*node.partitions}]
        labels = () if self.apart else tuple(label_of(p) for p in asked)
        return NodeGroup(
            name="alike",
            count=1,
            gpus_per_node=whole,
            gpu_type=_model(node),
            rack=self._rack(node.racks),
            partition=node.partitions[0] if self.apart else "default",
            has={of: amount for of, amount in node.has.items() if of != GPUS},
            features=(*node.features, *labels),
            recut=node.recut,
            cut=node.cut,
            shared=node.shared,
        )

    def _rack(self, path: tuple[tuple[str, str], ...]) -> str | None:
        """Return the name of the innermost rack of a path; racks of one name get longer ones."""
        for depth in range(1, len(path) + 1):
            key, (level, name) = path[:depth], path[depth - 1]
            if key not in self._racks:
                if any(rack.name == name for rack in self._racks.values()):
                    name = "/".join(part for _, part in key)
                above = self._racks[key[:-1]].name if depth > 1 else None
                self._racks[key] = Rack(name=name, parent=above, level=level)
        return self._racks[path].name if path else None

    def _type(self, name: str, node: SeenNode) -> GpuType:
        if node.gpu_memory_gib is None and name.lower() not in MACHINES:
            self.noted.add(f"GPU type taken to have {UNKNOWN_GIB:g} GiB, as none are told", name)
        memory_gib = node.gpu_memory_gib or machine_of(name).gpu.memory_gib
        return GpuType(name=name, memory_gib=memory_gib, parts=node.parts)


def _model(node: SeenNode) -> str:
    return node.gpu_type or "gpu"
