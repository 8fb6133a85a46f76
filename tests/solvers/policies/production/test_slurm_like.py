"""Slurm-like by hand: priority, Fair Tree, the main pass, backfill, and preemption."""

import pytest
from msgspec.structs import replace

from ronda.instances.job import Need
from ronda.instances.site import PriorityClass, Quota, Tenant
from ronda.solvers.policies.production import slurm_like
from ronda.solvers.policies.production.slurm_like import SlurmLike
from ronda.solvers.policies.production.slurm_priority import RawUsage, fair_tree
from ronda.solvers.registry import policy
from shared_cluster import after, decided, job, shared, tenant

RANKS = tuple(PriorityClass(name=f"p{rank}", rank=rank) for rank in range(3))


def test_priority_by_hand():
    """1000·3.5/7 + 10000·0.75 + 1000·(4/16 + 128/512)/2 + 2000·10/20 = 9250; 1 at least."""
    factors = {"age": 3.5 / 7, "fair_share": 0.75, "size": (4 / 16 + 128 / 512) / 2, "qos": 10 / 20}
    assert SlurmLike().priority(**factors) == 9250
    assert SlurmLike().priority(**dict.fromkeys(factors, 0.0)) == 1
    assert SlurmLike(age=1e12).priority(**factors) == 2**32 - 1


def test_large_jobs_come_first_by_their_shares_of_nodes_and_cpus():
    """A of 1 of 2 nodes and 8 of 16 CPUs: (1/2 + 1/2)/2; B of as many nodes and no CPUs: 1/4."""
    b = job("b", 4, submit_s=0.0)
    a = job("a", 4, submit_s=1.0, needs={"cpu": Need(per_gpu=2)})
    old = job("old", 4, on=[0])
    round_ = shared(old, b, a, nodes=2, gpus_per_node=4, has={"cpu": 8})
    assert "a" in decided(round_, "slurm-like(age=0)").allocations
    assert "b" in decided(round_, "slurm-like(age=0, size=0)").allocations


def test_fair_tree_by_hand():
    """P uses less than its share, Q more: all of P's users come first, also before q2 with none."""
    tenants = [
        Tenant(name="Q", weight=60),
        Tenant(name="P", weight=40),
        *(Tenant(name=name, parent=name[0].upper()) for name in ("p1", "p2", "q1", "q2")),
    ]
    used = {"p1": 9.0, "p2": 1.0, "q1": 90.0}
    assert fair_tree(tenants, used) == {"p2": 1.0, "p1": 0.75, "q2": 0.5, "q1": 0.25}


def test_children_of_parents_that_tie_are_ordered_together():
    """P and Q are alike, so q's level decides: q2 and p2 have used nothing, and tie."""
    tenants = [Tenant(name="P"), Tenant(name="Q")]
    tenants += [Tenant(name=name, parent=name[0].upper()) for name in ("p1", "p2", "q1", "q2")]
    found = fair_tree(tenants, {"p1": 5.0, "q1": 5.0})
    assert found == {"p2": 1.0, "q2": 1.0, "p1": 0.5, "q1": 0.5}
    assert fair_tree([Tenant(name="a", weight=0), Tenant(name="b")], {"b": 9.0}) == {
        "b": 1.0,
        "a": 0.5,
    }


def test_usage_halves_by_a_linear_factor():
    """16 GPUs for 100 s, then nothing: Slurm's δ is 1 − 0.693/h, and new use is decayed as well."""
    round_ = shared(job("a", 8, on=[0], tenant="A"), tenants=(tenant("A"),))
    first = RawUsage.of(round_, None, 1000.0)
    assert first.gpu_s == {"A": 800.0}
    plan = policy("slurm-like(half_life_s=1000)").plan(round_)
    then = RawUsage.of(replace(round_, now_s=300.0, running=()), plan, 1000.0)
    assert then.gpu_s["A"] == pytest.approx((800.0 + 200 * 8) * (1 - 0.693 / 1000) ** 200)
    assert then.held == {}


def queue(*specs):
    """Return waiting jobs of whole nodes of one GPU with limits, in order."""
    return [
        job(name, nodes, limit_s=limit_s, submit_s=float(k))
        for k, (name, nodes, limit_s) in enumerate(specs)
    ]


def starts(spec, rounds=8):
    """Return when jobs start on 4 nodes, of which 2 are busy until 120: A, B and C by limits."""
    busy = job("r", 2, on=[0, 1], limit_s=220.0, work=220.0)
    waiting = queue(("A", 3, 120.0), ("B", 4, 120.0), ("C", 1, 300.0))
    round_ = shared(busy, *waiting, nodes=4, gpus_per_node=1, now_s=100.0)
    found, plan = {}, None
    for _ in range(rounds):
        plan = decided(round_, spec, plan)
        for name in plan.allocations:
            found.setdefault(name, round_.now_s - 100.0)
        round_ = after(round_, plan, 60.0)
        going = [s for s in round_.running if round_.now_s - s.held_s < s.job.limit_s]
        round_ = replace(round_, running=tuple(going))
    del found["r"]
    return found


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        ("conservative", {"A": 120.0, "B": 240.0, "C": 360.0}),
        ("easy", {"C": 0.0, "A": 120.0, "B": 300.0}),
        ("none", {"A": 120.0, "B": 240.0, "C": 360.0}),
    ],
)
def test_conservative_and_easy_backfill(backfill, expected):
    """Under EASY C delays no reservation of the first job, but B slips from 240 to 300."""
    spec = f"slurm-like(backfill={backfill}, age=0, size=0)"
    assert starts(spec) == expected


def test_a_reservation_is_of_whole_nodes(monkeypatch):
    """A waits for both GPUs of node 0; b would fit beside it for longer, but the node is taken."""
    round_ = shared(
        job("r", 1, on=[0], limit_s=200.0),
        job("s", 2, on=[1], limit_s=9000.0),
        job("A", 2, limit_s=1000.0, submit_s=1.0),
        job("b", 1, limit_s=1000.0, submit_s=2.0),
        job("c", 1, limit_s=60.0, submit_s=3.0),
        nodes=2,
        gpus_per_node=2,
    )
    assert "b" not in decided(round_, "slurm-like").allocations
    assert "c" in decided(round_, "slurm-like").allocations
    assert "c" not in decided(round_, "slurm-like(most_tested=1)").allocations
    monkeypatch.setattr(slurm_like, "WINDOW_S", 50.0)
    assert "b" in decided(round_, "slurm-like").allocations


def test_without_a_limit_the_declared_time_counts_by_a_factor():
    """A is promised a start at 120 s: a job that declares 60 s ends before that, not at thrice."""
    round_ = shared(
        job("r", 4, on=[0], limit_s=200.0),
        job("A", 8, limit_s=1000.0, submit_s=1.0),
        job("c", 4, work=60.0, submit_s=2.0),
    )
    runs = ["c" in decided(round_, f"slurm-like(limit_factor={f})").allocations for f in (1.0, 3.0)]
    assert runs == [True, False]


def test_fair_share_orders_the_queue():
    """A has held the cluster: B's younger job goes first, and A's by age if only age counts."""
    tenants = (tenant("A"), tenant("B"))
    round_ = shared(
        job("old", 4, on=[0], tenant="A"),
        job("a", 4, tenant="A", submit_s=1.0),
        job("b", 4, tenant="B", submit_s=2.0),
        tenants=tenants,
    )
    assert sorted(decided(round_, "slurm-like").allocations) == ["b", "old"]
    assert sorted(decided(round_, "slurm-like(fair_share=0)").allocations) == ["a", "old"]


@pytest.mark.parametrize(("preempt", "runs"), [("none", False), ("qos", True)])
def test_only_lower_ranks_stop_and_the_last_needed_first(preempt, runs):
    """In order low2, low4 are stopped; as low4 alone suffices, low2 goes on."""
    round_ = shared(
        job("low2", 2, on=[0], priority="p0"),
        job("low4", 4, on=[0], priority="p0"),
        job("same", 2, on=[0], priority="p1"),
        job("head", 4, priority="p1", submit_s=1.0),
        classes=RANKS,
    )
    plan = decided(round_, f"slurm-like(preempt={preempt})")
    assert ("head" in plan.allocations) is runs
    assert sorted(plan.allocations) == (
        ["head", "low2", "same"] if runs else ["low2", "low4", "same"]
    )


def test_jobs_of_equal_rank_stop_nobody():
    """Nor does a job without a class."""
    round_ = shared(job("same", 8, on=[0], priority="p1"), job("head", 8, priority="p1"))
    round_ = replace(round_, site=replace(round_.site, classes=RANKS))
    assert list(decided(round_, "slurm-like(preempt=qos)").allocations) == ["same"]


def test_a_job_that_a_limit_holds_back_blocks_nobody():
    """A may hold 4 and does: its head is passed over, and B's job starts without backfill."""
    round_ = shared(
        job("old", 4, on=[0], tenant="A"),
        job("a", 4, tenant="A", submit_s=1.0),
        job("b", 4, tenant="B", submit_s=2.0),
        tenants=(Tenant(name="A", quotas=(Quota(limit=4),), weight=9.0), Tenant(name="B")),
    )
    spec = "slurm-like(backfill=none, fair_share=0)"
    assert sorted(decided(round_, spec).allocations) == ["b", "old"]


def test_what_is_reserved_beside_a_job_is_free_for_nobody_longer(monkeypatch):
    """A waits for 2 of node 0, of which 1 is free: b would fit there beside A, but for the node."""
    round_ = shared(
        job("r", 3, on=[0], limit_s=200.0),
        job("A", 2, limit_s=1000.0, submit_s=1.0),
        job("b", 1, limit_s=1000.0, submit_s=2.0),
        gpus_per_node=4,
    )
    assert list(decided(round_, "slurm-like").allocations) == ["r"]
    monkeypatch.setattr(slurm_like, "WINDOW_S", 50.0)
    assert sorted(decided(round_, "slurm-like").allocations) == ["b", "r"]
