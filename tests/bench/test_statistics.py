"""Intervals, ratios and means against numbers worked out by hand."""

import math

import numpy as np
import pytest

from ronda.bench.statistics import (
    expected_running_time,
    half_width,
    over_best,
    paired_ratio,
    performance_profile,
    ranks,
    ratio_interval,
    ratio_of_means,
    shifted_mean,
)


def test_paired_ratio_by_hand():
    """sqrt(1 x 100) = 10."""
    assert paired_ratio(np.array([2.0, 300.0]), np.array([2.0, 3.0])) == pytest.approx(10.0)


def test_replicates_are_no_sample_of_their_mean():
    """Twice the workloads, as different: nearly as wide.

    Logarithms -1, 0, 1: s = 1, t(0.975, 2) = 4.302653; of -1, -1, 0, 0, 1, 1: s^2 = 4 / 5.
    """

    def drawn(logs):
        return ratio_interval(paired_ratio, 2 * np.exp(logs), np.ones(len(logs)), drawn=True)

    value, low, high = drawn([-1.0, 0.0, 1.0])
    assert (value, low, high) == pytest.approx((2, 2 * math.exp(-4.302653), 2 * math.exp(4.302653)))
    assert drawn([-1.0, 0.0, 1.0] * 2).high == pytest.approx(2 * math.exp(2.570582 * 0.8**0.5))
    assert np.isnan(drawn([1.0])[1:]).all()


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


def test_a_profile_counts_failures_as_never_done():
    """However far the factor goes: a solver that failed on one of two stays at a half."""
    found = over_best(np.array([[1.0, np.inf], [2.0, 1.0]]))
    assert performance_profile(found, np.array([1e9])).tolist() == [[1.0, 0.5]]


def test_the_shifted_mean_by_hand():
    """sqrt((0 + 10)(30 + 10)) - 10 = 10; a failure leaves none."""
    assert shifted_mean(np.array([0.0, 30.0])) == pytest.approx(10.0)
    assert shifted_mean(np.array([0.0, np.inf])) == np.inf


def test_the_expected_running_time_by_hand():
    """5 and 7 to the target, 20 in vain: 32 / 2."""
    assert expected_running_time([5.0, 20.0, 7.0], [True, False, True]) == 16.0
    assert expected_running_time([5.0], [False]) == np.inf


def test_ratios_of_few_pairs_by_hand():
    """Logarithms 0 and 2: 1 -+ 12.7062 x sqrt(2) / sqrt(2); one pair has no interval."""
    value, low, high = ratio_interval(paired_ratio, np.exp([0.0, 2.0]), np.ones(2))
    assert (value, low, high) == pytest.approx(
        (math.e, math.exp(1 - 12.7062), math.exp(1 + 12.7062)), rel=1e-4
    )
    assert ratio_interval(paired_ratio, [3.0], [2.0])[0] == pytest.approx(1.5)
    assert np.isnan(ratio_interval(paired_ratio, [3.0], [2.0])[1:]).all()
    other = np.array([10.0, 100.0, 1000.0])
    assert ratio_interval(paired_ratio, other / 2, other) == pytest.approx((0.5, 0.5, 0.5))


def test_a_ratio_of_means_has_its_own_width():
    """(1 + 9) / (5 + 5) = 1; without a pair 9 / 5 and 1 / 5: logarithms ln 3 from their middle.

    The jackknife's error is sqrt(1 / 2 x 2 x ln(3)^2) = ln 3, t(0.975, 1) = 12.7062.
    """
    value, low, high = ratio_interval(ratio_of_means, [1.0, 9.0], [5.0, 5.0])
    assert (value, high) == pytest.approx((1.0, 3**12.7062), rel=1e-3)
    assert low == pytest.approx(1 / high)
    assert np.isnan(ratio_interval(ratio_of_means, [0.0, 9.0], [5.0, 5.0])[1:]).all()


# AUC of C4.5, and of it with tuned m, cf, and both, on 14 data sets: J. Demsar, "Statistical
# comparisons of classifiers over multiple data sets", JMLR 7, 2006, table 6. More is better. That
# of voting with cf is above the last one's before it is rounded, as its rank of 2 says.
DEMSAR = """
.763 .768 .771 .798
.599 .591 .590 .569
.954 .971 .968 .967
.628 .661 .654 .657
.882 .888 .886 .898
.936 .931 .916 .931
.661 .668 .609 .685
.583 .583 .563 .625
.775 .838 .866 .875
1.00 1.00 1.00 1.00
.940 .962 .965 .962
.619 .666 .614 .669
.972 .981 .9751 .975
.957 .978 .946 .970
"""


def test_ranks_are_those_of_demsar_s_example():
    """Mean ranks 3.143, 2.000, 2.893, 1.964, and a critical difference of 1.25 as published.

    So is the statistic of Friedman, 9.28, without its correction for ties; that divides by
    1 - (60 + 3 x 6) / (14 x 60) = 0.90714: 10.228, F = 13 x 10.228 / (42 - 10.228) = 4.185,
    of which the upper tail with 3 and 39 degrees of freedom is 0.0116.
    """
    aucs = np.array([line.split() for line in DEMSAR.split("\n") if line], dtype=float)
    found = ranks(-aucs)
    assert found.mean == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert found.critical == pytest.approx(1.25, abs=5e-3)
    plain = 12 * 14 / (4 * 5) * (float(found.mean @ found.mean) - 4 * 25 / 4)
    assert plain == pytest.approx(9.28, abs=5e-3)
    assert found.p == pytest.approx(0.0116, abs=5e-5)


def test_ranks_without_a_doubt_and_without_a_difference():
    """Always the same order: p = (1 / 3!)^5, though F says 0. All alike: p = 1.

    Failures are last, and share their ranks.
    """
    assert ranks(np.tile([1.0, 2.0, 3.0], (6, 1))).p == pytest.approx(6**-5)
    assert ranks(np.ones((6, 3))).p == 1.0
    assert ranks(np.array([[np.inf, 5.0, np.inf]] * 2)).mean.tolist() == [2.5, 1.0, 2.5]
