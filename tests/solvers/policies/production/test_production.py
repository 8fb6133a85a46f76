"""What all rules of production schedulers have in common, in random rounds under a site's rules."""

import random

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.site import PriorityClass, Tenant
from ronda.solvers.policies.production.floor import Floor
from ronda.solvers.registry import policy
from ronda.testing import alike
from shared_cluster import after, decided, job, shared, tenant
from site_rounds import RULES, drawn_rules, tiny

SPECS = (
    "drf",
    "kai-like",
    "kueue-like",
    "kueue-like(strategy=strict, tas=false, within=lower)",
    "kueue-like(reclaim=any, within=lower-or-newer, borrow_within=lower)",
    "kueue-like(fair=true, reclaim=any, within=lower-or-newer)",
    "slurm-like",
    "slurm-like(preempt=qos, backfill=easy)",
)


@pytest.mark.parametrize("spec", SPECS)
def test_plans_keep_every_rule_of_a_site(spec):
    """Tiny rounds under two or three rules: plans are valid, and the same again."""
    made = policy(spec)
    for seed in range(25):
        round_ = tiny(seed, drawn_rules(seed, tuple(RULES)))
        plan = made.plan(round_)
        assert check(round_, plan) == [], seed
        assert alike(plan, made.plan(round_)), seed


def drawn(seed):
    """Return a random round: 14 jobs of four tenants in two departments, of three priorities."""
    rng = random.Random(seed)
    tenants = [Tenant(name="root"), tenant("D", 0, "root"), tenant("E", 0, "root")]
    for name in "abcd":
        limits = {key: rng.randint(0, 6) for key in ("borrow", "lend") if rng.random() < 0.3}
        above, weight = rng.choice(["D", "E", "root"]), rng.choice([0.0, 1.0, 2.0])
        tenants.append(tenant(name, rng.randint(0, 6), above, weight=weight, **limits))
    jobs, free = [], [8, 8, 8]
    for k in range(14):
        gpus, submit_s = rng.choice([1, 1, 2, 2, 4, 8]), float(rng.randint(0, 50))
        own = {"tenant": rng.choice("abcd"), "priority": rng.choice("xyz"), "submit_s": submit_s}
        room = [n for n in range(3) if free[n] >= gpus and rng.random() < 0.7]
        if room:
            free[room[0]] -= gpus
            own |= {"on": room[:1], "since_s": float(rng.randint(50, 90))}
        jobs.append(job(f"j{k}", gpus, **own))
    ranks = [PriorityClass(name=name, rank=rank) for rank, name in enumerate("xyz")]
    jobs.sort(key=lambda state: state.job.submit_s)
    return shared(*jobs, nodes=3, tenants=tenants, classes=ranks)


@pytest.mark.parametrize(
    "spec",
    [
        "kueue-like(reclaim=any)",
        "kueue-like(fair=true, reclaim=any, within=lower)",
        "kai-like",
        "slurm-like(preempt=qos)",
    ],
)
def test_without_news_jobs_come_to_rest(spec):
    """No two tenants take GPUs from each other again and again, though nothing new happens."""
    for seed in range(5):
        round_, plan, runs = drawn(seed), None, None
        for _ in range(9):
            before, plan = runs, decided(round_, spec, plan)
            runs, round_ = plan.allocations.keys(), after(round_, plan)
        assert runs == before, seed


def test_a_job_that_moved_leaves_its_nodes():
    """From node 0 to node 1; then another one stops, and the room is made anew."""
    floor = Floor(shared(job("a", 4, on=[0]), job("b", 4, on=[2]), nodes=3, gpus_per_node=4))
    moved, other = floor.round.running
    floor.stop([moved])
    floor.take(moved, replace(moved.allocation, placement=((1, 4),)))
    floor.stop([other])
    assert floor.room.nodes(0).total == 8
    assert not floor.goes_on(moved)
    assert floor.stopped() == [other]
    assert floor.go_on(other)
    assert floor.goes_on(other)
