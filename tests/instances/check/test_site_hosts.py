"""Hosts and licences in plans and schedules: each rule broken once by hand."""

import pytest
from msgspec.structs import replace

import ronda
from placing import gpus, room, snapshot, state
from ronda.instances.check.checker import check
from ronda.instances.job import Allocation, Need
from ronda.instances.plan import Plan
from small import make_instance


def hosts(cluster, **has):
    """Return a cluster whose nodes all have some amounts."""
    groups = tuple(replace(group, has=has) for group in cluster.node_groups)
    return replace(cluster, node_groups=groups)


def broken(round_, **placements):
    """Return the sites' violations by a plan with the given placements."""
    given = {
        job: Allocation(option=gpus(sum(g for _, g in at)), placement=at)
        for job, at in placements.items()
    }
    found = check(round_, Plan(allocations=given))
    return [str(v) for v in found if v.code in ("host", "licence")]


def needing(job, placement=None, *, licences=None, **need):
    """Return a job that needs CPUs."""
    made = state(job, placement)
    return replace(
        made, job=replace(made.job, gpus=20, needs={"cpu": Need(**need)}, licences=licences or {})
    )


def test_amounts_by_piece():
    """Once on the node with fewest GPUs, the first of these in the placement; per node once."""
    round_ = snapshot(hosts(room(3), cpu=64.0), (), (needing("a", per_gpu=6, per_node=2, flat=14),))
    assert not broken(round_, a=((0, 8), (1, 8), (2, 4)))  # 50, 50, 24 + 2 + 14
    assert not broken(round_, a=((0, 8), (1, 8)))  # 64 and 50
    tight = replace(round_, cluster=replace(round_.cluster, taken=((0, "cpu", 1.0),)))
    assert not broken(tight, a=((1, 8), (0, 8)))
    (fault,) = broken(tight, a=((0, 8), (1, 8)))
    assert "node 0" in fault
    assert "64 of cpu" in fault
    assert "63" in fault
    tight = replace(round_, cluster=replace(round_.cluster, taken=((2, "cpu", 25.0),)))
    (fault,) = broken(tight, a=((0, 8), (1, 8), (2, 4)))
    assert "node 2" in fault


def test_sums_over_jobs_and_growth():
    """Jobs on a node add up; what runs may exceed, and only more than that is a violation."""
    cluster = replace(hosts(room(1), cpu=64.0), licences={"x": 2})
    jobs = [needing(n, flat=30, licences={"x": 1}) for n in "abc"]
    round_ = snapshot(cluster, (), jobs)
    assert not broken(round_, a=((0, 1),), b=((0, 1),))
    host, licence = sorted(broken(round_, a=((0, 1),), b=((0, 1),), c=((0, 1),)))
    assert "90 of cpu" in host
    assert "3 are held of 2" in licence
    runs = [needing(n, ((0, 1),), flat=30, licences={"x": 1}) for n in "ab"]
    less = replace(cluster, taken=((0, "cpu", 50.0),), licences_taken={"x": 2})
    later = snapshot(less, runs, (needing("c", flat=0.5),))
    assert not broken(later, a=((0, 1),), b=((0, 1),))
    assert not broken(later, a=((0, 1),))
    (fault,) = broken(later, a=((0, 1),), b=((0, 1),), c=((0, 1),))
    assert "60.5 of cpu" in fault


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"taken": ((0, "cpu", 1.0),)}, "node 0"),
        ({"licences": {"x": 1}}, "licence x"),
    ],
)
def test_a_schedule_over_time(change, words):
    """A run keeps both rules, and breaks them if there is a little less."""
    made = make_instance([(f"j{k}", 0, 2, 100 + k) for k in range(8)], nodes=2)
    cluster = replace(hosts(made.cluster, cpu=60.0), licences={"x": 2})
    jobs = tuple(
        replace(job, needs={"cpu": Need(per_gpu=15)}, licences={"x": 1} if k % 2 else {})
        for k, job in enumerate(made.jobs)
    )
    made = replace(made, cluster=cluster, jobs=jobs)
    for name in ("fifo", "srtf", "milp"):
        schedule = ronda.run(made, name)
        assert check(made, schedule) == []
        assert sum(o.end_s is not None for o in schedule.jobs) == 8
    less = replace(made, cluster=replace(cluster, **change))
    found = check(less, schedule)
    assert found
    assert {v.where for v in found} == {words}
    assert " from " in found[0].message
