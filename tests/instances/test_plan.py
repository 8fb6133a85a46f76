"""The gap between a bound and an objective: hand-made."""

import pytest

from ronda.instances.plan import Plan, closes, gap_between


@pytest.mark.parametrize(
    ("bound", "objective", "scale", "gap"),
    [
        (10.0, 8.0, 0.0, 0.2),  # 2 of 10
        (-8.0, -10.0, 0.0, 0.2),  # of the larger in size
        (0.0, -4.0, 0.0, 1.0),
        (10.0, 10.0 - 9e-9, 0.0, 0.0),  # one part in 10^9 is rounding: 1e-8
        (10.0, 10.0 - 2e-8, 0.0, 2e-9),
        (10.0, 11.0, 0.0, 0.0),
        (0.0, -0.0, 0.0, 0.0),
        (4e-14, 0.0, 5.0, 0.0),  # what is left of numbers as large as 5: 5e-14 is rounding
        (4e-14, 0.0, 3.0, 1.0),
    ],
)
def test_a_gap_is_a_share_of_the_larger_but_for_rounding(bound, objective, scale, gap):
    """It is never negative, nor -0.0; and a bound closes what it says."""
    found = gap_between(bound, objective, scale)
    assert found == pytest.approx(gap, rel=1e-6)
    assert str(found)[0] != "-"
    assert closes(bound, objective, found, scale)
    assert not gap or not closes(bound, objective, 0.5 * gap, scale)


def test_nothing_closes_an_objective_that_is_not_there():
    """Of a search that has found nothing yet the objective is minus infinity."""
    assert not closes(1.0, float("-inf"), 0.5)


def test_a_plan_says_its_gap():
    """None without a bound."""
    assert Plan(objective=8.0, bound=10.0).gap == pytest.approx(0.2)
    assert Plan(objective=8.0).gap is None
