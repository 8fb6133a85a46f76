"""Rounds whose jobs need places on nodes of 8 GPUs."""

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round


def room(*racks, size=8, **kwargs):
    """Return a cluster of nodes of `size` GPUs; `racks` says how many in each rack."""
    return Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16, idle_w=50),),
        racks=tuple(Rack(name=f"r{k}") for k in range(len(racks))),
        node_groups=tuple(
            NodeGroup(
                name=f"g{k}",
                count=count,
                gpus_per_node=size,
                gpu_type="v",
                rack=f"r{k}",
                host_idle_w=100,
            )
            for k, count in enumerate(racks)
        ),
        **kwargs,
    )


def state(job, placement=None, option=None, preemptible=True):
    """Return a job that waits, or runs on a placement."""
    held = None
    if placement is not None:
        option = option or Option(pool=0, gpus=sum(g for _, g in placement))
        held = Allocation(option=option, placement=placement)
    return JobState(
        job=Job(id=job, submit_s=0, profile="rigid", preemptible=preemptible),
        since_s=0,
        started=held is not None,
        allocation=held,
    )


def snapshot(cluster, running=(), waiting=(), **kwargs):
    """Return a round."""
    return Round(
        cluster=cluster,
        profiles={"rigid": rigid_profile("v")},
        running=tuple(running),
        waiting=tuple(waiting),
        **kwargs,
    )


def gpus(count, **kwargs):
    """Return an option in the first pool."""
    return Option(pool=0, gpus=count, **kwargs)
