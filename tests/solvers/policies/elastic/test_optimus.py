"""Optimus by hand. Rates of 1, 2, 3, 4 GPUs: linear 1, 2, 3, 4; bend 1, 1.6, 12/7, 1.6."""

import pytest
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.instances.files import packaged
from ronda.instances.instance import Cadence
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import Tabular


def gpus(plan):
    """Return the GPUs of every job that has some."""
    return {job: allocation.option.gpus for job, allocation in plan.allocations.items()}


def test_one_each_then_the_largest_gain(elastic_round, live_job):
    """Four GPUs: one each; 37.5 s against 20 s for the third, 20 s against 4.2 s for the fourth.

    bend, 100 units: 100 (1 - 1/1.6) = 37.5, then 62.5 - 100/(12/7) = 4.17.
    linear, 40 units: 40 (1 - 1/2) = 20, then 40 (1/2 - 1/3) = 6.67.
    """
    jobs = live_job("b", "bend", 100.0), live_job("l", "linear", 40.0)
    plan = solve(elastic_round(*jobs, gpus_per_node=4), "optimus")
    assert gpus(plan) == {"b": 2, "l": 2}


def test_a_step_over_counts_without_a_speed_counts_by_gpu(elastic_round, live_job):
    """Four GPUs: from 1 to 3 saves 100 (1 - 1/2) = 50 s, 25 s a GPU; linear saves 60 / 2 = 30 s.

    So linear gets its second GPU, and its third, as the step over 2 needs two.
    """
    round_ = elastic_round(
        live_job("t", "table", 100.0), live_job("l", "linear", 60.0), gpus_per_node=4
    )
    table = Tabular(
        gpus=(1, 3), nodes=(1, 1), local_batch=(8.0, 8 / 3), step_s=(8.0, 4.0), sync_s=(0.0, 0.0)
    )
    profile = replace(round_.profiles["linear"], name="table", throughput={"G": table})
    round_ = replace(round_, profiles={**round_.profiles, "table": profile})
    assert gpus(solve(round_, "optimus")) == {"t": 1, "l": 3}


def test_growth_ends_where_a_gpu_makes_it_slower(elastic_round, live_job):
    """Eight GPUs: bend stops at 3, as its fourth GPU would slow it; linear gets the other 5."""
    jobs = live_job("b", "bend", 100.0), live_job("l", "linear", 40.0)
    round_ = elastic_round(*jobs)
    plan = solve(round_, "optimus")
    assert gpus(plan) == {"b": 3, "l": 5}
    assert check(round_, plan) == []


def test_more_jobs_than_gpus_are_served_in_order_of_submission(elastic_round, live_job):
    """Two GPUs: the first two jobs, whatever their sizes; the job that runs but came last stops."""
    jobs = [live_job(n, "linear", 10.0, submit_s=s) for n, s in (("a", 1.0), ("b", 2.0))]
    last = live_job("c", "linear", 1.0, held=(2, 2.0), submit_s=3.0)
    round_ = elastic_round(*jobs, last, gpus_per_node=2, now_s=5.0)
    assert gpus(solve(round_, "optimus")) == {"a": 1, "b": 1}


def test_power_ends_growth(elastic_round, live_job):
    """Idle GPUs draw 160 W, a busy one 430 W more: 1,500 W are enough for three."""
    round_ = elastic_round(live_job("l", "linear", 40.0), power_cap_w=1500.0)
    plan = solve(round_, "optimus")
    assert gpus(plan) == {"l": 3}
    assert check(round_, plan) == []


def test_jobs_move_together_where_watts_are_short(elastic_round, live_job):
    """Two of 2 GPUs on a node each; 2,900 W bear one node: 1,000 W, and 4 x 450 W of busy GPUs."""
    jobs = [live_job(name, "linear", 40.0, held=(2, 2.0)) for name in "ab"]
    jobs[1] = replace(jobs[1], allocation=replace(jobs[1].allocation, placement=((1, 2),)))
    round_ = elastic_round(*jobs, nodes=2, gpus_per_node=4, power_cap_w=2900.0)
    (group,) = round_.cluster.node_groups
    dear = replace(group, host_idle_w=1000.0, sleep_w=0.0)
    round_ = replace(round_, cluster=replace(round_.cluster, node_groups=(dear,)))
    plan = solve(round_, "optimus")
    assert gpus(plan) == {"a": 2, "b": 2}
    assert len(plan.asleep) == 1
    assert check(round_, plan) == []


def test_what_does_not_fit_on_nodes_is_spread(elastic_round, live_job):
    """Three jobs of 3 GPUs on two nodes of 5: two take a node each, the third what they leave.

    Each of three equal jobs has 3 of the 10 GPUs; the tenth goes to the first, which then has 4.
    """
    jobs = [live_job(name, "linear", 40.0) for name in "abc"]
    round_ = elastic_round(*jobs, nodes=2, gpus_per_node=5)
    plan = solve(round_, "optimus")
    assert sorted(gpus(plan).values()) == [3, 3, 4]
    assert sum(len(a.placement) == 2 for a in plan.allocations.values()) == 1
    assert check(round_, plan) == []


@pytest.mark.slow
def test_pollux_artifact():
    """Mean JCT on pollux-1 with its artifact's period: 4,087 s there (`reference`)."""
    instance = packaged.load("pollux-1")
    assert instance.reference["optimus (its own simulator)"]["mean_jct_s"] == 4087.0
    schedule = run(instance, "optimus", cadence=Cadence(period_s=60.0, on_event=False))
    assert summarise(instance, schedule)["mean_jct_s"] == pytest.approx(4087.0, rel=0.03)
    assert not any(r.violations for r in schedule.rounds)
