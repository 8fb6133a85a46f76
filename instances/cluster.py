"""The cluster: GPU types, groups of equal nodes, racks, partitions and their pools."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ronda.instances.arguments import checked
from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record, Share


class PartProfile(Record, frozen=True, kw_only=True):
    """A part of a GPU that one job may have (a MIG profile).

    Attributes
    ----------
    name
        The name that jobs refer to.
    compute, memory
        Compute and memory slices that it takes.
    starts
        First memory slices at which it may begin, ascending.
    most
        Most such parts on one GPU.
    speed
        Speed as a fraction of the whole GPU's; None for its share of the compute slices.
    """

    name: Name
    compute: Count
    memory: Count
    starts: tuple[Index, ...]
    most: Count
    speed: Share | None = None


class Parts(Record, frozen=True, kw_only=True):
    """The ways to cut one GPU.

    Attributes
    ----------
    compute, memory
        Compute and memory slices of the whole GPU.
    profiles
        The parts that may be cut.
    """

    compute: Count
    memory: Count
    profiles: tuple[PartProfile, ...]


def _sevenths(one: int, two: int, four: int, eight: int) -> Parts:
    """Return the MIG profiles of a GPU, named by the GB in 1, 2, 4 and 8 of its memory slices."""
    rows = (
        (f"1g.{one}gb", 1, 1, range(7), 7),
        (f"1g.{one}gb+me", 1, 1, range(7), 1),
        (f"1g.{two}gb", 1, 2, (0, 2, 4, 6), 4),
        (f"2g.{two}gb", 2, 2, (0, 2, 4), 3),
        (f"3g.{four}gb", 3, 4, (0, 4), 2),
        (f"4g.{four}gb", 4, 4, (0,), 1),
        (f"7g.{eight}gb", 7, 8, (0,), 1),
    )
    return _parts(7, 8, rows)


def _parts(
    compute: int, memory: int, rows: Iterable[tuple[str, int, int, Iterable[int], int]]
) -> Parts:
    profiles = tuple(
        PartProfile(name=name, compute=c, memory=m, starts=tuple(starts), most=most)
        for name, c, m, starts, most in rows
    )
    return Parts(compute=compute, memory=memory, profiles=profiles)


BUILT_IN = {
    "A100-40": _sevenths(5, 10, 20, 40),
    "A100-80": _sevenths(10, 20, 40, 80),
    "H100": _sevenths(10, 20, 40, 80),
    "H100-80": _sevenths(10, 20, 40, 80),
    "H100-94": _sevenths(12, 24, 47, 94),
    "H200": _sevenths(18, 35, 71, 141),
    "B200": _sevenths(23, 45, 90, 180),
    "GB200": _sevenths(23, 47, 93, 186),
    "A30": _parts(
        4,
        4,
        (
            ("1g.6gb", 1, 1, range(4), 4),
            ("2g.12gb", 2, 2, (0, 2), 2),
            ("4g.24gb", 4, 4, (0,), 1),
        ),
    ),
}
"""The parts of GPU types that state none, by name.

The numbers per GPU are those of NVIDIA mig-parted (its builder's tests and default configuration),
and the starts of the A100 are those of its mock devices. All other starts are our inference from
equal numbers.
"""


class GpuType(Record, frozen=True, kw_only=True):
    """One model of accelerator.

    Attributes
    ----------
    name
        The name that node groups and profiles refer to.
    memory_gib
        Memory of one GPU in GiB.
    idle_w
        Power in watts of one powered GPU that runs nothing.
    clocks
        Selectable clock (or power-cap) levels as fractions of the maximum, in ascending order up to
        1.
    parts
        The ways to cut one GPU; None for those of the type's name, if it is in `BUILT_IN`.
    """

    name: Name
    memory_gib: Positive
    idle_w: NonNegative = 0.0
    clocks: tuple[Share, ...] = (1.0,)
    parts: Parts | None = None

    @property
    def ways(self) -> Parts | None:
        """The ways to cut the GPU: those stated, or built in by its name; None for none."""
        return self.parts or BUILT_IN.get(self.name)

    def profile(self, part: str | None) -> PartProfile | None:
        """Return the part of the given name, or None if the GPU does not have it."""
        ways = None if part is None else self.ways
        return next((p for p in ways.profiles if p.name == part), None) if ways else None

    def fraction(self, part: str | None, share: float | None) -> float | None:
        """Return the fraction of a GPU that a part or a share counts for; None for whole GPUs.

        A part counts for its compute slices. (KAI counts the first digit of a profile's name, as
        whole GPUs.)
        """
        ways, profile = self.ways, self.profile(part)
        return share if ways is None or profile is None else profile.compute / ways.compute

    def speed(self, part: str | None, share: float | None) -> float:
        """Return the speed of a part or a share as a fraction of the whole GPU's.

        The speed of a share is itself: this is a convention, which nothing enforces without MPS.
        """
        profile = self.profile(part)
        if profile is not None and profile.speed is not None:
            return profile.speed
        return self.fraction(part, share) or 1.0


class NodeGroup(Record, frozen=True, kw_only=True):
    """A group of equal nodes in one rack and one partition.

    Attributes
    ----------
    name
        Name of the group.
    count
        Number of nodes.
    gpus_per_node
        GPUs in each node.
    gpu_type
        Name of the `GpuType`.
    rack
        Name of the `Rack` that holds the nodes; groups without a rack share an unnamed one.
    partition
        Name of the `Partition` (virtual cluster) that owns the nodes.
    host_idle_w
        Power in watts of a powered node without its GPUs.
    sleep_w
        Power in watts of a sleeping node, including its GPUs.
    wake_s
        Seconds from the wake-up order until the node can run jobs.
    wake_w
        Power in watts that the node draws on top of its idle power while it wakes.
    has
        Amount of each countable resource of one host, such as ``cpu`` and ``memory_gib``. A
        resource that it does not name is 0, or unlimited if no group names any.
    features
        Labels of the nodes, which jobs may ask for.
    recut
        When GPUs may be cut into parts: ``never`` (the layout `cut` is fixed), ``empty`` (only GPUs
        without a job), or ``free`` (in free slices beside running parts).
    cut
        Names of the parts on every GPU, if the layout is fixed.
    shared
        Whether jobs that ask for a fraction of a GPU may share one.
    """

    name: Name
    count: Count
    gpus_per_node: Count
    gpu_type: Name
    rack: Name | None = None
    partition: Name = "default"
    host_idle_w: NonNegative = 0.0
    sleep_w: NonNegative = 0.0
    wake_s: NonNegative = 0.0
    wake_w: NonNegative = 0.0
    has: dict[str, NonNegative] = {}
    features: tuple[Name, ...] = ()
    recut: Literal["never", "empty", "free"] = "never"
    cut: tuple[Name, ...] = ()
    shared: bool = False

    def offers(self, part: str | None) -> bool:
        """Return whether jobs may have a part here, or fractions of GPUs (None)."""
        if part is None:
            return self.shared
        return self.recut != "never" or part in self.cut


class Rack(Record, frozen=True, kw_only=True):
    """A rack (or row, or pod); racks form a tree.

    Attributes
    ----------
    name
        The name that node groups and other racks refer to.
    parent
        Name of the rack above it, or None.
    power_cap_w
        The most watts that all nodes below it may draw together.
    level
        Level of the tree, such as ``rack`` or ``block``, which jobs and neighbourhoods refer to.
    """

    name: Name
    parent: Name | None = None
    power_cap_w: Positive | None = None
    level: Name = "rack"


class Partition(Record, frozen=True, kw_only=True):
    """A virtual cluster: a part of the cluster whose nodes are reserved for its own jobs.

    Attributes
    ----------
    name
        The name that node groups and jobs refer to.
    """

    name: Name


@dataclass(frozen=True)
class Pool:
    """A set of interchangeable GPUs: one GPU type in one partition."""

    partition: str
    gpu_type: GpuType
    gpus: int  # in service
    nodes: int  # in service
    gpus_per_node: int  # of the largest node
    racks: int  # with nodes of the pool

    @cached_property
    def name(self) -> str:
        """The name in constraints, prices and tables."""
        return f"{self.partition}/{self.gpu_type.name}"


@dataclass(frozen=True)
class Topology:
    """The nodes of a cluster as parallel arrays, numbered group by group in the file's order.

    Attributes
    ----------
    pools
        The pools, in order of first appearance.
    node_gpus, node_pool, node_rack, node_group
        GPUs in service, and indices of the pool, rack and node group of each node, shape (N,).
    racks
        Names of the racks that `node_rack` indexes ("" is the unnamed rack).
    host_idle_w, sleep_w, wake_s, wake_w, gpu_idle_w
        Powers in watts and wake-up delay in seconds of each node, shape (N,); `gpu_idle_w` is the
        power of one GPU.
    """

    pools: tuple[Pool, ...]
    node_gpus: NDArray[np.int64]
    node_pool: NDArray[np.int64]
    node_rack: NDArray[np.int64]
    node_group: NDArray[np.int64]
    racks: tuple[str, ...]
    host_idle_w: NDArray[np.float64]
    sleep_w: NDArray[np.float64]
    wake_s: NDArray[np.float64]
    wake_w: NDArray[np.float64]
    gpu_idle_w: NDArray[np.float64]

    @cached_property
    def awake_w(self) -> NDArray[np.float64]:
        """The watts of each node when awake with all GPUs idle, shape (N,); read-only."""
        return _read_only(self.host_idle_w + self.node_gpus * self.gpu_idle_w)

    @cached_property
    def waking_w(self) -> NDArray[np.float64]:
        """The extra watts of each node while it wakes, 0 without a delay, shape (N,); read-only."""
        return _read_only(self.wake_w * (self.wake_s > 0))

    def in_service(self, pool: int) -> NDArray[np.bool_]:
        """Return whether each node belongs to a pool and has GPUs in service, shape (N,)."""
        return np.asarray((self.node_pool == pool) & (self.node_gpus > 0))

    def racks_of(self, nodes: Iterable[int]) -> int:
        """Return the number of racks that some nodes are in."""
        return len({int(self.node_rack[node]) for node in nodes})

    @property
    def idle_w(self) -> float:
        """The power in watts of the cluster with every node awake and every GPU idle."""
        return float(self.awake_w.sum())


def _read_only(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values.flags.writeable = False
    return values


class Cluster(Record, frozen=True, kw_only=True, dict=True):
    """A cluster: all nodes that a scheduler manages.

    Attributes
    ----------
    gpu_types
        GPU models, at least one.
    node_groups
        Groups of equal nodes, at least one.
    racks
        The racks that node groups refer to by name, and the racks above them.
    partitions
        The partitions that node groups and jobs refer to by name; "default" needs no entry.
    out
        In a round, pairs (node, number of its GPUs that are out of service), by ascending node. A
        node with no GPU in service is off and draws nothing.
    taken
        What work outside ronda holds on nodes, as triples (node, host resource, amount).
    licences
        Number of each licence, for all nodes together.
    licences_taken
        Licences that work outside ronda holds.
    """

    gpu_types: tuple[GpuType, ...]
    node_groups: tuple[NodeGroup, ...]
    racks: tuple[Rack, ...] = ()
    partitions: tuple[Partition, ...] = ()
    out: tuple[tuple[Index, Count], ...] = ()
    taken: tuple[tuple[Index, Name, NonNegative], ...] = ()
    licences: dict[str, Index] = {}
    licences_taken: dict[str, Index] = {}

    @cached_property
    def topology(self) -> Topology:
        """The nodes as arrays, computed only once."""
        types = {t.name: t for t in self.gpu_types}
        groups = self.node_groups
        keys = list(dict.fromkeys((g.partition, g.gpu_type) for g in groups))
        racks = tuple(dict.fromkeys(g.rack or "" for g in groups))
        pools = []
        for partition, gpu_type in keys:
            own = [g for g in groups if (g.partition, g.gpu_type) == (partition, gpu_type)]
            pools.append(
                Pool(
                    partition,
                    types[gpu_type],
                    sum(g.count * g.gpus_per_node for g in own),
                    sum(g.count for g in own),
                    max(g.gpus_per_node for g in own),
                    len({g.rack or "" for g in own}),
                )
            )
        counts = [g.count for g in groups]

        def per_node(values: list[float]) -> NDArray[np.float64]:
            return np.repeat(np.asarray(values, dtype=float), counts)

        def per_node_int(values: list[int]) -> NDArray[np.int64]:
            return np.repeat(np.asarray(values, dtype=np.int64), counts)

        whole = Topology(
            pools=tuple(pools),
            node_gpus=per_node_int([g.gpus_per_node for g in groups]),
            node_pool=per_node_int([keys.index((g.partition, g.gpu_type)) for g in groups]),
            node_rack=per_node_int([racks.index(g.rack or "") for g in groups]),
            node_group=per_node_int(list(range(len(groups)))),
            racks=racks,
            host_idle_w=per_node([g.host_idle_w for g in groups]),
            sleep_w=per_node([g.sleep_w for g in groups]),
            wake_s=per_node([g.wake_s for g in groups]),
            wake_w=per_node([g.wake_w for g in groups]),
            gpu_idle_w=per_node([types[g.gpu_type].idle_w for g in groups]),
        )
        return _in_service(whole, self.out) if self.out else whole

    @property
    def gpus(self) -> int:
        """The number of GPUs in all pools."""
        return sum(g.count * g.gpus_per_node for g in self.node_groups)


def _in_service(whole: Topology, out: tuple[tuple[int, int], ...]) -> Topology:
    """Return the topology without the GPUs that are out of service.

    A node with some GPUs in service draws the idle power of all its GPUs. A node with none is off.
    """
    missing = np.zeros_like(whole.node_gpus)
    for node, gpus in out:
        missing[node] = gpus
    gpus_left = whole.node_gpus - missing
    up = gpus_left > 0

    def left(index: int, pool: Pool) -> Pool:
        own = whole.node_pool == index
        return replace(pool, gpus=int(gpus_left[own].sum()), nodes=int(up[own].sum()))

    return replace(
        whole,
        pools=tuple(left(index, pool) for index, pool in enumerate(whole.pools)),
        node_gpus=gpus_left,
        host_idle_w=(whole.host_idle_w + missing * whole.gpu_idle_w) * up,
        sleep_w=whole.sleep_w * up,
        wake_w=whole.wake_w * up,
    )


def partitions_of(names: Iterable[str]) -> tuple[Partition, ...]:
    """Return the partitions of some names, each once; the one called "default" needs no entry."""
    return tuple(Partition(name=name) for name in dict.fromkeys(names) if name != "default")


@checked
def uniform_cluster(gpu: GpuType, nodes: Count, gpus_per_node: Count, **rest: Any) -> Cluster:
    """Return a cluster of equal nodes; `rest` holds further fields of their `NodeGroup`."""
    group = checked(NodeGroup)(
        name="nodes", count=nodes, gpus_per_node=gpus_per_node, gpu_type=gpu.name, **rest
    )
    return Cluster(gpu_types=(gpu,), node_groups=(group,))
