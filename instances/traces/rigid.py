"""Instances of rigid jobs, made from canonical job rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from ronda.instances.base import Name, NonNegative, Positive
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, partitions_of
from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import PowerCurve, rigid_profile

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node of a trace's cluster, whose GPUs draw the same busy watts in every job.

    No trace has measured power. `host_idle_w` is the power of the host without its GPUs.
    """

    gpu: GpuType
    gpus: int
    busy_w: float
    host_idle_w: float


# Idle and maximum watts: data-sheet values as used by the PWR scheduler (CCGrid'25) for the openb
# nodes. No trace states the power of its hosts; their watts are assumed round figures.
V100_NODE = Machine(
    gpu=GpuType(name="V100", memory_gib=32.0, idle_w=30.0), gpus=8, busy_w=300.0, host_idle_w=300.0
)
P100_NODE = Machine(
    gpu=GpuType(name="P100", memory_gib=16.0, idle_w=25.0), gpus=8, busy_w=250.0, host_idle_w=300.0
)
A100_NODE = Machine(
    gpu=GpuType(name="A100", memory_gib=40.0, idle_w=50.0), gpus=8, busy_w=400.0, host_idle_w=500.0
)
T4_NODE = Machine(
    gpu=GpuType(name="T4", memory_gib=16.0, idle_w=10.0), gpus=4, busy_w=70.0, host_idle_w=150.0
)

MACHINES = {"v100": V100_NODE, "p100": P100_NODE, "a100": A100_NODE, "t4": T4_NODE}


UNKNOWN_GIB = 80.0
"""The memory of a GPU type that nobody described."""


def machine_of(kind: str, described: Sequence[Machine] = ()) -> Machine:
    """Return the description of a GPU type: one that was given, or of ronda's own."""
    for machine in (*described, *MACHINES.values()):
        if machine.gpu.name.lower() == kind.lower():
            return machine
    unknown = GpuType(name=kind, memory_gib=UNKNOWN_GIB)
    return Machine(gpu=unknown, gpus=8, busy_w=0.0, host_idle_w=0.0)


class _Card(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A GPU that is not in `MACHINES`, with the power of its host without GPUs."""

    name: Name
    memory_gib: Positive
    idle_w: NonNegative
    busy_w: NonNegative
    host_idle_w: NonNegative


def read_machine(text: str) -> Machine | None:
    """Return the node for a name in `MACHINES` or for ``name=H100,memory_gib=80,...``, else None.

    The other fields are ``idle_w``, ``busy_w`` and ``host_idle_w``.
    """
    if text in MACHINES:
        return MACHINES[text]
    pairs = dict(part.strip().partition("=")[::2] for part in text.split(","))
    try:
        card = msgspec.convert(pairs, type=_Card, strict=False)
    except msgspec.ValidationError:
        return None
    if not (isfinite(card.memory_gib + card.host_idle_w) and card.idle_w <= card.busy_w < inf):
        return None
    gpu = GpuType(name=card.name, memory_gib=card.memory_gib, idle_w=card.idle_w)
    return Machine(gpu=gpu, gpus=8, busy_w=card.busy_w, host_idle_w=card.host_idle_w)


# The cost of resuming a preempted job, by its GPUs, in Helios's SRTF (artifact of SC'21).
HELIOS_COSTS = Costs(restart_by_gpus=((1, 7.0), (8, 30.0), (9, 60.0)))
RESTARTS = "restarts: 7 s on 1 GPU, 30 s on up to 8, 60 s on more, assumed as in Helios"


def busy_power(machine: Machine) -> dict[str, PowerCurve]:
    """Return the power curve through a GPU's idle and busy watts, which all jobs share."""
    idle_w = machine.gpu.idle_w
    return {machine.gpu.name: PowerCurve(a_w=idle_w, b_w=machine.busy_w - idle_w, s0=1.0)}


def make_cluster(machine: Machine, nodes: int | Mapping[str, int]) -> Cluster:
    """Return a cluster of equal nodes, with a partition for each virtual cluster in `nodes`."""
    counts = {"default": nodes} if isinstance(nodes, int) else dict(nodes)
    groups = tuple(
        NodeGroup(
            name=vc,
            count=count,
            gpus_per_node=machine.gpus,
            gpu_type=machine.gpu.name,
            partition=vc,
            host_idle_w=machine.host_idle_w,
        )
        for vc, count in counts.items()
    )
    return Cluster(
        gpu_types=(machine.gpu,),
        node_groups=groups,
        partitions=partitions_of(counts),
    )


def plain_cluster(nodes: Iterable[tuple[int, int]]) -> Cluster:
    """Return a cluster of which only the numbers of nodes and of GPUs on each are known."""
    groups = tuple(
        NodeGroup(name=f"nodes{k}", count=count, gpus_per_node=gpus, gpu_type="gpu")
        for k, (count, gpus) in enumerate(nodes, 1)
    )
    return Cluster(gpu_types=(GpuType(name="gpu", memory_gib=UNKNOWN_GIB),), node_groups=groups)


SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
"""The cells that mean yes and no, in lower case."""


def job_of(
    row: Any,
    *,
    profile: str = "rigid",
    partition: str = "default",
    speed: float = 1.0,
    **fields: Any,
) -> Job:
    """Return the job of a canonical row; `fields` are `Job` fields that are not in its cells.

    The true work is given, or is the run time times `speed`. The estimate follows from the time
    limit if there is one above 0. Otherwise it is the truth, as for the SJF and SRTF of the
    literature (oracle sizes).
    """
    work = row.work if row.work > 0 else row.duration_s * speed
    told = row.limit_s * speed if row.limit_s > 0 else work
    return Job(
        id=row.job_id,
        submit_s=row.submit_s,
        profile=profile,
        gpus=int(row.num_gpus),
        partition=partition,
        preemptible=SWITCH.get(row.preemptible.lower(), True),
        weight=row.weight if row.weight > 0 else 1.0,
        deadline_s=row.due_s if row.due_s > row.submit_s else None,
        user=row.user or None,
        name=row.name or None,
        estimate=Estimate(work=told) if told > 0 else None,
        truth=Truth(work=work) if work > 0 else None,
        **fields,
    )


def rigid_instance(
    frame: "pd.DataFrame",
    *,
    path: str | Path,
    name: str,
    machine: Machine,
    nodes: int | Mapping[str, int],
    **words: Any,
) -> Instance:
    """Return the instance in which every job runs for its traced time on its requested GPUs.

    The rows come from `ronda.instances.traces.table.clean_jobs`. Rounds happen only at submissions
    and completions. With `nodes` per virtual cluster, each job runs in the partition of its virtual
    cluster. With a plain number, all jobs share one partition. A job that is larger than its
    partition is refused.
    """
    from ronda.instances.traces.table import rows  # loads pandas

    cluster, jobs = make_cluster(machine, nodes), []
    size = {group.partition: group.count * group.gpus_per_node for group in cluster.node_groups}
    for row in rows(frame):
        partition = "default" if isinstance(nodes, int) else str(row.vc)
        if row.num_gpus > size[partition]:
            raise InputError(
                f"{path}, row {row.row}, num_gpus",
                str(row.num_gpus),
                f"at most the {size[partition]} GPUs of partition {partition!r}; "
                "give more nodes, or max_gpus to drop larger jobs",
            )
        jobs.append(job_of(row, partition=partition))
    return Instance(
        name=name,
        cluster=cluster,
        profiles={
            "rigid": structs.replace(rigid_profile(machine.gpu.name), power=busy_power(machine))
        },
        jobs=tuple(jobs),
        costs=HELIOS_COSTS,
        cadence=Cadence(period_s=None, on_event=True),
        **words,
    )
