"""Lot sizing by dynamic programming: exact, and the same as the MILP and as trying all plans."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.systems.helios.lot_sizing import least_cost
from sleep_models import build, cost

cases = st.integers(1, 5).flatmap(
    lambda steps: st.tuples(
        st.lists(st.integers(0, 3), min_size=steps, max_size=steps),
        st.lists(st.integers(3, 4), min_size=steps, max_size=steps),
        st.sampled_from([0.0, 0.5, 1.0, 2.5, 7.0]),
        st.none() | st.integers(0, 4),
    )
)


@settings(max_examples=60, deadline=None)
@given(case=cases)
def test_no_plan_costs_less(case):
    """Against all plans of up to five steps and four nodes."""
    least, most, price, before = case
    plan = least_cost(np.array(least), np.array(most), price, before)
    assert all(low <= n <= high for low, n, high in zip(least, plan, most, strict=True))
    every = itertools.product(*(range(a, b + 1) for a, b in zip(least, most, strict=True)))
    best = min(cost(np.array(other), price, before) for other in every)
    assert cost(plan, price, before) == pytest.approx(best)


@settings(max_examples=15, deadline=None)
@given(case=cases)
def test_the_milp_has_the_same_optimum(case):
    """HiGHS on the Pyomo model."""
    least, most, price, before = case
    model = build(np.array(least), np.array(most), price, before)
    solved = solve(model, Effort(gap=0.0))
    plan = least_cost(np.array(least), np.array(most), price, before)
    assert solved.objective == pytest.approx(cost(plan, price, before))


def test_a_dip_is_slept_through_only_if_it_pays():
    """4, 1, 1, 4: sleeping saves 6 node-steps, so it pays below a price of 6."""
    least, most = np.array([4, 1, 1, 4]), np.full(4, 9)
    assert least_cost(least, most, 5.9).tolist() == [4, 1, 1, 4]
    assert least_cost(least, most, 6.1).tolist() == [4, 4, 4, 4]


def test_starting_from_sleep_is_a_wake_up():
    """Without nodes before, the first step pays the price as well."""
    least, most = np.array([2, 2]), np.full(2, 3)
    assert cost(least_cost(least, most, 10.0), 10.0) == 4
    assert cost(least_cost(least, most, 10.0, before=0), 10.0, before=0) == 14


@pytest.mark.parametrize(
    ("least", "most", "price"), [([2], [1], 1.0), ([], [], 1.0), ([1], [1, 1], 1.0), ([1], [1], -1)]
)
def test_what_has_no_plan_is_refused(least, most, price):
    """Too few nodes, no steps, other lengths, a price below 0."""
    with pytest.raises(InputError):
        least_cost(np.array(least, dtype=int), np.array(most, dtype=int), price)
