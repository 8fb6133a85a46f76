"""Tiresias by hand: two queues, preemption, power."""

import msgspec
import pytest

from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.files import packaged
from ronda.instances.instance import Cadence
from ronda.instances.outcome.metrics import summarise
from ronda.solvers.policies.rigid.tiresias import SecondQueue
from ronda.solvers.registry import policy

# 8 GPUs since 0: 16 GPU-hours, 57,600 GPU-seconds, are over after 7,200 s.


@pytest.mark.parametrize(("now_s", "runs"), [(7199.0, "old"), (7200.0, "new")])
def test_a_job_that_passes_the_threshold_gives_way(elastic_round, live_job, now_s, runs):
    """One second before, the older job stays; at the threshold the new one takes its GPUs."""
    old = live_job("old", "linear", 1e6, held=(8, 8.0), gpus=8)
    new = live_job("new", "linear", 1e6, gpus=8, submit_s=10.0)
    round_ = elastic_round(old, new, now_s=now_s)
    plan = solve(round_, "tiresias")
    assert list(plan.allocations) == [runs]
    assert SecondQueue.recall(plan).jobs == (["old"] if runs == "new" else [])
    assert check(round_, plan) == []


def test_the_second_queue_is_in_order_of_passing(elastic_round, live_job):
    """The last plan remembers that b passed before a; without it, as submitted."""
    jobs = [live_job(name, "linear", 1e6, gpus=8, gpu_s=60000.0) for name in "ab"]
    round_ = elastic_round(*jobs, now_s=9000.0)
    assert list(solve(round_, "tiresias").allocations) == ["a"]
    before = solve(elastic_round(jobs[1], now_s=8000.0), "tiresias")
    assert SecondQueue.recall(before).jobs == ["b"]
    assert list(solve(round_, "tiresias", initial=before).allocations) == ["b"]


def test_too_few_gpus_do_not_block(elastic_round, live_job):
    """6 of 8 GPUs go to the first job; the second (4) waits, the third (2) starts."""
    sizes = {"first": 6, "second": 4, "third": 2}
    jobs = [live_job(name, "linear", 1e6, gpus=gpus) for name, gpus in sizes.items()]
    assert list(solve(elastic_round(*jobs), "tiresias").allocations) == ["first", "third"]


def test_jobs_are_spread_where_they_must_be(elastic_round, live_job):
    """Two nodes of 4 with 1 GPU in use each: a job of 4 is spread, or waits under best fit."""
    small = [live_job(name, "linear", 1e6, held=(1, 1.0)) for name in "ab"]
    other = msgspec.structs.replace(small[1].allocation, placement=((1, 1),))
    small[1] = msgspec.structs.replace(small[1], allocation=other)
    round_ = elastic_round(*small, live_job("c", "linear", 1e6, gpus=4), nodes=2, gpus_per_node=4)
    plan = solve(round_, "tiresias")
    assert plan.allocations["c"].placement == ((0, 3), (1, 1))
    assert plan.allocations["c"].option.span == "cluster"
    assert check(round_, plan) == []
    assert "c" not in solve(round_, "tiresias(most_free=false)").allocations


def test_power_is_held_when_the_cap_drops(elastic_round, live_job):
    """8 GPUs idle draw 160 W, each busy one 430 W more: under 1,100 W only two may be busy."""
    jobs = [live_job(name, "linear", 1e6, held=(2, 2.0), gpus=2) for name in "ab"]
    round_ = elastic_round(*jobs, power_cap_w=1100.0)  # 160 + 2 x 430 = 1,020; + 860 = 1,880
    plan = solve(round_, "tiresias")
    assert list(plan.allocations) == ["a"]
    assert check(round_, plan) == []


def test_a_threshold_must_be_positive():
    """Otherwise every job were in the second queue."""
    with pytest.raises(InputError, match="threshold_gpu_s"):
        policy("tiresias(threshold_gpu_s=0)")


def test_pollux_artifact():
    """Mean JCT on pollux-1 with its artifact's period: 2,474 s there (`reference`)."""
    instance = packaged.load("pollux-1")
    assert instance.reference["tiresias (its own simulator)"]["mean_jct_s"] == 2474.0
    schedule = run(instance, "tiresias", cadence=Cadence(period_s=60.0, on_event=False))
    assert summarise(instance, schedule)["mean_jct_s"] == pytest.approx(2474.0, rel=0.02)
    assert not any(r.violations for r in schedule.rounds)
