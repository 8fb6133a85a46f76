"""Changes to a round: what they leave, and what they refuse."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition, Rack
from ronda.instances.job import Costs
from ronda.questions.whatif import (
    EnergyShare,
    Gpus,
    NewJob,
    PowerCap,
    WithoutJob,
    WithoutNode,
    WithoutRack,
)
from tests.helpers.valued_rounds import COSTS, job, rigid, run, snapshot

GPU = GpuType(name="V100", memory_gib=16, idle_w=30.0)


def racks(**fields):
    """Return two racks in a row, of two nodes of 4 GPUs and of three of 8."""
    groups = (
        NodeGroup(name="a", count=2, gpus_per_node=4, gpu_type="V100", rack="r1", **fields),
        NodeGroup(name="b", count=3, gpus_per_node=8, gpu_type="V100", rack="r2", **fields),
    )
    rows = (Rack(name="row"), Rack(name="r1", parent="row"), Rack(name="r2", parent="row"))
    return Cluster(gpu_types=(GPU,), node_groups=groups, racks=rows)


def held(name, node, gpus, **fields):
    """Return a job that runs on a node since 10 s."""
    state = run(rigid(name, 500.0, gpus=gpus, **fields), gpus, 1.0, since_s=10.0)
    return replace(state, allocation=replace(state.allocation, placement=((node, gpus),)))


def busy(*states, **fields):
    """Return a round of the racks at 100 s, with costs and limits."""
    limits = {"power_cap_w": 5000.0, "energy_j": 3.6e6, "banked_j": 1e6, "sustained_w": 900.0}
    given = {"on": racks(), "now_s": 100.0, "costs": COSTS} | limits | fields
    return snapshot(*states, **given)


def free(round_):
    """Return the GPUs in service by node."""
    return round_.cluster.topology.node_gpus.tolist()


def test_more_gpus_are_nodes_like_the_most_that_there_are():
    """20 more are two nodes of 8 and one of 4 in the rack of the nodes of 8; asleep they draw 0."""
    cluster = racks(host_idle_w=300.0, sleep_w=40.0, wake_s=60.0)
    changed = Gpus("v100", 20).apply(busy(on=cluster))
    assert free(changed) == [4, 4, 8, 8, 8, 8, 8, 4]
    new = changed.cluster.node_groups[2:]
    assert [(g.rack, g.host_idle_w, g.sleep_w, g.wake_s) for g in new] == [("r2", 300.0, 0, 0)] * 2
    twice = Gpus("V100", 8).apply(changed)
    assert len({g.name for g in twice.cluster.node_groups}) == 5
    assert len(changed.cluster.topology.pools) == 1


def test_fewer_gpus_take_the_least_used_nodes():
    """12 fewer: the empty node of 8 and the empty one of 4; nobody has to stop."""
    round_ = busy(held("x", 0, 2), held("y", 2, 4), held("z", 4, 8))
    changed = Gpus("V100", -12).apply(round_)
    assert free(changed) == [4, 0, 8, 0, 8]
    assert changed.running == round_.running
    further = Gpus("V100", -3).apply(changed)
    assert free(further)[0] == 1  # and its job of 2 GPUs stops
    assert [state.job.id for state in further.waiting] == ["x"]


def test_jobs_of_a_rack_that_goes_wait_with_what_they_did():
    """They ran from 10 s to 100 s at 1 a second; a rack above takes all nodes below it."""
    round_ = busy(held("x", 0, 2), held("y", 2, 4), asleep=(3,))
    changed = WithoutRack("r2").apply(round_)
    assert free(changed) == [4, 4, 0, 0, 0]
    (stopped,) = changed.waiting
    assert (stopped.job.id, stopped.done, stopped.allocation) == ("y", 90.0, None)
    assert [state.job.id for state in changed.running] == ["x"]
    assert changed.asleep == ()
    assert free(WithoutRack("row").apply(round_)) == [0] * 5
    assert free(WithoutNode(4).apply(round_)) == [4, 4, 8, 8, 0]


def test_limits():
    """A share of each, or watts."""
    round_ = busy()
    assert PowerCap(share=0.9).apply(round_).power_cap_w == pytest.approx(4500.0)
    assert PowerCap(watts=7e3).apply(busy(power_cap_w=None)).power_cap_w == 7e3
    less = EnergyShare(0.5).apply(round_)
    assert (less.energy_j, less.banked_j, less.sustained_w) == (1.8e6, 5e5, 450.0)


def test_jobs_come_and_go():
    """A new one waits in order of submission; one that runs leaves its GPUs."""
    round_ = busy(held("x", 0, 2), rigid("w", 5.0, submit_s=90.0))
    new = job("new", submit_s=20.0).job
    assert [s.job.id for s in NewJob(new).apply(round_).waiting] == ["new", "w"]
    assert WithoutJob("x").apply(round_).running == ()
    assert WithoutJob("w").apply(round_).waiting == ()


VCS = Cluster(
    gpu_types=(GPU,),
    node_groups=tuple(
        NodeGroup(name=vc, count=1, gpus_per_node=4, gpu_type="V100", partition=vc)
        for vc in ("vc1", "vc2")
    ),
    partitions=(Partition(name="vc1"), Partition(name="vc2")),
)


def test_a_partition_tells_pools_of_one_type_apart():
    """With it the type is enough."""
    round_ = snapshot(on=VCS, costs=Costs())
    assert Gpus("vc2/v100", 4).apply(round_).cluster.node_groups[-1].partition == "vc2"
    with pytest.raises(ronda.InputError, match="several pools; expected one of"):
        Gpus("V100", 4).apply(round_)


@pytest.mark.parametrize(
    ("change", "found", "expected"),
    [
        (Gpus("H100", 8), "'H100'", "default/V100"),
        (Gpus("V100", 0), "0", r"\+8"),
        (Gpus("V100", -33), "33 GPUs of V100 fewer", "at most the 32"),
        (PowerCap(share=0.9), "0.9 of no cap", "30kW; what runs now draws [0-9,]+ W"),
        (EnergyShare(0.9), "0.9 of no budget", "has one"),
        (WithoutRack("r9"), "'r9'", '"r1"'),
        (WithoutNode(5), "5", "of 0 to 4"),
        (WithoutNode(-1), "-1", "of 0 to 4"),
        (NewJob(rigid("x", 5.0).job), "'x'", "no job of the round has"),
        (WithoutJob("y"), "'y'", '"x"'),
    ],
)
def test_what_is_not_there_is_refused(change, found, expected):
    """In one line, with what there is."""
    round_ = busy(held("x", 0, 2), power_cap_w=None, energy_j=None, banked_j=None, sustained_w=None)
    with pytest.raises(ronda.InputError, match=f"found {found}.*; expected.*{expected}") as caught:
        change.apply(round_)
    assert "\n" not in str(caught.value)
