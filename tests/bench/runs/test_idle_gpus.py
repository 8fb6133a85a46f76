"""Free GPUs by cause, and how tenants fare, by hand."""

import pytest
from msgspec.structs import replace

from ronda.bench.runs import shared as shared_cluster
from ronda.bench.runs.shared import CAUSES, _lost, idle_by_cause
from ronda.bench.runs.single import measure
from ronda.horizon.driver import run
from ronda.instances.job import Need
from ronda.instances.site import Quota, Site, Tenant
from shared_cluster import job, shared, tenant


def lost(*jobs, **fields):
    """Return the free GPUs of a round by cause, without those of which there are none."""
    found = _lost(shared(*jobs, **fields))
    return {cause: float(x) for cause, x in zip(CAUSES, found, strict=True) if x}


CPU = {"needs": {"cpu": Need(per_gpu=8)}}


def test_each_cause_by_itself():
    """4 of 8 GPUs are free, and a job of 4 waits."""
    old, waits = job("old", 4, on=[0], tenant="A"), job("w", 4, tenant="A")
    limited = (Tenant(name="A", quotas=(Quota(limit=4),)),)
    assert lost(old, waits, tenants=limited) == {"quota": 4}
    assert lost(old, waits, tenants=(tenant("A", 4),)) == {"quota": 4}
    assert lost(old, waits, tenants=(tenant("A", 8),)) == {"order": 4}
    pieces = job("old", 4, on=[0, 1], tenant="A")
    assert lost(pieces, waits, nodes=2, gpus_per_node=4, tenants=(tenant("A"),)) == {"rack": 4}
    assert lost(old, job("w", 4, **CPU), has={"cpu": 31}) == {"host": 4}
    assert lost(old, job("w", 4, **CPU), has={"cpu": 32}) == {"order": 4}
    each = [job("old", 4, on=[0], needs={"cpu": Need(per_node=4)})]
    each += [job("w", 4, needs={"cpu": Need(per_node=5)})]
    assert lost(*each, has={"cpu": 8}) == {"host": 4}
    assert lost(*each, has={"cpu": 9}) == {"order": 4}


def test_no_more_gpus_count_than_are_asked_and_too_few_are_by_order():
    """6 are free: one job asks for 2 of them; another would need 8."""
    old = job("old", 2, on=[0])
    assert lost(old, job("w", 2)) == {"order": 2}
    assert lost(old, job("w", 8)) == {"order": 6}
    assert lost(old) == {}


def test_several_causes_share_the_free_gpus():
    """16 of 32 GPUs are free: 8 for a tenant at its limit, 4 lack CPUs, and 4 could be had."""
    round_jobs = [
        job("old", 16, on=[0, 1, 2, 3], tenant="B"),
        job("a", 8, tenant="A", submit_s=1.0),
        job("b", 4, tenant="B", submit_s=2.0, needs={"cpu": Need(per_gpu=10)}),
        job("c", 4, tenant="B", submit_s=3.0),
    ]
    found = lost(
        *round_jobs,
        nodes=4,
        has={"cpu": 9},
        tenants=(Tenant(name="A", quotas=(Quota(limit=4),)), tenant("B")),
    )
    assert found == {"quota": 8, "host": 4, "order": 4}


def test_figures_of_a_run(make_instance):
    """FIFO on 4 GPUs: a0 holds all for 100 s, b waits for them and runs as long.

    b of B takes 200 s instead of 100; for 100 of the 200 s in which it is owed 2 GPUs it has none.
    """
    made = make_instance([("a0", 0.0, 4, 100.0), ("b0", 0.0, 2, 100.0)])
    site = Site(tenants=(Tenant(name="r"), tenant("A", 2, "r"), tenant("B", 2, "r")))
    jobs = tuple(replace(each, tenant=each.id[0].upper()) for each in made.jobs)
    instance = replace(made, jobs=jobs, site=site)
    found = measure(instance, run(instance, "fifo"), wall_s=0.0).metrics
    assert found["slowdown_by_tenant"] == {"A": 1.0, "B": 2.0}
    assert (found["mean_slowdown"], found["worst_slowdown"]) == (1.5, 2.0)
    assert found["owed_met"] == pytest.approx(0.5)
    assert {cause: found[f"idle_{cause}"] for cause in CAUSES} == dict.fromkeys(CAUSES, 0.0)
    plain = measure(made, run(made, "fifo"), wall_s=0.0).metrics
    assert not plain.keys() & {"owed_met", "idle_quota", "mean_slowdown"}


def test_time_that_gpus_are_free_for_quota_is_a_share_of_all_gpu_time(make_instance):
    """A's limit is 2: a1 waits for 100 of 200 s while 2 of 4 GPUs are free."""
    made = make_instance([("a0", 0.0, 2, 100.0), ("a1", 0.0, 2, 100.0)])
    site = Site(tenants=(Tenant(name="A", quotas=(Quota(limit=2),)),))
    instance = replace(made, jobs=tuple(replace(j, tenant="A") for j in made.jobs), site=site)
    found = measure(instance, run(instance, "fifo"), wall_s=0.0).metrics
    assert found["idle_quota"] == pytest.approx(0.25)
    assert found["violations"] == 0


def test_of_many_moments_every_nth_stands_for_n(make_instance, monkeypatch):
    """Ten jobs of 3 of 4 GPUs for 10 s each: one GPU is free and wanted for 90 of 100 s."""
    made = make_instance([(f"a{k}", 0.0, 3, 10.0) for k in range(10)])
    jobs = tuple(replace(each, tenant="A") for each in made.jobs)
    instance = replace(made, jobs=jobs, site=Site(tenants=(Tenant(name="A"),)))
    schedule = run(instance, "fifo")
    whole = idle_by_cause(instance, schedule)
    assert whole["idle_order"] == pytest.approx(0.9 / 4)
    looked = []
    monkeypatch.setattr(shared_cluster, "MOST_LOOKS", 20)
    monkeypatch.setattr(shared_cluster, "_lost", lambda round: looked.append(round) or _lost(round))
    assert idle_by_cause(instance, schedule) == pytest.approx(whole)
    assert len(looked) == 3  # jobs wait 45 times at 9 moments: every third
