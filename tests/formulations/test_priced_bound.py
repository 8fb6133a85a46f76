"""Moves of prices that never rise."""

import numpy as np

from ronda.formulations.priced_bound import falling_move


def test_level_prices_may_only_move_so_that_they_fall():
    """A rise from -9 to 1 over level prices is pooled: (-9 x 1 + 1 x 9) / 10 = 0 for all."""
    prices, weights = np.full(2, 5.0), np.array([1.0, 9.0])
    assert falling_move(np.array([-9.0, 1.0]), prices, weights).tolist() == [0.0, 0.0]


def test_where_prices_fall_already_anything_may_move():
    """Between 7 and 5 there is room; the two at 5 are pooled to (0 + 4) / 2."""
    prices, move = np.array([7.0, 5.0, 5.0]), np.array([-1.0, 0.0, 4.0])
    assert falling_move(move, prices, np.ones(3)).tolist() == [-1.0, 2.0, 2.0]
