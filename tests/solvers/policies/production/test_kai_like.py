"""KAI-like by hand: the order of queues, consolidation, reclaim and preemption."""

import pytest
from msgspec.structs import replace

from ronda.instances.site import PriorityClass
from shared_cluster import after, decided, job, shared, tenant

RANKS = tuple(PriorityClass(name=f"p{rank}", rank=rank) for rank in range(3))


def under_one(whole, **guaranteed):
    """Return tenants below a root that owns what of a whole is not guaranteed to them."""
    root = tenant("root", whole - sum(guaranteed.values()))
    return (root, *(tenant(name, own, "root") for name, own in guaranteed.items()))


def running(owner, count, gpus=2, **fields):
    """Return jobs of an owner that run on node 0, each since its own time."""
    return [
        job(f"{owner}{k}", gpus, on=[0], tenant=owner, since_s=float(k), **fields)
        for k in range(count)
    ]


def test_tenants_below_their_fair_shares_come_first():
    """A holds 4 of 8 and B 2: B's job is later, and the first."""
    round_ = shared(
        *running("A", 2),
        *running("B", 1),
        job("a", 2, tenant="A", submit_s=0.0),
        job("b", 2, tenant="B", submit_s=9.0),
        tenants=under_one(8, A=2, B=2),
    )
    assert sorted(decided(round_, "kai-like").allocations) == ["A0", "A1", "B0", "b"]


def test_past_use_counts_by_kappa():
    """Both hold nothing and ask for all 12: with the past 0.6 and 0.2 of the cluster, 4 and 8."""
    jobs = [job(f"{t}{k}", 1, tenant=t, submit_s=float(t == "B")) for t in "AB" for k in range(12)]
    round_ = shared(*jobs, gpus_per_node=12, tenants=(tenant("A"), tenant("B")))
    round_ = replace(round_, used={"A": 7.2, "B": 2.4})
    for kappa, own in ((1.0, 4), (0.0, 6)):
        plan = decided(round_, f"kai-like(kappa={kappa})")
        assert sum(name.startswith("A") for name in plan.allocations) == own


def test_a_job_moves_to_make_room_in_one_piece():
    """4 GPUs run on each of two nodes of 8: the later one moves, and both nodes are full."""
    round_ = shared(
        job("r0", 4, on=[0], since_s=1.0),
        job("r1", 4, on=[1], since_s=2.0),
        job("wide", 8),
        nodes=2,
    )
    plan = decided(round_, "kai-like")
    assert {name: given.placement for name, given in plan.allocations.items()} == {
        "r0": ((0, 4),),
        "wide": ((1, 8),),
        "r1": ((0, 4),),
    }
    firm = [replace(s, job=replace(s.job, preemptible=False)) for s in round_.running]
    assert len(decided(replace(round_, running=tuple(firm)), "kai-like").allocations) == 2


@pytest.mark.parametrize(
    ("a", "b", "holds", "asks", "stopped"),
    [
        (4, 4, 4, 4, ["B3", "B2"]),  # within quota, from a tenant above its own
        (0, 0, 4, 4, ["B3", "B2"]),  # up to the fair share of 4
        (0, 0, 4, 6, []),  # above the fair share
        (2, 6, 3, 4, []),  # above its fair share of 2; B is within its 6
    ],
)
def test_reclaim_goes_up_to_the_fair_share(a, b, holds, asks, stopped):
    """B holds the cluster with jobs of 2, latest first; A asks with one. Nothing changes back."""
    round_ = shared(
        *running("B", holds),
        job("wide", asks, tenant="A", submit_s=50.0),
        gpus_per_node=2 * holds,
        tenants=under_one(2 * holds, A=a, B=b),
    )
    plan = decided(round_, "kai-like")
    left = {f"B{k}" for k in range(holds)} - set(stopped)
    assert set(plan.allocations) == left | ({"wide"} if stopped else set())
    for _ in range(3):
        round_ = after(round_, plan)
        again = decided(round_, "kai-like", plan)
        assert again.allocations.keys() == plan.allocations.keys()
        plan = again


@pytest.mark.parametrize(
    ("rank", "min_run_s", "stopped"), [(0, 0, []), (1, 0, ["A3"]), (1, 97.5, ["A2"])]
)
def test_preemption_is_within_a_tenant_by_lower_priority(rank, min_run_s, stopped):
    """The latest of lower rank goes, unless it has run for too little: A3 for 97 s."""
    round_ = shared(
        *running("A", 4, priority="p0"),
        job("a", 2, tenant="A", priority=f"p{rank}", submit_s=50.0),
        tenants=(tenant("A", 8),),
        classes=RANKS,
    )
    plan = decided(round_, f"kai-like(min_run_s={min_run_s})")
    assert {f"A{k}" for k in range(4)} - set(plan.allocations) == set(stopped)


def test_quotas_above_the_cluster_are_no_error():
    """10 GPUs are guaranteed and 7 are there: who comes first has them."""
    round_ = shared(
        job("b", 5, on=[0], tenant="B"),
        job("a", 5, tenant="A"),
        gpus_per_node=7,
        tenants=(tenant("A", 5), tenant("B", 5)),
    )
    assert list(decided(round_, "kai-like").allocations) == ["b"]
