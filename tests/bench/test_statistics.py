"""Intervals, ratios and means against numbers worked out by hand."""

import math

import numpy as np
import pytest

from ronda.bench.statistics import (
    bootstrap_interval,
    half_width,
    over_best,
    paired_ratio,
    performance_profile,
    replicate_interval,
)


def test_bootstrap_interval_of_a_mean():
    """All seeds equal: no width; one seed: not known; else around the mean.

    The standard error of 0..19 is 5.77 / sqrt(20) = 1.29: about 9.5 -+ 2.5.
    """
    assert bootstrap_interval(np.mean, np.full(5, 3.0)) == (3.0, 3.0, 3.0)
    assert np.isnan(bootstrap_interval(np.mean, [3.0])[1:]).all()
    value, low, high = bootstrap_interval(np.mean, np.arange(20.0))
    assert value == 9.5
    assert (low, high) == pytest.approx((7.0, 12.0), abs=0.3)


def test_paired_samples_are_drawn_together():
    """Half of the other on every seed is a ratio of 0.5 without any width."""
    other = np.array([10.0, 100.0, 1000.0])
    assert bootstrap_interval(paired_ratio, other / 2, other) == pytest.approx((0.5, 0.5, 0.5))


def test_paired_ratio_by_hand():
    """sqrt(1 x 100) = 10."""
    assert paired_ratio(np.array([2.0, 300.0]), np.array([2.0, 3.0])) == pytest.approx(10.0)


def test_replicates_are_no_sample_of_their_mean():
    """Twice the workloads, as different: nearly as wide.

    Logarithms -1, 0, 1: s = 1, t(0.975, 2) = 4.302653; of -1, -1, 0, 0, 1, 1: s^2 = 4 / 5.
    """
    value, low, high = replicate_interval(2.0, np.exp([-1.0, 0.0, 1.0]))
    assert (value, low, high) == pytest.approx((2, 2 * math.exp(-4.302653), 2 * math.exp(4.302653)))
    _, _, high = replicate_interval(1.0, np.exp([-1.0, 0.0, 1.0] * 2))
    assert high == pytest.approx(math.exp(2.570582 * math.sqrt(0.8)))
    assert np.isnan(replicate_interval(1.0, [1.0])[1:]).all()


def test_half_width_by_hand():
    """1, 2, 3: t(0.975, 2) = 4.302653, standard error 1 / sqrt(3)."""
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert half_width([7.0]) == 0.0


def test_a_profile_is_the_share_of_rounds_within_a_factor():
    """Times 1, 2 and 3, none: the second is within a factor 2 of the first on one round of two."""
    found = over_best(np.array([[1.0, 2.0], [3.0, np.inf], [np.inf, np.inf]]))
    assert found.tolist() == [[1.0, 2.0], [1.0, np.inf], [np.inf, np.inf]]
    curves = performance_profile(found, np.array([1.0, 2.0]))
    assert curves == pytest.approx(np.array([[2 / 3, 0.0], [2 / 3, 1 / 3]]))
