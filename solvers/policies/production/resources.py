"""What jobs hold of the resources that tenants have quotas of, and what the cluster has of them."""

from collections import Counter
from collections.abc import Mapping

from ronda.formulations.tenants.amounts import held
from ronda.instances.job import Job, Option
from ronda.instances.round import Round
from ronda.instances.site import GPUS

Amounts = Mapping[str, float]
"""Amounts by resource, as in `Quota.of`."""


def amounts(round: Round, job: Job, option: Option) -> dict[str, float]:
    """Return what a job holds with an option: GPUs, GPUs of the type, and resources of hosts."""
    pool = round.cluster.topology.pools[option.pool]
    return {of: held(pool, job, option, of) for of in (GPUS, pool.gpu_type.name, *job.needs)}


def capacity(round: Round, partition: str | None = None) -> dict[str, float]:
    """Return what the nodes in service have: GPUs, GPUs by type, and resources of hosts.

    With a partition, only its nodes count.
    """
    cluster, found = round.cluster, Counter[str]()
    gpus, group = cluster.topology.node_gpus.tolist(), cluster.topology.node_group.tolist()
    for node, each in zip(group, gpus, strict=True):
        of = cluster.node_groups[node]
        if each and partition in (None, of.partition):
            found.update({GPUS: each, of.gpu_type: each})
            found.update(of.has)
    found.subtract({name: amount for _, name, amount in cluster.taken})
    return dict(found)
