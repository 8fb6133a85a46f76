"""What an operator could do on small clusters, where the least of it is known by hand."""

from math import inf

from msgspec.structs import replace

from ronda.instances.job import Slices
from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.actions import remedies
from ronda.questions.why.outlook import FreeRoom

HOUR = 3600.0
NODE = SeenNode(name="a", has={"gpus": 8.0})
JOB = SeenJob(id="J", limit_s=4 * HOUR, per={"gpus": 4})
RUNS = SeenJob(id="r", start_s=0.0, limit_s=9 * HOUR, per={"gpus": 8}, on={"a": 1})


def _node(name: str, **more: object) -> SeenNode:
    return replace(NODE, name=name, **more)


def _told(job: SeenJob, nodes: tuple[SeenNode, ...], *runs: SeenJob, **more: object) -> list[str]:
    seen = Snapshot(
        source="here", system="slurm", now_s=0.0, nodes=nodes, jobs=(*runs, job), **more
    )
    return [
        f"{one.start_s / HOUR:g}: {one.text}" for one in remedies(WaitingJob(FreeRoom(seen), job))
    ]


def test_the_fewest_nodes() -> None:
    """Those with most room come back, in the partition that needs fewest; racks are looked at."""
    small = {"gpus": 4.0}
    nodes = (
        _node("b", has=small, out="down", partitions=("p",)),
        _node("c", has=small, out="down", partitions=("p",)),
        _node("d", has=small, out="down", partitions=("q",)),
        _node("e", out="down", partitions=("q",)),
    )
    job = replace(JOB, count=2, partitions=("p", "q"))
    assert _told(job, nodes) == ["0: Bring 1 node back: e."]
    racked = tuple(_node(f"{r}{n}", racks=(("rack", r),), out="down") for r in "xy" for n in "12")
    job = replace(JOB, count=2, own_nodes=True, slices=Slices(nodes=2, within="rack"))
    up = (*racked[:3], replace(racked[3], out=None))
    assert _told(job, up) == ["0: Bring 1 node back: y1."]


def test_the_shortest_delay_of_an_outage() -> None:
    """The node that leaves last waits for the job, and no longer than it needs."""
    nodes = (_node("a", leaves_s=HOUR), _node("b", leaves_s=3 * HOUR), _node("c", leaves_s=HOUR))
    assert _told(JOB, nodes) == ["0: Let b leave 1 h later."]
    job = replace(JOB, count=4)
    assert _told(job, nodes) == ["0: Let b, a leave 3 h later."]


def test_the_smallest_limits() -> None:
    """The partition with least missing; two limits if neither alone helps; a quota; a licence."""
    groups = tuple(
        LimitGroup(name=name, partitions=(name,), most={"gpus": most})
        for name, most in (("p", 9), ("q", 10))
    )
    job = replace(JOB, partitions=("p", "q"))
    runs = tuple(replace(RUNS, id=part, partitions=(part,), on={part: 1}) for part in "pq")
    nodes = (_node("a"), _node("p"), _node("q"))
    both = _told(job, nodes, *runs, groups=groups)
    assert sorted(both) == [
        "0: Raise the limit of p by 3 GPUs, from 9 to 12 GPUs.",
        "0: Raise the limit of q by 2 GPUs, from 10 to 12 GPUs.",
    ]
    two = (LimitGroup(name="g", most={"gpus": 3}), LimitGroup(name="h", max_jobs=0))
    assert _told(JOB, (NODE,), groups=two) == [
        "0: Raise the limit of g by 1 GPU, from 3 to 4 GPUs, and the limit on running jobs of h by "
        "1 job, from 0 to 1 job."
    ]
    time = (LimitGroup(name="g", max_gpu_s=12 * HOUR),)
    assert _told(JOB, (NODE,), groups=time) == [
        "0: Raise the limit of g on the GPU time that jobs may still use by 4 GPU-hours, "
        "from 12 to 16 GPU-hours."
    ]
    uneven = (_node("a", partitions=("p",)), _node("b", has={"gpus": 4.0}, partitions=("q",)))
    whole = replace(job, exclusive=True)
    assert _told(whole, uneven, groups=(LimitGroup(name="g", most={"gpus": 3}),)) == [
        "0: Raise the limit of g by 1 GPU, from 3 to 4 GPUs."
    ]
    tree = (
        Tenant(name="all"),
        Tenant(name="t", parent="all", quotas=(Quota(guaranteed=2, borrow=1),)),
        Tenant(name="u", parent="all", quotas=(Quota(guaranteed=6),)),
    )
    assert _told(replace(JOB, tenant="t"), (NODE,), tenants=tree) == [
        "0: Raise the borrowing limit of t by 1 GPU, to 4 GPUs in all."
    ]
    job = replace(JOB, licences={"l": 2.0})
    assert _told(job, (NODE,), licences={"l": 1.0}) == [
        "0: Raise the limit of l by 1, from 1 to 2."
    ]
    longest = (LimitGroup(name="g", max_limit_s=3 * HOUR),)
    assert _told(JOB, (NODE,), groups=longest) == ["0: Allow 4 h instead of 3 h in g."]


def test_a_hold() -> None:
    """It can be taken away; nothing can be done about what is not told."""
    assert _told(replace(JOB, blocked="held by root"), (NODE,)) == [
        "0: Remove what holds it: held by root."
    ]
    assert _told(replace(JOB, per={"gpus": 9}), (NODE,)) == []


def test_slices_are_charged_for_their_nodes() -> None:
    """Each node of a slice counts, whether pieces would fit together or not."""
    racked = tuple(_node(n, racks=(("rack", "r"),)) for n in "ab")
    job = replace(JOB, count=2, exclusive=True, slices=Slices(nodes=2, within="rack"))
    seen = Snapshot(
        source="here",
        system="slurm",
        now_s=0.0,
        nodes=racked,
        jobs=(job,),
        groups=(LimitGroup(name="g", most={"gpus": 15}),),
    )
    assert WaitingJob(FreeRoom(seen), job).start() == inf
