"""Prices that never rise, and their moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.bounds.ascent import falling, falling_move


def test_level_prices_may_only_move_so_that_they_fall():
    """A rise from -9 to 1 over level prices is pooled: (-9 x 1 + 1 x 9) / 10 = 0 for all."""
    prices, weights = np.full(2, 5.0), np.array([1.0, 9.0])
    assert falling_move(np.array([-9.0, 1.0]), prices, weights).tolist() == [0.0, 0.0]


def test_where_prices_fall_already_anything_may_move():
    """Between 7 and 5 there is room; the two at 5 are pooled to (0 + 4) / 2."""
    prices, move = np.array([7.0, 5.0, 5.0]), np.array([-1.0, 0.0, 4.0])
    assert falling_move(move, prices, np.ones(3)).tolist() == [-1.0, 2.0, 2.0]


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 5)), min_size=1, max_size=12))
def test_falling_is_a_projection(pairs):
    """It never rises, keeps the weighted mean, and is nearer than other falling sequences."""
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    projected = falling(values, weights)
    assert (np.diff(projected) <= 1e-9).all()
    assert projected @ weights == pytest.approx(values @ weights, abs=1e-6)
    other = np.sort(values)[::-1]
    distance = ((projected - values) ** 2) @ weights
    assert distance <= ((other - values) ** 2) @ weights + 1e-6
    assert np.allclose(falling(projected, weights), projected)
