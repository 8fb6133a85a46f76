"""What a controller may touch: by the operator's lists, and by what owners write."""

import pytest
from msgspec.structs import replace

from ronda.hosts.slurm.scope import UNTOUCHED, JobTerms, Scope, opted_in
from ronda.instances.snapshots.snapshot import SeenJob

RANK = JobTerms(rank=True)
SPEEDS = {1: 1.0, 2: 1.9, 4: 3.5}


def job(**more):
    """Return a job of one piece."""
    fields = {"id": "7", "partitions": ("gpu",), "priority": "normal", "tenant": "team"}
    return SeenJob(**fields | {"own_nodes": True, "per": {"gpus": 2.0}} | more)


@pytest.mark.parametrize(
    ("comment", "terms"),
    [
        ("ronda", JobTerms(rank=True, place=True)),
        (" ronda\n", JobTerms(rank=True, place=True)),
        ("ronda:requeue", JobTerms(rank=True, place=True, stop=True)),
        ("ronda:gpus=1:1/2:1.9/4:3.5", JobTerms(True, True, True, SPEEDS)),
    ],
)
def test_owners_agree_by_a_comment(comment, terms):
    """Each comment lets ronda do more than the one before."""
    assert opted_in(comment) == terms
    assert Scope().terms(job(comment=comment)) == terms


@pytest.mark.parametrize(
    "comment",
    [
        None,
        "",
        "Ronda",
        "xronda",
        "ronda:",
        "ronda:all",
        "ronda:requeue,gpus=1:1",
        "ronda:gpus=",
        "ronda:gpus=0:1",
        "ronda:gpus=1:0",
        "ronda:gpus=1:nan",
        "ronda:gpus=1:1e9",
        "ronda:gpus=1:1.2.3",
        "ronda:gpus=1:.",
        "ronda:gpus=1:1/1:2",
        "ronda:gpus=1:1/",
        "ronda:gpus=\u0661:1",
        "ronda:gpus=" + "/".join(f"{n}:1" for n in range(1, 40)),
        "ronda\nronda:requeue",
        "ronda\x00",
        "ronda; scancel 1",
    ],
)
def test_other_comments_agree_to_nothing(comment):
    """A word too many, and ronda does nothing that it was not told in full."""
    assert opted_in(comment) is None
    assert Scope().terms(job(comment=comment or "")) == UNTOUCHED
    assert Scope(partitions=("gpu",)).terms(job(comment=comment or "")) == RANK


@pytest.mark.parametrize(
    ("scope", "more", "inside"),
    [
        ({"partitions": ("gpu",)}, {}, True),
        ({"partitions": ("gpu",)}, {"partitions": ("gpu", "other")}, False),
        ({"partitions": ("gpu", "other")}, {"partitions": ("gpu", "other")}, True),
        ({"partitions": ("gpu",)}, {"partitions": ()}, False),
        ({"qos": ("normal",)}, {}, True),
        ({"qos": ("high",)}, {}, False),
        ({"qos": ("high",)}, {"priority": None}, False),
        ({"accounts": ("team",)}, {}, True),
        ({"accounts": ("team",)}, {"tenant": None}, False),
        ({"partitions": ("gpu",), "accounts": ("x",)}, {}, False),
        ({"partitions": ("gpu",)}, {"id": "7+1"}, False),
        ({"partitions": ("gpu",)}, {"id": "7_12"}, True),
        ({"partitions": ("gpu",)}, {"id": "7_[1-9]"}, False),
    ],
)
def test_jobs_of_the_operators_lists_alone(scope, more, inside):
    """A job is in each list with all that it has; no comment lets it in from outside."""
    assert Scope(**scope).terms(job(**more)) == (RANK if inside else UNTOUCHED)
    agreed = Scope(**scope).terms(job(comment="ronda:requeue", **more))
    assert agreed.stop is inside


@pytest.mark.parametrize(
    ("more", "place", "stop", "elastic"),
    [
        ({}, True, True, True),
        ({"preemptible": False}, True, False, False),
        ({"count": 2}, True, True, False),
        ({"own_nodes": False}, True, True, False),
        ({"exclusive": True}, True, True, False),
        ({"per_gpu": True}, True, True, False),
        ({"told": False}, False, False, False),
    ],
)
def test_slurm_may_forbid_more_than_owners(more, place, stop, elastic):
    """A job that Slurm would hold or break by it keeps its nodes, its GPUs, or its run."""
    found = Scope().terms(job(comment="ronda:gpus=1:1/2:1.9/4:3.5", **more))
    assert (found.place, found.stop, found.speeds) == (place, stop, SPEEDS if elastic else {})


def test_a_qos_may_agree_for_its_jobs():
    """The operator names it; its jobs may be stopped, unless not all of them is known."""
    scope = Scope(opt_in_qos=("normal",))
    assert scope.terms(job()) == opted_in("ronda:requeue")
    assert scope.terms(replace(job(), told=False)) == UNTOUCHED
