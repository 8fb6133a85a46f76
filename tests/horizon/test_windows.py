"""Energy windows through the driver: jobs that outlive their estimates, nodes that sleep."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.check.checker import check
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs, Estimate

POLICIES = ("fifo", "srtf", "tiresias", "race-to-idle", "pollux-like", "powerflow", "prices")


@settings(max_examples=20, deadline=None)
@given(
    policy=st.sampled_from(POLICIES),
    lengths=st.lists(st.tuples(st.integers(0, 200), st.integers(5, 100)), min_size=1, max_size=4),
    wrong=st.sampled_from([0.1, 0.5, 2.0, None]),
    period_s=st.sampled_from([None, 10.0]),
)
def test_wrong_estimates_overdraw_nothing(make_instance, policy, lengths, wrong, period_s):
    """Jobs take up to ten times as long as expected, or nobody knows: the budget holds."""
    energy = EnergyBudget(joules=700.0 * 500, horizon_s=500.0, window_s=120.0)
    rows = [(f"j{k}", at, 2, s) for k, (at, s) in enumerate(sorted(lengths))]
    instance = make_instance(
        rows,
        budget=Budget(energy=energy),
        cadence=Cadence(period_s=period_s),
        costs=Costs(start_s=2.0),
    )
    jobs = tuple(
        replace(
            job,
            estimate=None if wrong is None else Estimate(work=job.truth.work * wrong),
        )
        for job in instance.jobs
    )
    instance = replace(instance, jobs=jobs)
    schedule = run(instance, policy, time_limit_s=None)
    assert check(instance, schedule) == []


@pytest.mark.parametrize("policy", ["fifo", "sjf", "srtf", "optimus+zeus"])
def test_empty_nodes_are_powered_off_where_energy_is_limited(make_instance, policy):
    """Of two nodes the one without a job sleeps once idling has cost what waking would.

    A wake-up of 100 s costs 400 W x 100 s, and sleep saves 390 W: 102.6 s. Without a budget all
    nodes stay awake.
    """
    rows = [("a", 0, 1, 1000), ("b", 300, 1, 10)]
    energy = EnergyBudget(joules=2e6, horizon_s=1000.0)
    instance = make_instance(rows, nodes=2, budget=Budget(energy=energy))
    schedule = run(instance, policy)
    (sleep,) = schedule.sleeps
    assert sleep[1] == 300.0
    assert check(instance, schedule) == []
    assert run(replace(instance, budget=Budget()), policy).sleeps == ()
