"""Refusals of parts of GPUs: what a cluster cannot offer, and what jobs cannot have."""

import pytest
from msgspec.structs import replace

from ronda.instances.cluster import GpuType, PartProfile, Parts
from ronda.instances.job import Job
from ronda.instances.rules.validate import problems, validate
from tests.helpers.cut_gpus import PARTS, asking, cut_cluster, cut_round, on


def own(**fields):
    """Return a GPU type that states a part of its own."""
    profile = PartProfile(
        **{"name": "half", "compute": 1, "memory": 1, "starts": (0, 1), "most": 2} | fields
    )
    return GpuType(
        name="A100-40", memory_gib=40, parts=Parts(compute=2, memory=2, profiles=(profile,))
    )


CLUSTERS = {
    "no parts": (
        cut_cluster(gpu=GpuType(name="V100", memory_gib=16)),
        "cluster.node_groups[0].recut",
    ),
    "a layout of no parts": (
        cut_cluster(gpu=GpuType(name="V100", memory_gib=16), recut="never", cut=("1g.5gb",)),
        "cluster.node_groups[0].cut",
    ),
    "a layout that may change": (cut_cluster(cut=("3g.20gb",)), "cluster.node_groups[0].cut"),
    "cut and shared": (
        cut_cluster(recut="never", cut=("3g.20gb",), shared=True),
        "cluster.node_groups[0].shared",
    ),
    "an unknown part": (cut_cluster(recut="never", cut=("3g.40gb",)), "cluster.node_groups[0].cut"),
    "too much of memory": (
        cut_cluster(recut="never", cut=("4g.20gb", "4g.20gb")),
        "cluster.node_groups[0].cut",
    ),
    "too many engines": (
        cut_cluster(recut="never", cut=("1g.5gb+me", "1g.5gb+me")),
        "cluster.node_groups[0].cut",
    ),
    "no start": (cut_cluster(gpu=own(starts=())), "cluster.gpu_types[0].parts.profiles[0].starts"),
    "a start beyond": (
        cut_cluster(gpu=own(starts=(0, 2))),
        "cluster.gpu_types[0].parts.profiles[0].starts",
    ),
    "more than the GPU": (
        cut_cluster(gpu=own(compute=3)),
        "cluster.gpu_types[0].parts.profiles[0].compute",
    ),
}


@pytest.mark.parametrize("case", CLUSTERS)
def test_a_cluster_cannot_offer_it(case):
    """One line says where."""
    cluster, place = CLUSTERS[case]
    found = problems(cut_round(cluster=cluster))
    assert [problem.place for problem in found] == [place]


def test_a_part_of_the_same_name_twice():
    """The names of a GPU type's parts are unique."""
    gpu = own()
    twice = replace(gpu.parts, profiles=gpu.parts.profiles * 2)
    (found,) = problems(cut_round(cluster=cut_cluster(gpu=replace(gpu, parts=twice))))
    assert "twice" in found


JOBS = {
    "a part that the GPU lacks": (asking("a", "3g.40gb"), 'part (id "a")'),
    "a part and a fraction": (asking("a", "3g", share=0.5), 'part (id "a")'),
    "two parts": (asking("a", "3g", gpus=2), 'part (id "a")'),
    "an elastic part": (asking("a", "3g", max_gpus=2), 'part (id "a")'),
    "a part in an array": (asking("a", "3g", fusible="x"), 'part (id "a")'),
    "a part of a node of its own": (asking("a", "3g", exclusive=True), 'part (id "a")'),
    "a fraction where none is shared": (asking("a", 0.5), 'share (id "a")'),
}


@pytest.mark.parametrize("case", JOBS)
def test_a_job_cannot_have_it(case):
    """One line names the job and the field."""
    job, place = JOBS[case]
    round = cut_round({"a": 1})
    round = replace(round, waiting=(replace(round.waiting[0], job=job),))
    found = problems(round)
    assert f"waiting[0].job.{place}" in [problem.place for problem in found]


def test_a_part_that_no_node_is_cut_into():
    """The type has the part, but no node offers it: neither uncut ones, nor other layouts."""
    for cluster in (
        cut_cluster(recut="never"),
        cut_cluster(recut="never", cut=("4g.20gb",)),
    ):
        (found,) = problems(cut_round({"a": "3g"}, cluster=cluster))
        assert found.place == 'waiting[0].job.part (id "a")'
        assert "recut" in found


def test_running_parts_that_overlap_are_refused():
    """Two 3g at one place; the message names the jobs and the slice."""
    round = cut_round(running={"a": ("3g", (0, 0, 4)), "b": ("3g", (0, 0, 4))})
    (found,) = problems(round)
    assert "two parts on memory slice" in found
    assert "a, b" in found


def test_what_a_running_option_leaves_out_is_filled_in():
    """Fraction, rate and watts follow from the part that it names."""
    job = asking("a", "3g")
    round = cut_round(running={"a": ("3g", (0, 0, 4))})
    given = on(job, 0, 0, 4)
    bare = replace(given.option, share=None, rate=1.0, power_w=0.0)
    state = replace(round.running[0], allocation=replace(given, option=bare))
    whole = validate(replace(round, running=(state,)))
    assert whole.running[0].allocation == given


def test_a_share_is_between_0_and_1():
    """The fields of a job say so themselves."""
    found = problems(cut_round({"a": 1.5}, cluster=cut_cluster(shared=True)))
    assert len(found) == 1
    assert isinstance(Job(id="b", submit_s=0, profile="p", part=PARTS["1g"]).part, str)
