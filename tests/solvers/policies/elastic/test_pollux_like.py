"""Pollux-like by hand: one pool of 4-GPU nodes, so speedups are scaled by 1/4."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.objectives.by_name import restart_factor
from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.solvers.policies.elastic.pollux_like import hull_steps, worths


def gpus(plan):
    """Return the GPUs of every job that has some."""
    return {job: allocation.option.gpus for job, allocation in plan.allocations.items()}


def test_values_by_hand(elastic_round, live_job):
    """Two new jobs on 4 GPUs: fair is 2, so 1, 2, 4 GPUs give s = 1/8, 1/4, 1/2 (linear).

    1000 - 1/0.126 = 992.063, 1000 - 1/0.251 = 996.016, 1000 - 1/0.501 = 998.004.
    """
    jobs = [live_job(name, "linear", 100.0) for name in "ab"]
    found = worths(elastic_round(*jobs, gpus_per_node=4))
    assert [w.ladder.gpus for w in found] == [(1, 2, 4)] * 2
    assert found[0].value == pytest.approx([992.0635, 996.0159, 998.0040], abs=1e-3)


def test_equal_jobs_share_equally(elastic_round, live_job):
    """Two jobs, 4 GPUs: two each. Five jobs: the one submitted last waits."""
    jobs = [live_job(name, "linear", 100.0, submit_s=float(i)) for i, name in enumerate("abcde")]
    two = elastic_round(*jobs[:2], gpus_per_node=4, now_s=9.0)
    assert gpus(solve(two, "pollux-like")) == {"a": 2, "b": 2}
    five = elastic_round(*jobs, gpus_per_node=4, now_s=9.0)
    assert gpus(solve(five, "pollux-like")) == dict.fromkeys("abcd", 1)


@pytest.mark.parametrize(("now_s", "restarts", "size"), [(60.0, 1, 2), (600.0, 0, 4)])
def test_restarts_hold_a_job_back(elastic_round, live_job, now_s, restarts, size):
    """Alone on 4 GPUs with 2: s = 1/8 now, 1/4 with four, times f.

    f = (60 - 30)/90 = 1/3: 1/12 < 1/8, it stays. f = 600/630 = 0.952: 0.238 > 1/8, it grows.
    """
    state = live_job("a", "linear", 1e6, held=(2, 2.0), restarts=restarts)
    round_ = elastic_round(state, gpus_per_node=4, now_s=now_s)
    plan = solve(round_, "pollux-like")
    assert gpus(plan) == {"a": size}
    assert (plan.allocations["a"] is state.allocation) == (size == 2)


def test_a_stopped_job_whose_penalty_leaves_nothing_still_gets_idle_gpus(elastic_round, live_job):
    """Three restarts in 30 s: f would be below 0. Nobody else wants the GPUs: it starts."""
    state = live_job("a", "linear", 1e6, restarts=3, started=True)
    round_ = elastic_round(state, now_s=30.0)
    assert restart_factor(round_, state, 30.0) == 1e-9
    assert gpus(solve(round_, "pollux-like")) == {"a": 8}


def test_power_is_held(elastic_round, live_job):
    """160 W idle and 430 W a busy GPU: 1,100 W are enough for two, one for each job."""
    jobs = [live_job(name, "linear", 100.0) for name in "ab"]
    round_ = elastic_round(*jobs, power_cap_w=1100.0)
    plan = solve(round_, "pollux-like")
    assert gpus(plan) == {"a": 1, "b": 1}
    assert check(round_, plan) == []


def test_the_hull_leaves_out_what_is_not_worth_its_gpus():
    """Values 1, 1.5, 4 at 1, 2, 4 GPUs: from 1 straight to 4 (slope 1), not over 2 (0.5)."""
    assert hull_steps((1, 2, 4), [1.0, 1.5, 4.0]) == [(1.0, 2)]
    assert hull_steps((1, 2, 4), [2.0, 2.5, 4.0]) == [(2.0, 0), (pytest.approx(2 / 3), 2)]
    assert hull_steps((1, 2), [2.0, 1.5]) == [(2.0, 0)]


@given(st.lists(st.floats(0.1, 10.0), min_size=3, max_size=3))
def test_concave_values_are_climbed_to_the_optimum(scales):
    """With steps of one GPU and concave values the steepest steps are the best allocation."""
    value = [[s * v for v in (1.0, 1.7, 2.1, 2.2)] for s in scales]
    steps = sorted(
        (-slope, j) for j, v in enumerate(value) for slope, _ in hull_steps((1, 2, 3, 4), v)
    )
    greedy = -sum(slope for slope, _ in steps[:5])
    best = max(
        sum(v[n - 1] for v, n in zip(value, sizes, strict=True) if n)
        for sizes in itertools.product(range(5), repeat=3)
        if sum(sizes) <= 5
    )
    assert greedy == pytest.approx(best)
