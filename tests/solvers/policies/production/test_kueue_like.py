"""Kueue-like by hand: queues, types, borrowing, classical and fair preemption."""

import pytest
from msgspec.structs import replace

from ronda.instances.site import Disruption, PriorityClass, Tenant
from ronda.solvers.policies.production.quota_tree import branches
from ronda.solvers.policies.production.workloads import Workload, fewest
from shared_cluster import after, decided, job, shared, tenant

RANKS = tuple(PriorityClass(name=f"p{rank}", rank=rank) for rank in range(4))


@pytest.mark.parametrize(("strategy", "runs"), [("strict", []), ("best-effort", ["next"])])
@pytest.mark.parametrize("tenants", [(), (tenant("A", 8),)])
def test_a_head_that_does_not_fit_blocks_its_queue_or_not(strategy, runs, tenants):
    """Quota 8, of which 4 are in use; the head asks 8, the next asks 4."""
    own = {"tenant": "A"} if tenants else {}
    round_ = shared(
        job("old", 4, on=[0], **own),
        job("head", 8, submit_s=1.0, **own),
        job("next", 4, submit_s=2.0, **own),
        tenants=tenants,
    )
    plan = decided(round_, f"kueue-like(strategy={strategy})")
    assert sorted(plan.allocations) == [*runs, "old"]


@pytest.mark.parametrize(("within", "starved"), [("never", True), ("lower-or-newer", False)])
def test_a_stream_of_small_jobs_starves_a_large_one(within, starved):
    """50 jobs of 4 come one by one; each ends as the next but one comes."""
    round_ = shared(job("s0", 4, on=[0]), job("large", 8, submit_s=1.0))
    ran = False
    for k in range(1, 51):
        plan = decided(round_, f"kueue-like(within={within})")
        ran |= "large" in plan.allocations
        if ran:
            break
        round_ = after(round_, plan, 60.0, job(f"s{k}", 4, submit_s=round_.now_s + 60.0))
        going = tuple(s for s in round_.running if s.job.id != f"s{k - 2}")
        round_ = replace(round_, running=going)
    assert ran is not starved


def cohort(**fields):
    """Return tenants A, B and C of 4 GPUs each below one root; B's fields may be given."""
    return (
        Tenant(name="root"),
        tenant("A", 4, "root"),
        tenant("B", 4, "root", **fields),
        tenant("C", 4, "root"),
    )


@pytest.mark.parametrize(
    ("reclaim", "rank", "evicts"),
    [("never", 3, False), ("lower", 1, False), ("lower", 3, True), ("any", 0, True)],
)
def test_an_owner_reclaims_from_borrowers(reclaim, rank, evicts):
    """B holds all 12, 8 of them borrowed, at rank 1; A asks for its 4."""
    jobs = [job(f"b{k}", 4, on=[k], tenant="B", priority="p1", since_s=float(k)) for k in range(3)]
    asks = job("a", 4, tenant="A", priority=f"p{rank}", submit_s=9.0)
    round_ = shared(*jobs, asks, nodes=3, gpus_per_node=4, tenants=cohort(), classes=RANKS)
    plan = decided(round_, f"kueue-like(reclaim={reclaim})")
    assert ("a" in plan.allocations) is evicts
    assert sorted(plan.allocations) == (["a", "b0", "b1"] if evicts else ["b0", "b1", "b2"])
    again = decided(after(round_, plan), f"kueue-like(reclaim={reclaim})", plan)
    assert again.allocations.keys() == plan.allocations.keys()


@pytest.mark.parametrize(("holds", "evicted"), [(6, True), (4, False)])
def test_only_borrowers_are_reclaimed_from(holds, evicted):
    """B has 4 guaranteed: its job of 6 goes for A's 4, its job of 4 does not."""
    jobs = job("b", holds, on=[0], tenant="B"), job("a", 4, tenant="A", submit_s=9.0)
    round_ = shared(*jobs, gpus_per_node=7, tenants=cohort()[:3])
    plan = decided(round_, "kueue-like(reclaim=any)")
    assert ("b" not in plan.allocations) is evicted


@pytest.mark.parametrize(
    ("borrow_within", "victim", "evicts"),
    [("never", 0, False), ("lower", 0, True), ("lower:0", 0, True), ("lower:0", 1, False)],
)
def test_a_borrower_evicts_lower_priorities_only_if_it_may(borrow_within, victim, evicts):
    """A asks 6 of 4, rank 3, while B and C hold 6 each: only with `borrow_within`."""
    tenants = cohort()
    round_ = shared(
        job("b", 6, on=[0], tenant="B", priority=f"p{victim}"),
        job("c", 4, on=[1], tenant="C", priority="p2"),
        job("a", 6, tenant="A", priority="p3", submit_s=1.0),
        nodes=2,
        gpus_per_node=6,
        tenants=tenants,
        classes=RANKS,
    )
    plan = decided(round_, f"kueue-like(reclaim=lower, borrow_within={borrow_within})")
    assert ("a" in plan.allocations) is evicts


def test_who_borrows_least_comes_first():
    """Room for one more of 4: B is older and of higher priority, but would borrow."""
    round_ = shared(
        job("b0", 4, on=[0], tenant="B"),
        job("c0", 4, on=[1], tenant="C"),
        job("b", 4, tenant="B", priority="p3", submit_s=1.0),
        job("a", 4, tenant="A", submit_s=2.0),
        nodes=3,
        gpus_per_node=4,
        tenants=cohort(),
        classes=RANKS,
    )
    for fair in ("false", "true"):
        plan = decided(round_, f"kueue-like(fair={fair})")
        assert sorted(plan.allocations) == ["a", "b0", "c0"]


@pytest.mark.parametrize(("fair", "second"), [("true", "A1"), ("false", "B1")])
def test_fair_heads_are_admitted_by_the_share_that_they_would_have(fair, second):
    """Both heads of the first cycle run. Then A with weight 3 is ahead of B, which is older."""
    tenants = (
        Tenant(name="root"),
        tenant("A", 0, "root", weight=3.0),
        tenant("B", 0, "root"),
        tenant("C", 8, "root"),
    )
    jobs = [job(f"{t}{k}", 2, tenant=t, submit_s=float(t == "A")) for t in "AB" for k in range(4)]
    round_ = shared(*jobs, gpus_per_node=6, tenants=tenants)
    plan = decided(round_, f"kueue-like(fair={fair})")
    assert sorted(plan.allocations) == sorted(["A0", "B0", second])


def test_both_strategies_evict_where_the_first_alone_would_not():
    """The head's new share is 300; its victim's queue has 350, 250 without the victim.

    300 is above 250 but below 350. The victim may not evict back: its queue would have 350 again,
    against the 300 of the other.
    """
    tenants = (
        Tenant(name="root"),
        tenant("A", 0, "root"),
        tenant("B", 0, "root"),
        tenant("C", 20, "root"),
    )
    round_ = shared(
        job("a4", 4, on=[0], tenant="A"),
        job("b5", 5, on=[1], tenant="B", since_s=1.0),
        job("b2", 2, on=[1], tenant="B", since_s=2.0),
        job("c9", 9, on=[2], tenant="C"),
        job("a2", 2, tenant="A", submit_s=9.0),
        nodes=4,
        gpus_per_node=9,
        tenants=tenants,
    )
    spec = "kueue-like(fair=true, reclaim=any)"
    first = decided(round_, spec)
    assert sorted(first.allocations) == ["a2", "a4", "b5", "c9"]
    for _ in range(4):
        round_ = after(round_, first)
        again = decided(round_, spec, first)
        assert again.allocations.keys() == first.allocations.keys()
        first = again


@pytest.mark.parametrize("tas", ["true", "false"])
def test_without_nodes_a_job_waits_admitted_and_holds_quota(tas):
    """Quota 8 on two nodes of 4, of which 2 GPUs each are in use: a job of 4 finds no node.

    Admitted by quota alone it keeps a later job of 2 from the quota that is left, in this round
    and in the next.
    """
    jobs = [job(f"old{k}", 2, on=[k], tenant="A") for k in range(2)]
    large = job("large", 4, submit_s=1.0, tenant="A")
    small = job("small", 2, submit_s=2.0, tenant="A")
    round_ = shared(*jobs, large, small, nodes=2, gpus_per_node=4, tenants=(tenant("A", 8),))
    plan = None
    for _ in range(2):
        plan = decided(round_, f"kueue-like(tas={tas})", plan)
        assert ("small" in plan.allocations) is (tas == "true")
        round_ = after(round_, plan)
    held = {"pools": {"large": 0}, "since_s": {"large": 100.0}}
    assert plan.memory == ({} if tas == "true" else {"kueue_admitted": held})


def test_an_older_job_is_not_stopped_for_a_newer_one():
    """Both of rank 1; of rank 0 and newer than the head are stopped, the latest admitted first."""
    round_ = shared(
        job("old", 4, on=[0], priority="p1", submit_s=0.0),
        job("low", 2, on=[0], priority="p0", submit_s=0.0, since_s=5.0),
        job("new", 2, on=[0], priority="p1", submit_s=9.0, since_s=10.0),
        job("head", 2, priority="p1", submit_s=5.0),
        classes=RANKS,
    )
    for within, goes in (("lower", {"low"}), ("lower-or-newer", {"low"}), ("never", {"head"})):
        plan = decided(round_, f"kueue-like(within={within})")
        assert {"old", "low", "new", "head"} - plan.allocations.keys() == goes


def test_a_job_that_may_not_be_stopped_is_no_victim():
    """Not even of the lowest priority."""
    round_ = shared(
        job("firm", 8, on=[0], preemptible=False),
        job("head", 8, priority="p3", submit_s=1.0),
        classes=RANKS,
    )
    assert list(decided(round_, "kueue-like(within=lower)").allocations) == ["firm"]


@pytest.mark.parametrize(("gpus", "stopped"), [(3, set()), (4, {"low4"})])
@pytest.mark.parametrize(
    "spec", ["kueue-like(within=lower)", "slurm-like(preempt=qos)", "kai-like"]
)
def test_nobody_is_stopped_beyond_the_disruption_budget(spec, gpus, stopped):
    """The head needs the 4 GPUs of a job of lower rank; with 3 it waits."""
    round_ = shared(
        job("low4", 4, on=[0], priority="p0", tenant="A"),
        job("same", 4, on=[0], priority="p1", tenant="A"),
        job("head", 4, priority="p1", submit_s=1.0, tenant="A"),
        classes=RANKS,
        tenants=(tenant("A"),),
        disruption=Disruption(gpus=gpus),
    )
    plan = decided(round_, spec)
    assert {"low4", "same"} - plan.allocations.keys() == stopped
    assert ("head" in plan.allocations) is bool(stopped)


@pytest.mark.parametrize(("strategy", "runs"), [("strict", False), ("best-effort", True)])
def test_a_head_without_victims_reserves_its_quota(strategy, runs):
    """A's head asks for its 4, of which B has borrowed 2: C may not borrow the other 2 meanwhile.

    Under best-effort A's head is passed over after its cycle, and C's runs in the next.
    """
    tenants = (Tenant(name="root"), tenant("A", 4, "root"), tenant("B", 4, "root"))
    round_ = shared(
        job("b", 6, on=[0], tenant="B"),
        job("a", 4, tenant="A", submit_s=1.0),
        job("c", 2, tenant="C", submit_s=2.0),
        tenants=(*tenants, tenant("C", 0, "root")),
    )
    plan = decided(round_, f"kueue-like(strategy={strategy})")
    assert ("c" in plan.allocations) is runs


def test_within_nominal_no_share_is_compared():
    """A asks for its own 2; its department has borrowed 5 of 8, more than E's 3, which give way."""
    tenants = (
        tenant("root", 8),
        Tenant(name="D", parent="root"),
        Tenant(name="E", parent="root"),
        tenant("A", 2, "D"),
        tenant("B", 0, "D"),
        tenant("C", 0, "E"),
    )
    round_ = shared(
        job("b", 7, on=[0], tenant="B", preemptible=False),
        job("c", 3, on=[1], tenant="C"),
        job("a", 2, tenant="A", submit_s=1.0),
        nodes=2,
        gpus_per_node=7,
        tenants=tenants,
    )
    plan = decided(round_, "kueue-like(fair=true, reclaim=any)")
    assert sorted(plan.allocations) == ["a", "b"]


def test_of_equal_priority_only_newer_jobs_go():
    """The job that runs came first."""
    round_ = shared(job("old", 8, on=[0]), job("head", 8, submit_s=5.0))
    plan = decided(round_, "kueue-like(within=lower-or-newer)")
    assert list(plan.allocations) == ["old"]


def test_victims_come_back_whose_return_leaves_room():
    """Jobs of 1, 2 and 4 go in this order until 4 are free: the first two come back."""
    leaf = branches([tenant("A", 8)], ())["A"]
    works = [Workload(job(str(n), n), leaf, 0, use={"gpus": n}) for n in (1, 2, 4)]
    for work in works:
        leaf.add(work.use)
    found = fewest(iter(works), lambda victims: sum(w.use["gpus"] for w in victims) >= 4)
    assert [work.state.job.id for work in found] == ["4"]
    assert leaf.use["gpus"] == 7
    assert fewest(iter(works[:2]), lambda victims: False) == []
