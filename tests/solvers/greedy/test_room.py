"""Room: free GPUs and watts, power caps of racks, nodes that sleep."""

import msgspec

from ronda.instances.check.answer import check
from ronda.instances.cluster import Cluster, Rack
from ronda.instances.plan import SolutionStatus
from ronda.solvers.solve import solve


def test_a_rack_without_watts_is_passed_over(elastic_round, live_job):
    """Rack r0 (one node of 4: 80 W idle) may draw 100 W: the job of 430 W goes to rack r1."""
    round_ = elastic_round(live_job("a", "linear", 1.0), nodes=1, gpus_per_node=4)
    node = round_.cluster.node_groups[0]
    groups = tuple(msgspec.structs.replace(node, name=f"n{i}", rack=f"r{i}") for i in range(2))
    racks = (Rack(name="r0", power_cap_w=100.0), Rack(name="r1"))
    cluster = Cluster(gpu_types=round_.cluster.gpu_types, node_groups=groups, racks=racks)
    round_ = msgspec.structs.replace(round_, cluster=cluster)
    for name in ("fifo", "tiresias"):
        plan = solve(round_, name)
        assert plan.allocations["a"].placement == ((1, 1),), name
        assert check(round_, plan) == []


def test_nodes_wake_for_jobs_that_find_no_room_on_those_awake(elastic_round, live_job):
    """Node 0 sleeps: the first job of 4 GPUs starts on node 1, the second one wakes node 0."""
    jobs = [live_job(name, "linear", 1.0, gpus=4) for name in "ab"]
    round_ = elastic_round(*jobs, nodes=2, gpus_per_node=4, asleep=(0,))
    plan = solve(round_, "fifo")
    assert {job: a.placement for job, a in plan.allocations.items()} == {
        "a": ((1, 4),),
        "b": ((0, 4),),
    }
    assert (plan.asleep, plan.status) == ((), SolutionStatus.FEASIBLE)
    assert check(round_, plan) == []


def test_rounds_of_one_cluster_do_not_disturb_each_other(elastic_round, live_job):
    """What is kept with the cluster is never changed: the second plan equals the first."""
    round_ = elastic_round(live_job("a", "linear", 1.0, gpus=8))
    assert solve(round_, "fifo").allocations == solve(round_, "fifo").allocations != {}
