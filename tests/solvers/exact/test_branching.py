"""Branching on a few integers first: the same answers as HiGHS's own search."""

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.exact.branching import solve_branching
from ronda.solvers.exact.highs import solve_form
from ronda.solvers.exact.linear_form import linear_form
from ronda.solvers.exact.model import solve


def machines(seed, *, sense=pyo.maximize, least=0):
    """Return a model of jobs on machines that must be switched on, a few machines to a kind."""
    rng = np.random.default_rng(seed)
    jobs, kinds = 12, 3
    size, worth = rng.integers(1, 8, jobs), rng.integers(1, 30, jobs)
    room, price = rng.integers(5, 9, kinds), rng.integers(10, 25, kinds)
    model = pyo.ConcreteModel()
    model.on = pyo.Var(range(kinds), domain=pyo.NonNegativeIntegers, bounds=(0, 2))
    model.x = pyo.Var(range(jobs), range(kinds), domain=pyo.Binary)
    model.once = pyo.Constraint(
        range(jobs), rule=lambda m, j: sum(m.x[j, k] for k in range(kinds)) <= 1
    )
    model.room = pyo.Constraint(
        range(kinds),
        rule=lambda m, k: (
            sum(int(size[j]) * m.x[j, k] for j in range(jobs)) <= int(room[k]) * m.on[k]
        ),
    )
    model.least = pyo.Constraint(expr=sum(model.x.values()) >= least)
    gain = sum(int(worth[j]) * model.x[j, k] for j in range(jobs) for k in range(kinds))
    gain -= sum(int(price[k]) * model.on[k] for k in range(kinds))
    sign = 1 if sense == pyo.maximize else -1
    model.gain = pyo.Objective(expr=sign * gain, sense=sense)
    return model


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([pyo.maximize, pyo.minimize]))
def test_same_optimum_as_without(seed, sense):
    """Whatever is branched on first, the optimum and its proof are the same."""
    plain = solve(machines(seed, sense=sense), gap=0)
    model = machines(seed, sense=sense)
    first = solve(model, gap=0, first=list(model.on.values()))
    assert first.objective == pytest.approx(plain.objective)
    assert first.bound == pytest.approx(plain.objective)
    assert (first.stop, first.status) == (StopReason.COMPLETE, SolutionStatus.OPTIMAL)
    assert pyo.value(model.gain) == pytest.approx(first.objective)


def test_a_gap_is_proven_over_all_parts():
    """The bound covers the parts that were never opened."""
    model = machines(1)
    outcome = solve(model, gap=0.2, first=list(model.on.values()))
    best = solve(machines(1), gap=0).objective
    assert outcome.objective <= best <= outcome.bound <= 1.2 * outcome.objective + 1e-9


def test_conflicts_and_lack_of_time_are_told_apart():
    """A model that asks for too many jobs is infeasible; without time nothing is known."""
    model = machines(2, least=13)
    assert solve(model, first=list(model.on.values())).stop is StopReason.INFEASIBLE
    form = linear_form(machines(2))
    outcome = solve_branching(form, [0], deadline=Deadline(1e-9), gap=0, seed=0)
    assert outcome.stop is StopReason.TIME_LIMIT
    assert outcome.status is SolutionStatus.NONE
    assert outcome.bound is None


def test_time_limit_keeps_a_valid_bound():
    """Cut short, the answer still has a bound that the optimum does not exceed."""
    best = solve(machines(3), gap=0).objective
    model = machines(3)
    form = linear_form(model)
    at = [i for i, name in enumerate(form.column_names()) if name.startswith("on")]
    for limit in (0.002, 0.005, 0.01, 0.02):
        outcome = solve_branching(form, at, deadline=Deadline(limit), gap=0, seed=0)
        if outcome.bound is not None:
            assert outcome.bound >= best - 1e-6
        if outcome.objective is not None:
            assert outcome.objective <= best + 1e-6


def test_a_start_is_used():
    """The optimum as a start is the first incumbent."""
    form = linear_form(machines(4))
    best = solve_form(form, gap=0)
    at = [i for i, name in enumerate(form.column_names()) if name.startswith("on")]
    again = solve_branching(form, at, deadline=Deadline(), gap=0, seed=0, start=best.x)
    assert max(w for _, w in again.incumbents) == pytest.approx(best.objective)
