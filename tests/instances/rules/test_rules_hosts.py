"""Rules of hosts and licences: every slip is named, and what a round may say."""

import pytest
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Job, Need, Truth
from ronda.instances.profile import Profile, Rigid, rigid_profile
from ronda.instances.round import Round
from ronda.instances.rules.validate import problems, validate


def nodes(name="n", gpu="A", count=2, size=8, **has):
    """Return equal nodes."""
    return NodeGroup(name=name, count=count, gpus_per_node=size, gpu_type=gpu, has=has)


def cluster(*groups, **fields):
    """Return a cluster of two GPU types."""
    types = (GpuType(name="A", memory_gib=16), GpuType(name="B", memory_gib=16))
    return Cluster(gpu_types=types, node_groups=groups or (nodes(cpu=64.0),), **fields)


BOTH = Profile(name="both", throughput={"A": Rigid(), "B": Rigid()})


def instance(*jobs, on=None):
    """Return an instance of jobs, with work."""
    made = tuple(replace(job, truth=Truth(work=1.0)) for job in jobs or (job("a"),))
    profiles = {"rigid": rigid_profile("A"), "both": BOTH}
    return Instance(name="i", cluster=on or cluster(), profiles=profiles, jobs=made)


def job(name, gpus=1, profile="rigid", *, licences=None, fusible=None, **needs):
    """Return a job that needs amounts."""
    return Job(
        id=name,
        submit_s=0,
        profile=profile,
        gpus=gpus,
        needs=needs,
        licences=licences or {},
        fusible=fusible,
    )


TWO = (nodes(cpu=64.0), nodes("m", "B", cpu=16.0, memory=100.0))

# name: (instance, words of the line)
FAULTS = {
    "never, in one block though the total is enough": (
        instance(job("a", 16, cpu=Need(per_gpu=1, flat=60))),
        'jobs[0].needs.cpu (id "a"): found 68 on one node, the least that it can do with, '
        "expected at most 64, what such nodes have",
    ),
    "never, on whole nodes": (
        instance(job("a", 12, cpu=Need(per_gpu=8, per_node=1))),
        "found 65 on one node",
    ),
    "never, on nodes of its types": (
        instance(job("a", memory=Need(flat=1)), on=cluster(*TWO)),
        "found 1 on one node, the least that it can do with, expected at most 0",
    ),
    "a resource nobody has": (
        instance(job("a", cpus=Need(flat=1))),
        'found "cpus", expected "cpu"',
    ),
    "taken on no node": (
        instance(on=cluster(taken=((2, "cpu", 1.0),))),
        "cluster.taken[0]: found node 2, expected a node, 0 to 1",
    ),
    "taken of what is not there": (
        instance(on=cluster(taken=((1, "gpu", 1.0),))),
        'cluster.taken[0]: found "gpu"',
    ),
    "taken too much, in two parts": (
        instance(on=cluster(taken=((1, "cpu", 40.0), (0, "cpu", 64.0), (1, "cpu", 24.5)))),
        "cluster.taken[2]: found 64.5 of cpu on node 1, expected at most the 64",
    ),
    "an unknown licence": (
        instance(job("a", licences={"x": 1}), on=cluster(licences={"y": 1})),
        'jobs[0].licences.x (id "a"): found "x", expected "y"',
    ),
    "more licences than there are": (
        instance(job("a", licences={"y": 2}), on=cluster(licences={"y": 1})),
        "found 2, expected at most the 1",
    ),
    "an unknown licence is taken": (
        instance(on=cluster(licences_taken={"y": 1})),
        "cluster.licences_taken.y",
    ),
    "more licences taken than there are": (
        instance(on=cluster(licences={"y": 1}, licences_taken={"y": 2})),
        "cluster.licences_taken.y: found 2, expected at most the 1",
    ),
    "one fusion class, other needs": (
        instance(job("a", fusible="c"), job("b", fusible="c", cpu=Need(flat=1))),
        'jobs[1].fusible (id "b"): found other needs or licences than job "a"',
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_one_line(name):
    """Place, found, expected."""
    faulty, words = FAULTS[name]
    assert any(words in problem for problem in problems(faulty)), problems(faulty)
    with pytest.raises(InputError) as error:
        validate(faulty)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "fine",
    [
        instance(job("a", 16, cpu=Need(per_gpu=1, flat=56))),
        instance(job("a", 12, cpu=Need(per_gpu=8, flat=32))),
        instance(job("a", 2, "both", cpu=Need(flat=60)), on=cluster(*TWO)),
        instance(job("a", 2, "both", memory=Need(flat=60)), on=cluster(*TWO)),
        instance(job("a", cpu=Need(flat=1e9)), on=cluster(nodes())),
        instance(on=cluster(taken=((1, "cpu", 64.0),), licences={"y": 1}, licences_taken={"y": 1})),
        instance(replace(job("a", 8, cpu=Need(per_gpu=9)), min_gpus=1, profile="rigid")),
    ],
)
def test_what_may_be_said(fine):
    """Exactly what a node has; another type that has enough; clusters that name no resource."""
    assert not any("needs" in problem or "taken" in problem for problem in problems(fine))


def test_in_a_round_others_may_hold_too_much():
    """Others may hold more than there is, and nodes may be out, but no need may be impossible."""
    held = {"taken": ((0, "cpu", 99.0),), "licences": {"y": 1}, "licences_taken": {"y": 3}}
    for fields, said in ((held, False), ({"taken": ((5, "cpu", 1.0),)}, True)):
        made = instance(on=cluster(out=((1, 8),), **fields))
        round_ = Round(cluster=made.cluster, profiles=made.profiles)
        assert bool(problems(round_)) is said
