"""Slopes of losses, by hand and as properties."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.hermes.hermes import overtakes, slope

LOSSES = st.lists(st.floats(0.01, 100), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("losses", "weight", "expected"),
    [
        ((2.0, 1.0), 0.5, 0.5),
        ((2.0, 1.0, 0.5), 1.0, 0.25),
        # 0.5 x (0.5 - 0.25) + 0.5 x 0.5
        ((2.0, 1.0, 0.5), 0.5, 0.375),
        # The largest loss is a new one: n is 1, 0.5 and 1.
        ((2.0, 1.0, 4.0), 1.0, -0.5),
        ((2.0, inf), 0.5, -inf),
        ((2.0, inf, 1.0), 0.5, -inf),
    ],
)
def test_slopes_on_paper(losses, weight, expected):
    """The normalised fall per report, smoothed."""
    assert slope(losses, weight) == pytest.approx(expected)


@given(LOSSES, st.floats(0.01, 100), st.floats(0.1, 1))
def test_the_scale_of_a_loss_does_not_matter(losses, scale, weight):
    """Losses of different problems can be compared."""
    scaled = tuple(scale * loss for loss in losses)
    assert slope(scaled, weight) == pytest.approx(slope(tuple(losses), weight), abs=1e-9)


@given(LOSSES)
def test_a_slope_is_within_one(losses):
    """A normalised loss lies between 0 and 1, so its fall does too."""
    assert -1 <= slope(tuple(losses)) <= 1


def test_hysteresis_is_a_share_of_the_running_slope():
    """A diverged trial is overtaken by any other; by no other diverged one."""
    assert overtakes(0.12, 0.1, 0.1)
    assert not overtakes(0.105, 0.1, 0.1)
    assert not overtakes(-0.1, -0.1, 0.1)
    assert overtakes(-1.0, -inf, 0.1)
    assert not overtakes(-inf, -inf, 0.1)
