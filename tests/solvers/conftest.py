"""Small instances that several tests of the driver share."""

import pytest

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import PowerCurve, Profile, Rigid


def make_instance(jobs, *, nodes=1, gpus_per_node=4, **fields):
    """Return an instance of rigid jobs given as (id, submit_s, gpus, duration_s)."""
    cluster = Cluster(
        gpu_types=(GpuType(name="V100", memory_gib=32, idle_w=50.0),),
        node_groups=(
            NodeGroup(
                name="nodes",
                count=nodes,
                gpus_per_node=gpus_per_node,
                gpu_type="V100",
                host_idle_w=200.0,
                sleep_w=10.0,
                wake_s=100.0,
            ),
        ),
    )
    profile = Profile(
        name="rigid", throughput={"V100": Rigid()}, power={"V100": PowerCurve(a_w=250.0)}
    )
    made = tuple(
        Job(
            id=name,
            submit_s=submit_s,
            profile="rigid",
            gpus=gpus,
            estimate=Estimate(work=duration_s),
            truth=Truth(work=duration_s),
        )
        for name, submit_s, gpus, duration_s in jobs
    )
    fields.setdefault("costs", Costs())
    return Instance(name="made", cluster=cluster, profiles={"rigid": profile}, jobs=made, **fields)


@pytest.fixture(scope="session", name="make_instance")
def _make_instance():
    """Give tests the maker."""
    return make_instance
