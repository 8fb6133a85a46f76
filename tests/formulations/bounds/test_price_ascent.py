"""Prices that never rise, and their moves; the last bits of what they are made from."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.bounds.clairvoyant import bounds
from ronda.formulations.bounds.least_needs import needs
from ronda.formulations.bounds.price_ascent import falling, falling_move
from ronda.formulations.bounds.resources import rounded
from ronda.instances.files.packaged import load


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


def by_a_bit(values, rng):
    """Return values whose last bit went up or down."""
    return np.nextafter(values, np.where(rng.random(np.shape(values)) < 0.5, -np.inf, np.inf))


def test_the_last_bits_of_rates_and_needs_change_no_bound():
    """Processors differ in the last bits of a power; the steps of the prices amplify nothing."""
    gangs = load("gangs")
    few = msgspec.structs.replace(gangs, jobs=gangs.jobs[:4])
    need, rng = needs(few), np.random.default_rng(1)
    kinds = tuple(
        replace(alike, modes=replace(alike.modes, rate=by_a_bit(alike.modes.rate, rng)))
        for alike in need.kinds
    )
    numbers = ("seconds", "gpu_s", "joules")
    moved = replace(
        need, kinds=kinds, **{name: by_a_bit(getattr(need, name), rng) for name in numbers}
    )
    found = bounds(few, need=need)
    assert found.mean_jct_s == found.priced_jct_s
    assert bounds(few, need=moved).mean_jct_s == pytest.approx(found.mean_jct_s, rel=1e-12)


@given(st.lists(st.floats(1e-9, 1e12), min_size=1), st.sampled_from([1, -1]))
def test_what_is_rounded_is_on_its_side(values, side):
    """Rates are never below their own, needs never above: within 2^-28 of them."""
    values = np.array(values)
    assert (side * (rounded(values, side) - values) >= 0).all()
    assert np.allclose(rounded(values, side), values, rtol=2**-28, atol=0.0)
