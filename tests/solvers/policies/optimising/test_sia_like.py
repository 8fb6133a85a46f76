"""Sia-like by hand: its objective, and what follows from it."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.instances.generate import round as generated
from ronda.instances.job import Estimate
from ronda.solvers.contract import Capability
from ronda.solvers.registry import policy


def test_goodput_counts_over_the_least_of_the_job(elastic_round, live_job):
    """Rates 1, 2, 4, 8: 1.1 less their power -0.5 for a job that waits, a restart factor else.

    300 s old and never stopped, what differs counts 300 / 330; after one restart 270 / 330.
    """
    waits = live_job("w", "linear", 1e6)
    runs = live_job("r", "linear", 1e6, held=(4, 4.0), restarts=1)
    round_ = elastic_round(waits, runs, now_s=300.0)
    table = build(round_, prune=False)
    worth = values(round_, table, "sia-goodput")
    rates = np.array([1.0, 2.0, 4.0, 8.0])
    names = [state.job.id for state in table.jobs]
    at = slice(*table.start[names.index("w") :][:2])
    assert worth[at] == pytest.approx(1.1 - rates**-0.5)
    at = slice(*table.start[names.index("r") :][:2])
    factor = np.where(table.current[at], 1.0, 270.0 / 330.0)
    expected = 1.1 - (table.rate[at] * factor) ** -0.5
    assert expected.min() < 0  # worse than waiting
    assert worth[at] == pytest.approx(np.maximum(expected, 0.0))


def test_other_clocks_are_worth_nothing(elastic_round, live_job):
    """The original knows one clock."""
    round_ = elastic_round(live_job("a", "linear", 1e6), clocks=(0.5, 1.0))
    table = build(round_, prune=False, mind_power=True)
    worth = values(round_, table, "sia-goodput")
    assert (table.clock < 1).any()
    assert ((worth > 0) == (table.clock >= 1)).all()


def test_its_optimum_lets_half_of_the_jobs_wait(elastic_round, live_job):
    """8 jobs of linear speed on 8 GPUs: two each for four, as 0.39 for two is more than 2 x 0.1."""
    round_ = elastic_round(*(live_job(name, "linear", 1e6) for name in "abcdefgh"))
    plan = solve(round_, "sia-like")
    assert check(round_, plan) == []
    assert [a.option.gpus for a in plan.allocations.values()] == [2, 2, 2, 2]
    assert plan.objective == pytest.approx(4 * (1.1 - 2**-0.5), rel=1e-4)


def test_it_takes_the_parameters_of_its_objective():
    """Power and waiting, and the gap."""
    made = policy("sia-like(power=0.5, waiting=2, gap=1e-3)")
    assert made.parameters["power"] == 0.5
    assert made.gap == 1e-3


def test_it_knows_no_sizes():
    """Neither told nor learnt: plans of jobs ten times as long are the same."""
    assert not policy("sia-like").capabilities & (Capability.SIZES | Capability.HISTORY)
    round_ = generated(20, None, "balanced", 1)
    longer = [
        replace(s, job=replace(s.job, estimate=Estimate(work=10 * s.job.estimate.work)))
        for s in round_.waiting
    ]
    plans = [solve(each, "sia-like") for each in (round_, replace(round_, waiting=tuple(longer)))]
    assert plans[0].allocations == plans[1].allocations
