"""Instances that the tests of this folder share."""

import pytest

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Option, Truth
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.schedule import Energy, JobOutcome, Schedule, Segment


def rigid_job(name, submit_s, gpus, work):
    """Return a rigid job of known size."""
    return Job(
        id=name,
        submit_s=submit_s,
        profile="rigid",
        gpus=gpus,
        estimate=Estimate(work=work),
        truth=Truth(work=work),
    )


@pytest.fixture
def two_nodes():
    """Three rigid jobs on two nodes of 4 GPUs: 100 W a host, 10 W an idle GPU, 60 W a busy one."""
    return Instance(
        name="two-nodes",
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=10.0),),
            node_groups=(
                NodeGroup(
                    name="n", count=2, gpus_per_node=4, gpu_type="G", host_idle_w=100.0, sleep_w=5.0
                ),
            ),
        ),
        profiles={
            "rigid": Profile(
                name="rigid",
                throughput={"G": Rigid()},
                power={"G": PowerCurve(a_w=10.0, b_w=50.0)},
            )
        },
        jobs=(
            rigid_job("a", 0.0, 2, 100.0),
            rigid_job("b", 0.0, 8, 50.0),
            rigid_job("c", 10.0, 1, 10.0),
        ),
        costs=Costs(restart_s=5.0),
    )


@pytest.fixture
def by_hand(two_nodes):
    """FIFO on `two_nodes`: a at 0-100 on node 0; b at 100-150 on both; c at 150-160."""

    def one(name, submit_s, start_s, end_s, gpus, placement):
        option = Option(pool=0, gpus=gpus, power_w=60.0 * gpus)
        segment = Segment(
            start_s=start_s,
            resume_s=start_s,
            end_s=end_s,
            done=end_s - start_s,
            option=option,
            placement=placement,
        )
        return JobOutcome(id=name, submit_s=submit_s, end_s=end_s, segments=(segment,))

    return Schedule(
        instance=two_nodes.name,
        fingerprint="0" * 16,
        policy="fifo",
        jobs=(
            one("a", 0.0, 0.0, 100.0, 2, ((0, 2),)),
            one("b", 0.0, 100.0, 150.0, 8, ((0, 4), (1, 4))),
            one("c", 10.0, 150.0, 160.0, 1, ((0, 1),)),
        ),
        energy=Energy(),
        end_s=160.0,
    )
