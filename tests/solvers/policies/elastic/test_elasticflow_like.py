"""ElasticFlow-like by hand. Rates of 1, 2, 4, 8 GPUs: linear 1, 2, 4, 8; bend 1, 1.6, 1.6, 1."""

import pytest

from ronda.horizon.solve import solve
from ronda.instances.check.checker import check


def gpus(plan):
    """Return the GPUs of every job that has some."""
    return {job: allocation.option.gpus for job, allocation in plan.allocations.items()}


def test_free_gpus_go_where_they_cost_least_gpu_time(elastic_round, live_job):
    """Without deadlines on 8 GPUs: linear work adds no GPU time, bend's step to 2 adds 25 a GPU.

    One each; linear to 2 and 4 (adds 0); to 8 lacks room. bend: 100 (2/1.6 - 1) = 25 to 2; from 2
    to 4 its rate would not rise. Two GPUs stay idle.
    """
    jobs = live_job("b", "bend", 100.0), live_job("l", "linear", 1000.0)
    round_ = elastic_round(*jobs)
    plan = solve(round_, "elasticflow-like")
    assert gpus(plan) == {"b": 2, "l": 4}
    assert check(round_, plan) == []


def test_a_short_job_grows_before_a_long_one(elastic_round, live_job):
    """The sign: 10 units add 2.5 GPU-seconds, 100 units 25; on 3 GPUs the short job gets two."""
    jobs = live_job("long", "bend", 100.0), live_job("short", "bend", 10.0)
    assert gpus(solve(elastic_round(*jobs, gpus_per_node=3), "elasticflow-like")) == {
        "long": 1,
        "short": 2,
    }


@pytest.mark.parametrize(("due_s", "size"), [(10.0, 4), (15.0, 2), (30.0, 1)])
def test_a_deadline_takes_the_fewest_gpus_that_meet_it(elastic_round, live_job, due_s, size):
    """30 units of linear work: 4 GPUs within 10 s, 2 within 15 s, 1 within 30 s.

    The four GPUs left over go to the other job first (bend: at 1 it adds least when growing).
    """
    due = live_job("due", "linear", 30.0, deadline_s=due_s)
    others = [live_job(name, "linear", 1.0) for name in "abc"]
    round_ = elastic_round(due, *others, gpus_per_node=4)
    found = gpus(solve(round_, "elasticflow-like"))
    assert found["due"] == size
    assert sum(found.values()) == 4


def test_the_earliest_deadline_is_filled_first(elastic_round, live_job):
    """Two GPUs: b needs both for its 10 s, and a both for the 10 s after that.

    If a came first it would book one GPU until its deadline at 20 s, and b would be late.
    """
    jobs = [live_job(n, "linear", 20.0, deadline_s=due) for n, due in (("a", 20.0), ("b", 10.0))]
    assert gpus(solve(elastic_round(*jobs, gpus_per_node=2), "elasticflow-like")) == {"b": 2}


def test_a_deadline_that_cannot_be_met_counts_as_none(elastic_round, live_job):
    """41 units in 10 s on 4 GPUs: not possible, so the job on which it depends is served too."""
    late = live_job("late", "linear", 41.0, deadline_s=10.0)
    other = live_job("due", "linear", 20.0, deadline_s=10.0)
    found = gpus(solve(elastic_round(late, other, gpus_per_node=4), "elasticflow-like"))
    assert found == {"due": 2, "late": 2}


def test_power_is_held(elastic_round, live_job):
    """The deadline asks for 4 GPUs, but 160 W idle + 430 W each leave 1,100 W for two."""
    due = live_job("due", "linear", 30.0, deadline_s=10.0)
    round_ = elastic_round(due, power_cap_w=1100.0)
    plan = solve(round_, "elasticflow-like")
    assert gpus(plan) == {"due": 2}
    assert check(round_, plan) == []
