"""SLAQ's fits foretell curves of their own families."""

from math import exp, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.hermes.comparators import expected_fall


def curve(form, steps):
    """Return the first losses of a formula."""
    return tuple(form(k) for k in range(steps))


@pytest.mark.parametrize(
    "form",
    [
        lambda k: 1 / (0.01 * k * k + 0.2 * k + 0.5),
        lambda k: exp(-0.2 * k),
        lambda k: 0.5 + 1.5 * exp(-0.3 * k),
        lambda k: 0.4 + 1 / (0.02 * k * k + 0.3 * k + 0.5),
    ],
)
@pytest.mark.parametrize("steps", [5, 12])
def test_the_next_fall_of_a_curve_of_either_family_is_foretold(form, steps):
    """Over the largest so far, which is the first."""
    expected = (form(steps - 1) - form(steps)) / (form(0) - form(1))
    assert expected_fall(curve(form, steps)) == pytest.approx(expected, rel=0.15)


def test_few_losses_are_no_fit():
    """The last fall stands for the next; a loss that rises is not expected to fall."""
    assert expected_fall((2.0, 1.0)) == 1.0
    assert expected_fall((2.0, 1.0, 0.75)) == 0.25
    assert expected_fall((2.0, 2.0)) == 0.0
    assert expected_fall((1.0, 2.0, 3.0)) == 0.0
    assert expected_fall((1.0, 0.5, inf)) == -inf


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=12), st.floats(0.01, 100))
def test_the_scale_of_a_loss_does_not_matter(losses, scale):
    """A fall is divided by the largest that the loss has shown."""
    falls = [expected_fall(tuple(factor * loss for loss in losses)) for factor in (1.0, scale)]
    assert falls[0] >= 0
    assert falls[1] == pytest.approx(falls[0], rel=1e-3, abs=1e-6)
