"""Pacing of energy budgets, prices and carbon, by hand and through the driver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.horizon.pacing import Pacer
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.outcome.accrual import accrual
from ronda.instances.outcome.metrics import summarise

LATE = StepSeries(times_s=(0.0, 100.0), values=(1.0, 3.0))
DEAR = StepSeries(times_s=(0.0, 100.0), values=(3.0, 1.0))


@pytest.mark.parametrize(
    "budget",
    [
        Budget(energy=EnergyBudget(joules=800, horizon_s=200, pacing="series", accrual=LATE)),
        Budget(
            energy=EnergyBudget(joules=800, horizon_s=200, pacing="price"), energy_price_per_j=DEAR
        ),
        Budget(
            energy=EnergyBudget(joules=800, horizon_s=200, pacing="carbon"), carbon_g_per_j=DEAR
        ),
    ],
    ids=["series", "price", "carbon"],
)
def test_a_budget_accrues_as_its_series_says(budget):
    """800 J in the ratio 1 : 3 are 2 W and 6 W; after the horizon the mean of 4 W."""
    line = accrual(budget, reserved_w=0.0)
    assert line.at(np.array([0, 50, 100, 150, 200, 250])).tolist() == pytest.approx(
        [0, 100, 200, 500, 800, 1000]
    )
    # At 50 s with nothing left, 2 W until 100 s; with 60 J used, 40 J more: 140 J in 50 s.
    assert line.bearable_w(50, 100, 150) == pytest.approx(2)
    assert line.bearable_w(50, 60, 150) == pytest.approx(2.8)
    # From 100 s with nothing left: 6 W until the horizon, but only 4 W for ever.
    assert line.bearable_w(100, 200, 200) == pytest.approx(6)
    assert line.bearable_w(100, 200, float("inf")) == pytest.approx(4)
    # Nothing is promised to who has overdrawn.
    assert line.bearable_w(50, 201, 100) == 0


def test_what_is_banked_comes_on_top_of_what_comes_evenly():
    """2 W until 100 s, then 6 W until 200 s, 4 W after; at 50 s 40 of the 100 J are used."""
    budget = Budget(energy=EnergyBudget(joules=800, horizon_s=200, pacing="series", accrual=LATE))
    line = accrual(budget, reserved_w=0.0)
    # 3.2 W last until 100 s, where all 160 J are used; for ever 3.2 W may be drawn as well.
    assert line.bearable_w(50, 40, 100) == pytest.approx(3.2)
    # 60 J at once leave 100 J for 50 s; 2 W and 60 J are nowhere above what accrues.
    assert line.banked_j(50, 40, 50, 3.2) == pytest.approx(0)
    flat = accrual(Budget(energy=EnergyBudget(joules=800, horizon_s=200)), reserved_w=0.0)
    assert flat.banked_j(50, 40, 50, flat.bearable_w(50, 40, 100)) == pytest.approx(160)


def test_a_constant_power_lasts_until_it_meets_the_line():
    """From 50 s, 40 J used of 100: 5 W beside 2 W that accrue use up 60 J in 20 s."""
    budget = Budget(energy=EnergyBudget(joules=800, horizon_s=200, pacing="series", accrual=LATE))
    line = accrual(budget, reserved_w=0.0)
    assert line.lasts_until_s(50, 40, 5) == pytest.approx(70)
    # 3 W leave 10 J at 100 s and gain 300 J more by 200 s; then they gain for ever.
    assert line.lasts_until_s(50, 40, 3) == float("inf")
    # 5 W with 60 J more to spare: 10 J left at 100 s, 110 J at 200 s, which last 110 s at 1 W.
    assert line.lasts_until_s(50, -60, 5) == pytest.approx(310)


def test_demand_spends_in_proportion_to_the_jobs_that_wait_for_it(make_clocked):
    """One node: 400 W idle, so 1,000 W for 1,000 s leave 600 W for jobs when demand is even."""
    energy = EnergyBudget(joules=1e6, horizon_s=1000, window_s=100, pacing="demand")
    instance = make_clocked([("a", 0, 2, 100)], budget=Budget(energy=energy))
    pacer = Pacer(instance)
    assert pacer.spending(0, 0, live=2)[0] == pytest.approx(100 * 1000)
    # Two jobs for 500 s, then six: the mean is 2 and the ratio 3. 700 kJ are left, 200 kJ of them
    # for idling until 1,000 s: 400 W + 3 x 1,000 W.
    pacer.advance(500, live=2)
    assert pacer.spending(500, 300_000, live=6)[0] == pytest.approx(100 * 3400)
    # The horizon's budget bears 700 kJ / 500 s, and 1,000 W after it for ever.
    assert pacer.spending(500, 300_000, live=6)[1] == pytest.approx(1000)
    # With no job live only idling is paid for.
    assert pacer.spending(500, 300_000, live=0)[0] == pytest.approx(100 * 400)
    # However many wait, there is no more than what is left: 60 kJ and the idle power.
    pacer.advance(900, live=0)
    scarce = pacer.spending(900, 900_000, live=1000)[0]
    assert scarce == pytest.approx(100 * 400 + 60_000)
    # After the horizon it accrues evenly, and what was not spent is carried.
    pacer.advance(1100, live=2)
    assert pacer.spending(1100, 1_050_000, live=2)[0] == pytest.approx(50_000 + 100 * 1000)


@settings(max_examples=30, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 4), st.integers(5, 150)),
        min_size=1,
        max_size=5,
    ),
    policy=st.sampled_from(["fifo", "srtf(teardown_s=0)", "prices"]),
    pacing=st.sampled_from(["even", "series", "price", "carbon", "demand"]),
    watts=st.sampled_from([1700.0, 2500.0]),
    credit_j=st.sampled_from([0.0, 30_000.0]),
    wake_w=st.sampled_from([0.0, 60.0]),
)
def test_no_pacing_ever_overdraws_its_budget(
    make_clocked, jobs, policy, pacing, watts, credit_j, wake_w
):
    """The independent checker finds no moment at which more is used than the rule allows."""
    energy = EnergyBudget(
        joules=watts * 300,
        horizon_s=300.0,
        window_s=60.0,
        credit_j=credit_j,
        pacing=pacing,
        accrual=StepSeries(times_s=(0.0, 100.0), values=(3.0, 2.0)) if pacing == "series" else None,
    )
    budget = Budget(
        energy=energy,
        energy_price_per_j=StepSeries(times_s=(0.0, 90.0, 170.0), values=(2.0, 1.5, 1.8)),
        carbon_g_per_j=StepSeries(times_s=(0.0, 120.0), values=(1.2, 1.0)),
    )
    rows = [(f"j{k}", s, g, d) for k, (s, g, d) in enumerate(sorted(jobs))]
    instance = make_clocked(rows, nodes=2, wake_w=wake_w, budget=budget)
    schedule = run(instance, policy, time_limit_s=None)
    assert check(instance, schedule) == []
    assert all(job.end_s is not None for job in schedule.jobs)


def test_cost_and_carbon_are_the_integrals_of_power_by_hand(make_clocked):
    """One job of 2 GPUs from 50 to 150 s on a node that idles at 400 W, prices change at 100 s."""
    budget = Budget(
        energy_price_per_j=StepSeries(times_s=(0.0, 100.0), values=(2.0, 1.0)),
        carbon_g_per_j=StepSeries(times_s=(0.0, 30.0), values=(0.0, 0.5)),
    )
    instance = make_clocked([("a", 50, 2, 100)], budget=budget)
    schedule = run(instance, "fifo")
    # 400 W for 50 s, then 800 W. Cost: (20,000 + 40,000) x 2 + 40,000. Carbon from 30 s on.
    assert schedule.energy_cost == pytest.approx(160_000)
    assert schedule.carbon_g == pytest.approx(0.5 * (400 * 20 + 800 * 100))
    figures = summarise(instance, schedule)
    assert (figures["energy_cost"], figures["carbon_g"]) == (160_000, 44_000)
    assert check(instance, schedule) == []
    # A round is decided when a price changes while jobs are live.
    assert [r.now_s for r in schedule.rounds] == [50, 100]
    for claim in ({"energy_cost": 160_001.0}, {"carbon_g": None}):
        assert [v.code for v in check(instance, replace(schedule, **claim))] == ["accounting"]
    free = replace(instance, budget=Budget())
    assert {v.where for v in check(free, schedule)} == {"energy_cost", "carbon_g"}
