"""Dominant resource fairness by hand."""

import pytest
from msgspec.structs import replace

from ronda.instances.job import Need
from shared_cluster import decided, job, shared, tenant


def tasks(owner, cpu, memory, count):
    """Return waiting jobs of one GPU with needs."""
    needs = {"cpu": Need(flat=cpu), "memory_gib": Need(flat=memory)}
    return [
        job(f"{owner}{k}", 1, tenant=owner, needs=needs, submit_s=float(k)) for k in range(count)
    ]


def of(plan, owner):
    """Return how many jobs of a tenant run."""
    return sum(name.startswith(owner) for name in plan.allocations)


@pytest.mark.parametrize("spec", ["drf", "drf(skip=false)", "drf(by_type=true)"])
def test_the_example_of_the_paper(spec):
    """9 CPUs, 18 GiB; A's tasks take 1 and 4, B's 3 and 1: A runs 3 and B 2."""
    round_ = shared(
        *tasks("A", 1, 4, 6),
        *tasks("B", 3, 1, 6),
        gpus_per_node=64,
        has={"cpu": 9, "memory_gib": 18},
        tenants=(tenant("A"), tenant("B")),
    )
    plan = decided(round_, spec)
    assert (of(plan, "A"), of(plan, "B")) == (3, 2)


def test_weights_and_what_runs_count():
    """Of 8 GPUs A with weight 3 gets 6; if B already holds 4, A gets the other 4."""
    tenants = (tenant("A", weight=3.0), tenant("B"))
    jobs = [job(f"{t}{k}", 1, tenant=t) for t in "AB" for k in range(8)]
    plan = decided(shared(*jobs, tenants=tenants), "drf")
    assert (of(plan, "A"), of(plan, "B")) == (6, 2)
    plan = decided(shared(job("Bold", 4, on=[0], tenant="B"), *jobs, tenants=tenants), "drf")
    assert (of(plan, "A"), of(plan, "B")) == (4, 1)


@pytest.mark.parametrize(("skip", "runs"), [("true", ["b"]), ("false", [])])
def test_a_job_without_room_is_left_out_or_ends_the_decision(skip, runs):
    """A's job of 8 does not fit beside one of 4."""
    tenants = (tenant("A"), tenant("B"), tenant("C"))
    round_ = shared(
        job("c", 4, on=[0], tenant="C"),
        job("a", 8, tenant="A"),
        job("b", 2, tenant="B"),
        tenants=tenants,
    )
    plan = decided(round_, f"drf(skip={skip})")
    assert sorted(plan.allocations) == [*runs, "c"]


def test_a_blocked_job_does_not_start():
    """It waits for another one."""
    state = replace(job("a", 4), blocked="waits for z")
    assert decided(shared(state), "drf").allocations == {}


def test_a_tenant_without_weight_comes_last():
    """B's 8 jobs fill the node."""
    jobs = [job(f"{t}{k}", 1, tenant=t) for t in "AB" for k in range(8)]
    plan = decided(shared(*jobs, tenants=(tenant("A", weight=0.0), tenant("B"))), "drf")
    assert (of(plan, "A"), of(plan, "B")) == (0, 8)
