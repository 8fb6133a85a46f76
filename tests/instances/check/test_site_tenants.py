"""The checker on tenants and groups: each rule kept, and broken once by hand."""

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Need, Option, Truth
from ronda.instances.plan import Plan
from ronda.instances.schedule import JobOutcome, Schedule, Segment
from ronda.instances.site import LimitGroup, Quota, Site, Tenant
from tenant_rounds import quota, tenant_round, tree

TREE = tree(A=quota(4, lend=2, borrow=1, limit=6), B=quota(2))
CPU = (Tenant(name="A", quotas=(Quota(of="cpu", limit=11.0),)),)


def given(round_, *counts):
    """Return the plan in which the first jobs of each tenant run, given as (tenant, jobs)."""
    left, node, found = dict(counts), 0, {}
    for state in round_.jobs:
        if left.get(state.job.tenant, 0):
            left[state.job.tenant] -= 1
            option = Option(pool=0, gpus=state.job.gpus, span="node")
            found[state.job.id] = Allocation(option=option, placement=((node, option.gpus),))
    return Plan(allocations=found)


def told(round_, *counts):
    """Return the codes and places of the violations by a plan of the first jobs of tenants."""
    return [(v.code, v.where) for v in check(round_, given(round_, *counts))]


@pytest.mark.parametrize(
    ("kept", "broken", "code", "where"),
    [
        # What A has lent is 2; what it may have is 4 + 1; the tree has 4 − 2 + 2 with 2 at home.
        ([("A", 5)], [("A", 6)], "quota", "tenant A"),
        ([("A", 5), ("B", 1)], [("A", 5), ("B", 2)], "quota", "tenant root"),
        ([("B", 4)], [("B", 5)], "quota", "tenant root"),
        ([("one", 1)], [("one", 2)], "running", "tenant one"),
        ([("ahead", 2)], [("ahead", 3)], "running", "tenant ahead"),
        ([("none", 0)], [("none", 1)], "quota", "tenant none"),
        ([("firm", 2)], [("firm", 3)], "firm", "tenant firm"),
        ([("q", 2)], [("q", 3)], "quota", "group qos"),
    ],
)
def test_each_limit_is_broken_once(kept, broken, code, where):
    """One job more than the limit allows."""
    tenants = (
        *TREE,
        Tenant(name="one", max_jobs=1),
        Tenant(name="ahead", max_gpu_s=2000.0),
        Tenant(name="none", quotas=quota(limit=0)),
        Tenant(name="firm", quotas=quota(2)),
        Tenant(name="q"),
    )
    names = ["A"] * 8 + ["B"] * 8 + ["one", "ahead", "firm", "q"] * 3 + ["none"]
    fields = {f"{t}{k}": {"preemptible": t != "firm"} for k, t in enumerate(names)}
    fields |= {f"{t}{k}": {"limit_s": 1000.0} for k, t in enumerate(names) if t == "ahead"}
    round_ = tenant_round(
        64,
        tenants,
        [(name, 1) for name in names],
        fields=fields,
        groups=(LimitGroup(name="qos", tenants=("q",), most={"gpus": 2}),),
        firm_within_guarantee=True,
    )
    guaranteed_only = [("firm", "tenant firm")] if where == "tenant firm" else []
    assert told(round_, *kept) == []
    assert (code, where) in told(round_, *broken)
    assert guaranteed_only == [pair for pair in told(round_, *broken) if pair[0] == "firm"]


def test_what_hosts_give_is_counted_by_gpu_by_node_and_once():
    """A job of 2 GPUs with 3 CPUs each, 2 on its node and 3 more has 11."""
    need = Need(per_gpu=3.0, per_node=2.0, flat=3.0)
    for flat, broken in ((3.0, []), (3.1, [("quota", "tenant A")])):
        fields = {"A0": {"needs": {"cpu": replace(need, flat=flat)}}}
        assert told(tenant_round(8, CPU, [("A", 2)], fields=fields), ("A", 1)) == broken


def test_only_growth_breaks_a_limit():
    """Three run under a limit of 2: two or three may go on, another in place of one is no more."""
    tenants = (Tenant(name="A", quotas=quota(limit=2)),)
    round_ = tenant_round(8, tenants, [("A", 1), ("A", 1)], [("A", 1)] * 3)
    held = round_.held
    four = given(round_, ("A", 4)).allocations
    swapped = {job: four[job] for job in ("A0", "A1", "A3")}
    assert check(round_, Plan(allocations=held)) == []
    assert check(round_, Plan(allocations=swapped)) == []
    assert [v.code for v in check(round_, Plan(allocations=four))] == ["quota"]


def test_a_schedule_keeps_quotas_at_all_times():
    """Two jobs of A at once, where one may run; one after the other is sound."""
    tenants = (Tenant(name="A", quotas=quota(limit=1)), Tenant(name="B"))
    round_ = tenant_round(4, tenants, [("A", 1), ("A", 1), ("B", 1)])
    jobs = tuple(
        replace(s.job, truth=Truth(work=100.0), submit_s=0.0, weight=1.0) for s in round_.waiting
    )
    instance = Instance(
        name="i",
        cluster=round_.cluster,
        profiles=round_.profiles,
        jobs=jobs,
        site=Site(tenants=tenants),
    )
    option = Option(pool=0, gpus=1, span="node")
    for starts, codes in (((0, 100, 0), []), ((0, 99, 0), ["quota"])):
        own = [
            Segment(
                start_s=at,
                resume_s=at,
                end_s=at + 100,
                done=100.0,
                option=option,
                placement=((0, 1),),
            )
            for at in map(float, starts)
        ]
        outcomes = tuple(
            JobOutcome(id=job.id, submit_s=0.0, end_s=each.end_s, segments=(each,))
            for job, each in zip(jobs, own, strict=True)
        )
        end_s = max(each.end_s for each in own)
        schedule = Schedule(instance="i", fingerprint="", policy="", jobs=outcomes, end_s=end_s)
        found = [v.code for v in check(instance, schedule) if v.code != "accounting"]
        assert found == codes
