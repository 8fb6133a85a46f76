"""Generated clusters: equal nodes, divided into GPU types, partitions, pods and racks."""

import math
from collections import Counter
from itertools import product

import numpy as np
from msgspec import structs

from ronda.instances.cluster import Cluster, NodeGroup, Partition, Rack
from ronda.instances.errors import InputError
from ronda.instances.generate.applications import (
    APPLICATIONS,
    GPU,
    GPU_TYPES,
    HOST_IDLE_W,
    on_machines,
)
from ronda.instances.generate.structure import Structure, Traits, partition_names
from ronda.instances.job import Job
from ronda.instances.models.power import gpu_power_w
from ronda.instances.models.throughput import plain_speed
from ronda.instances.profile import Profile


def cluster_of(gpus: int, structure: Structure) -> Cluster:
    """Return a cluster of `gpus` GPUs in equal nodes with a power of two of GPUs, at most eight.

    Pools get about equal numbers of nodes, and each pool deals its nodes to the racks in turn.
    """
    per_node = math.gcd(gpus, 8)
    nodes = gpus // per_node
    types = [kind.gpu for kind in GPU_TYPES[: structure.types]]
    owners = partition_names(structure)
    pools, racks = list(product(owners, types)), _racks(structure)
    if nodes < max(len(pools), len(racks)):
        needed = f"{max(len(pools), len(racks))} nodes or more: one a pool, one a rack"
        raise InputError("gpus", f"{gpus}, {nodes} nodes of {per_node}", needed)
    count = Counter((k * len(pools) // nodes, k % len(racks)) for k in range(nodes))
    groups = []
    for pool, rack in sorted(count):
        owner, gpu = pools[pool]
        words = [owner] * (len(owners) > 1) + [gpu.name] * (len(types) > 1)
        words += [racks[rack].name] * (len(racks) > 1)
        groups.append(
            NodeGroup(
                name="-".join(words) or "nodes",
                count=count[pool, rack],
                gpus_per_node=per_node,
                gpu_type=gpu.name,
                rack=racks[rack].name if len(racks) > 1 else None,
                partition=owner,
                host_idle_w=HOST_IDLE_W * per_node / 8,
            )
        )
    pods = [Rack(name=f"pod{p}") for p in range(structure.pods)] if structure.pods > 1 else []
    return Cluster(
        gpu_types=tuple(types),
        node_groups=tuple(groups),
        racks=(*pods, *racks) if len(racks) > 1 else (),
        partitions=tuple(Partition(name=name) for name in owners if len(owners) > 1),
    )


def _racks(structure: Structure) -> list[Rack]:
    return [
        Rack(
            name=f"pod{p}-rack{r}" if structure.pods > 1 else f"rack{r}",
            parent=f"pod{p}" if structure.pods > 1 else None,
        )
        for p in range(structure.pods)
        for r in range(structure.racks)
    ]


def profiles_of(structure: Structure, *more: Profile) -> dict[str, Profile]:
    """Return the profiles by name: `more`, then the applications on the structure's GPU types."""
    plain = [*more, *(a.profile for a in APPLICATIONS)]
    across = structure.pods * structure.racks > 1
    made = [on_machines(profile, structure.types, across_racks=across) for profile in plain]
    return {profile.name: profile for profile in made}


def watts_at(cluster: Cluster, profiles: dict[str, Profile], share: float) -> float:
    """Return the power at the fraction `share` of the way from all GPUs idle to all busy."""
    above = 0.0
    for pool in cluster.topology.pools:
        name = pool.gpu_type.name
        hungriest = max(float(gpu_power_w(p.power[name])) for p in profiles.values())
        above += share * pool.gpus * (hungriest - pool.gpu_type.idle_w)
    return float(np.ceil(cluster.topology.idle_w + above))


def least_pool(cluster: Cluster, partition: str) -> int:
    """Return the number of GPUs in a partition's smallest pool, which any of its jobs can use."""
    return min(p.gpus for p in cluster.topology.pools if p.partition == partition)


def width(trait: Traits, asked: int, cluster: Cluster) -> int:
    """Return the GPUs that a job requests; a gang requests its share of a pool in whole nodes."""
    room = least_pool(cluster, trait.partition)
    if not trait.gang:
        return min(asked, _power_of_two(room))
    per_node = cluster.node_groups[0].gpus_per_node
    return max(int(trait.gang * room) // per_node * per_node, per_node)


def shaped(
    job: Job, trait: Traits, cluster: Cluster, profiles: dict[str, Profile], since_s: float
) -> Job:
    """Return a job with its partition, limits, deadline and, if it is rigid, GPU type.

    The deadline counts from `since_s` and is based on the run time on A100s in one rack.
    """
    profile, nodes = profiles[job.profile], -(-job.gpus // cluster.node_groups[0].gpus_per_node)
    assert job.estimate is not None
    rate = plain_speed(profile, GPU.name, job.gpus, nodes, profile.base_batch)
    end_s = since_s + trait.slack * (job.truth or job.estimate).work / rate
    least, most = job.min_gpus, job.max_gpus
    if most is not None:
        room = _power_of_two(least_pool(cluster, trait.partition))
        least, most = (job.gpus, job.gpus) if trait.gang else (least, min(most, room))
    rigid = most is None and len(cluster.gpu_types) > 1
    return structs.replace(
        job,
        partition=trait.partition,
        gpu_types=(trait.gpu_type,) if rigid else (),
        min_gpus=least,
        max_gpus=most,
        deadline_s=float(np.round(end_s, 3)) if trait.slack < math.inf else None,
    )


def _power_of_two(limit: int) -> int:
    return 1 << (limit.bit_length() - 1)
