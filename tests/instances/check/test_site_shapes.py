"""The checker on sizes and shapes: each rule kept, and broken once by hand."""

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Job, JobState, Option, Slices, Truth
from ronda.instances.plan import Plan
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.schedule import JobOutcome, Schedule, Segment
from ronda.instances.site import Neighbourhood, Site

# Racks r0 to r3 of 4 nodes of 2 GPUs, two in each block.
CLUSTER = Cluster(
    gpu_types=(GpuType(name="A100", memory_gib=80, idle_w=50),),
    node_groups=tuple(
        NodeGroup(
            name=f"g{r}",
            count=4,
            gpus_per_node=2,
            gpu_type="A100",
            rack=f"r{r}",
            features=("ib",) if r < 2 else (),
        )
        for r in range(4)
    ),
    racks=(
        Rack(name="b0", level="block"),
        Rack(name="b1", level="block"),
        *(Rack(name=f"r{r}", parent=f"b{r // 2}") for r in range(4)),
    ),
)
SITE = Site(
    neighbourhoods=(
        Neighbourhood(name="near", rule="together", within="rack"),
        Neighbourhood(name="one", rule="together"),
        Neighbourhood(name="far", rule="apart", within="rack"),
        Neighbourhood(name="off", rule="apart"),
    )
)
PROFILES = {"p": Profile(name="p", throughput={"A100": Rigid()}, power={})}


def option(gpus, asked=None, span="cluster"):
    """Return an option at the power of idle GPUs."""
    return Option(pool=0, gpus=gpus, span=span, asked=asked, power_w=50.0 * gpus)


def given(nodes, each=2, asked=None):
    """Return an allocation of `each` GPUs on every node."""
    span = "cluster" if len(nodes) > 1 else "node"
    on = tuple((n, each) for n in nodes)
    return Allocation(option=option(each * len(nodes), asked, span), placement=on)


def codes(jobs, allocations, running=()):
    """Return the codes of the violations of a plan for jobs, by name."""
    asked = [Job(id=i, submit_s=0.0, profile="p", **fields) for i, fields in jobs]
    states = [JobState(job=job, since_s=0.0) for job in asked]
    held = [
        replace(s, allocation=allocations[s.job.id], started=True)
        for s in states
        if s.job.id in running
    ]
    waiting = tuple(s for s in states if s.job.id not in running)
    asked = Round(
        cluster=CLUSTER, profiles=PROFILES, waiting=waiting, running=tuple(held), site=SITE
    )
    return [fault.code for fault in check(validate(asked), Plan(allocations=allocations))]


def alone(fields, nodes, each=2, asked=None):
    """Return the codes of a plan with one job."""
    gpus = asked or each * len(nodes)
    return codes([("a", {"gpus": gpus, **fields})], {"a": given(nodes, each, asked)})


KEPT = {
    "nodes": ({"nodes": (3, 4)}, (3,)),
    "features": ({"features": ("ib",)}, (0, 7)),
    "one-node": ({"one_node": True}, (5,)),
    "exclusive": ({"exclusive": True}, (5, 6)),
    "slices of 2": ({"slices": Slices(nodes=2)}, (0, 1, 2, 3, 8, 9)),
    "slices spread": ({"slices": Slices(nodes=2, spread=True)}, (0, 1, 4, 5)),
    "slices listed": ({"slices": Slices(listed=(3, 2, 1))}, (0, 1, 2, 3, 8, 9)),
    "slices listed, spread": (
        {"slices": Slices(listed=(3, 2, 1), spread=True)},
        (0, 1, 2, 4, 5, 8),
    ),
    "slices balanced": ({"slices": Slices(balanced=True)}, (0, 1, 4, 5, 6)),
    "slices together": ({"slices": Slices(nodes=2, together="block")}, (8, 9, 12, 13)),
    "slices in blocks": ({"slices": Slices(nodes=4, within="block")}, (0, 1, 4, 5)),
}
BROKEN = {
    "nodes": ({"nodes": (3, 4)}, (5,)),
    "nodes, features": ({"features": ("ib",)}, (0, 8)),
    "one-node": ({"one_node": True}, (5, 6), 1),
    "slices, of 2": ({"slices": Slices(nodes=2)}, (0, 1, 2, 4, 5, 6)),
    "slices, spread": ({"slices": Slices(nodes=2, spread=True)}, (0, 1, 2, 3)),
    "slices, listed": ({"slices": Slices(listed=(3, 3))}, (0, 1, 2, 3, 8, 9)),
    "slices, listed spread": ({"slices": Slices(listed=(2, 2), spread=True)}, (0, 1, 2, 3)),
    "slices, balanced": ({"slices": Slices(balanced=True)}, (0, 4, 5, 6)),
    "slices, together": ({"slices": Slices(nodes=2, together="block")}, (0, 1, 12, 13)),
    "slices, in blocks": ({"slices": Slices(nodes=4, within="block")}, (0, 1, 8, 9)),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_job_that_keeps_its_shape_passes(case):
    """Each shape in one of its possible ways."""
    assert alone(*KEPT[case]) == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_shape_is_found_alone(case):
    """Each shape broken once; jobs that already run so may go on."""
    fields, nodes, *each = BROKEN[case]
    assert alone(fields, nodes, *each) == [case.partition(",")[0]]
    gpus = (each or [2])[0] * len(nodes)
    jobs, held = [("a", {"gpus": gpus, **fields})], {"a": given(nodes, *each)}
    assert codes(jobs, held, running=("a",)) == []


def test_a_job_gets_one_of_the_sizes_that_it_names():
    """Also between its least and its most GPUs."""
    fields = {"gpus": 4, "sizes": (4,)}
    assert codes([("a", fields)], {"a": given((0, 1))}) == []
    assert set(codes([("a", fields)], {"a": given((0, 1, 2))})) == {"gpus", "sizes"}


def test_nodes_of_its_own_are_held_whole_and_shared_with_nobody():
    """The job holds idle GPUs; what it asked for is told; a guest is found."""
    own, guest = ("a", {"gpus": 3, "exclusive": True}), ("b", {"gpus": 1})
    held = given((0, 1), asked=3)
    assert codes([own], {"a": held}) == []
    assert codes([own], {"a": replace(held, option=replace(held.option, asked=None))}) != []
    assert codes([("a", {"gpus": 3})], {"a": held}) == ["exclusive"]
    small = Allocation(option=option(3), placement=((0, 2), (1, 1)))
    small = replace(small, option=replace(small.option, power_w=150.0))
    assert codes([own], {"a": small}) == ["exclusive"]
    beside = {"a": small, "b": Allocation(option=option(1, span="node"), placement=((1, 1),))}
    assert codes([own, guest], beside, running=("a", "b")) == []
    assert codes([own, guest], beside, running=("a",)) == ["exclusive"]


NEAR = {
    "near": ((0, 1), (2,), []),
    "near, apart": ((0, 1), (4,), ["neighbours"]),
    "one": ((0,), (0,), []),
    "one, apart": ((0,), (1,), ["neighbours"]),
    "far": ((0,), (4,), []),
    "far, together": ((0,), (1,), ["neighbours"]),
    "off": ((0,), (1,), []),
    "off, together": ((0,), (0,), ["neighbours"]),
}


@pytest.mark.parametrize("case", NEAR)
def test_neighbours_are_together_or_apart(case):
    """By rack and by node; two that run so already may go on, one more may not join them."""
    one, other, expected = NEAR[case]
    rule = (case.partition(",")[0],)
    each = 1 if one == other else 2
    jobs = [
        ("a", {"gpus": each * len(one), "neighbourhoods": rule}),
        ("b", {"gpus": each * len(other), "neighbourhoods": rule}),
    ]
    held = {"a": given(one, each), "b": given(other, each)}
    assert codes(jobs, held) == expected
    assert codes(jobs, held, running=("a",)) == expected
    assert codes(jobs, held, running=("a", "b")) == []


def test_a_job_of_a_rack_is_within_one():
    """Though no other job of its neighbourhood runs."""
    jobs = [("a", {"gpus": 4, "neighbourhoods": ("near",)})]
    assert codes(jobs, {"a": given((3, 4))}) == ["neighbours"]


def scheduled(jobs, segments):
    """Return the codes of a schedule with one segment (nodes, start, end, GPUs each) a job."""
    asked = [
        Job(id=i, submit_s=0.0, profile="p", truth=Truth(work=10.0), **fields) for i, fields in jobs
    ]
    whole = validate(
        Instance(name="x", cluster=CLUSTER, jobs=tuple(asked), profiles=PROFILES, site=SITE)
    )
    outcomes = []
    for job, (nodes, start_s, each) in zip(asked, segments, strict=True):
        held = given(nodes, each, job.gpus if job.exclusive else None)
        stay = Segment(
            start_s=start_s,
            resume_s=start_s,
            end_s=start_s + 10.0,
            done=10.0,
            option=held.option,
            placement=held.placement,
        )
        outcomes.append(JobOutcome(id=job.id, submit_s=0.0, end_s=stay.end_s, segments=(stay,)))
    end_s = max(o.end_s for o in outcomes)
    answer = Schedule(instance="x", fingerprint="", policy="", jobs=tuple(outcomes), end_s=end_s)
    return {fault.code for fault in check(whole, answer)} - {"accounting"}


def test_a_schedule_keeps_shapes_at_all_times():
    """Nodes of one's own and neighbours only matter at the same time; slices always do."""
    own, guest = ("a", {"gpus": 1, "exclusive": True}), ("b", {"gpus": 1})
    assert scheduled([own, guest], [((0,), 0.0, 2), ((0,), 10.0, 1)]) == set()
    assert scheduled([own, guest], [((0,), 0.0, 2), ((1,), 5.0, 1)]) == set()
    far = [(i, {"gpus": 2, "neighbourhoods": ("far",)}) for i in "ab"]
    assert scheduled(far, [((0,), 0.0, 2), ((1,), 10.0, 2)]) == set()
    assert scheduled(far, [((0,), 0.0, 2), ((1,), 9.0, 2)]) == {"neighbours"}
    sliced = [("a", {"gpus": 8, "slices": Slices(nodes=2)})]
    assert scheduled(sliced, [((0, 1, 4, 5), 0.0, 2)]) == set()
    assert scheduled(sliced, [((0, 4, 5, 6), 0.0, 2)]) == {"slices"}
