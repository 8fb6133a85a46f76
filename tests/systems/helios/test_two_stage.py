"""Two-stage lot sizing on quantile paths: exact, by trying all plans and as a MILP."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.systems.helios.lot_sizing import (
    costs,
    least_cost,
    roll,
    wanted,
    weights,
)
from sleep_models import build_two_stage, cost

cases = st.integers(1, 4).flatmap(
    lambda steps: st.tuples(
        st.lists(
            st.lists(st.integers(-2, 3), min_size=steps, max_size=steps), min_size=1, max_size=3
        ),
        st.sampled_from([0.0, 1.0, 2.5, 6.0]),
        st.integers(0, 2),
    )
)


def parts(number):
    """Return unequal parts that sum to 1."""
    return np.arange(1, number + 1) / (number * (number + 1) / 2)


@settings(max_examples=40, deadline=None)
@given(case=cases)
def test_costs_are_those_of_lot_sizing_on_each_path(case):
    """Of every number now: itself, and the weighted least costs of the paths from it."""
    paths, price, _ = case
    table = costs(np.array(paths)[:, None], parts(len(paths)), price)[0]
    for now, found in enumerate(table):
        expected = float(now)
        for path, part in zip(paths, parts(len(paths)), strict=True):
            least = np.maximum(path, 0)
            plan = least_cost(least, np.full(len(path), 4), price, now)
            expected += part * cost(plan, price, now)
        assert found == pytest.approx(expected)


@settings(max_examples=15, deadline=None)
@given(case=cases)
def test_the_milp_has_the_same_optimum(case):
    """HiGHS on the Pyomo model of a step, with the chance constraint's floor."""
    paths, price, low = case
    table = costs(np.array(paths)[:, None], parts(len(paths)), price)[0]
    model = build_two_stage(np.array(paths), parts(len(paths)), price, low)
    solved = solve(model, Effort(gap=0.0))
    best = table[low:].min() if low < len(table) else None
    if best is not None:
        assert solved.objective == pytest.approx(best)


def test_weights_are_the_nearest_levels():
    """0.5, 0.9: the border is 0.7."""
    assert weights((0.5, 0.9)) == pytest.approx([0.7, 0.3])
    assert weights((0.5,)) == pytest.approx([1.0])


def test_a_likely_peak_keeps_nodes_awake():
    """A peak of 4 in step 3, of probability 0.5, price 10: 5 x 0.5 to wake for it, or 4 x 4 idle.

    With four nodes now: 4 + 0.5 (0 + 0 + 0) + 0.5 (4 + 4 + 4) = 10; with none 0 + 0.5 (10 + 4) = 7.
    At a price of 30 none costs 17, and four cost 10.
    """
    paths = np.array([[[0, 0, 0]], [[0, 0, 4]]])
    for price, best in ((10.0, 0), (30.0, 4)):
        table = costs(paths, np.array([0.5, 0.5]), price)[0]
        assert table.argmin() == best
    assert table[[0, 4]].tolist() == [17, 10]


def test_what_costs_least_above_the_floor():
    """One above the need, but two where the floor is; a floor beyond the table is its end."""
    cost = np.tile([2.0, 1.0, 1.5, 3.0], (3, 1))
    assert wanted(np.array([3, 5, 5]), cost, np.array([0, 2, 9])).tolist() == [4, 7, 8]


def test_rolling_by_hand():
    """Step 0 has no forecast: 3 + 2 awake. In step 1, 4 are enough. Step 2 needs 5: 6 wake.

    In step 3 it pays to keep 4 only, in step 4 there are but 3 nodes.
    """
    needed, total = np.array([3, 3, 5, 3, 3]), np.array([9, 9, 9, 9, 3])
    least = np.array([9, 4, 6, 4, 5])
    made = roll(needed, total, least, 1, keep=1, buffer=2)
    assert made.tolist() == [5, 4, 6, 4, 3]


def test_nodes_sleep_once_it_has_paid_for_some_steps():
    """With keep=3 the most of three steps counts; step 4 needs more than that."""
    needed, least = np.array([3, 3, 3, 3, 6, 3]), np.array([9, 5, 7, 4, 8, 4])
    made = roll(needed, np.full(6, 20), least, 1, keep=3, buffer=4)
    assert made.tolist() == [7, 5, 5, 5, 8, 8]
    assert roll(needed, np.full(6, 20), least, 1, keep=1, buffer=4).tolist() == [7, 5, 5, 4, 8, 4]


def test_without_a_forecast_only_missing_nodes_wake():
    """5 + 2 awake; 8 are needed in step 2: 8 + 2."""
    needed = np.array([5, 4, 8, 2])
    made = roll(needed, np.full(4, 20), needed, 9, keep=1, buffer=2)
    assert made.tolist() == [7, 7, 10, 10]
