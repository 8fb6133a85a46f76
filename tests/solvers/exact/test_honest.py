"""What solvers claim of models of very different numbers, against all points in rationals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_forms import best_of, form_from, random_form
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.exact.backends import SOLVERS
from ronda.solvers.exact.linear_form import Effort, found


def by(name, form):
    """Return what a solver makes of a model."""
    return SOLVERS[name].solve_form(form, Effort(gap=0.0))


def refute(name, form, rows):
    """Hold what a solver claims of a model that has a solution against the true optimum."""
    outcome, best = by(name, form), best_of(form, rows)
    assert outcome.x is not None, outcome.message
    side = 1 if form.maximize else -1
    rounding = 1e-9 * max(abs(best), np.abs(form.cost).max())
    assert side * (outcome.bound - best) >= -rounding
    assert side * (best - outcome.objective) >= -rounding  # no better than the best
    if outcome.status is SolutionStatus.OPTIMAL:
        assert side * (best - outcome.objective) <= side * (outcome.bound - best) + rounding


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
@pytest.mark.parametrize("name", ["highs", "cp-sat"])
def test_no_claim_is_refuted(name, seed, whole):
    """Numbers over ten orders of magnitude; whole ones, beside limits that are not."""
    refute(name, *random_form(seed, whole=whole))


@pytest.mark.parametrize("name", ["highs", "cp-sat", "cbc", "scip"])
def test_limits_between_whole_numbers_are_kept(name):
    """x0 + x1 is at most 1, not 2; and never between 0.3 and 0.7."""
    most = by(name, form_from([1, 1], [[1, 1]], [-np.inf], [1.5], [3, 3]))
    assert (most.objective, most.bound) == (1.0, 1.0)
    none = by(name, form_from([1, 1], [[1, 1]], [0.3], [0.7], [3, 3]))
    assert none.stop is StopReason.INFEASIBLE


def test_cbc_is_right_where_its_preprocessing_is_not():
    """x0 = 2 costs 0.002, and 1.71 <= 2 <= 2; CBC 2.10 says 1 for x2 = 1."""
    form = form_from([0.001, 0, 1], [[1, 3, 2]], [1.71], [2], [5, 5, 5], maximize=False)
    outcome = by("cbc", form)
    assert outcome.objective == pytest.approx(0.002)
    assert outcome.bound == pytest.approx(0.002)


@pytest.mark.parametrize("name", ["highs", "cp-sat"])
def test_bounds_of_whole_numbers_are_whole(name):
    """HiGHS 1.15 calls it infeasible if x0 is at most 2.2 and x2 at most 3.3, and they are whole.

    x = (0, 1, 3) has rows of 224.3, -20.4 and 109.6, and is worth 9.09 + 3 * 57.2 = 180.69.
    """
    rows = [[-77.68, 224.3, 0.0], [74.07, 0.981, -7.118], [100.0, 89.67, 6.628]]
    lower, upper = [-np.inf, -np.inf, 89.6165529], [224.4877197, 51.4506399, np.inf]
    form = form_from([-5.876, 9.09, 57.2], rows, lower, upper, [2.2, 1.3, 3.3])
    assert by(name, form).objective == pytest.approx(180.69)


def test_whole_numbers_of_any_size_are_added_up_right():
    """3 of 10^18 fit in 3 * 10^18, and 4 do not: 20 of them are a sum that CP-SAT cannot hold."""
    form = form_from([1.0], [[1e18]], [-np.inf], [3e18], [20])
    assert by("cp-sat", form).objective == 3.0


def test_what_need_not_be_whole_is_off_the_grid():
    """Beside x0 = 1, x1 is at most 7/3, which is no millionth of 10."""
    form = form_from([5, 1], [[2, 3]], [-np.inf], [9], [1, 10])
    outcome = by("cp-sat", replace(form, integer=np.array([True, False])))
    assert outcome.x == pytest.approx([1, 7 / 3], abs=1e-9)


def test_what_breaks_a_row_is_no_solution():
    """2 is more than 1.5, whoever says that it is not."""
    form = form_from([1], [[1]], [-np.inf], [1.5], [3])
    said = found(form, StopReason.COMPLETE, np.array([2.0]), 2.0, message="Optimal", solve_s=0.0)
    assert (said.x, said.status) == (None, SolutionStatus.NONE)
    assert said.message == "Optimal; its solution breaks a row"
