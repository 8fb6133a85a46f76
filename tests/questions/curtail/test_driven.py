"""Whole runs with and without a cap in a window, on paper."""

import pytest

import ronda
from ronda.questions.curtail.driven import driven, with_cap


def test_a_window_delays_a_job_by_what_it_takes():
    """`probe-cap-rises` has a cap that bears one job until 50 s; below that, none for 20 s.

    One runs 0-50 and 50-100, the other 50-150. With 200 W from 60 s to 80 s both are stopped: each
    ends 20 s later, and 2 x 200 W x 20 s are drawn later, with 20 s more of 180 W idle.
    """
    instance = ronda.load("probe-cap-rises")
    (found,) = driven(instance, ronda.policy("srtf"), [200.0], at_s=60.0, for_s=20.0)
    (late,) = found.late
    assert (late.name, late.jobs) == ("default", 2)
    assert (late.mean_s, late.longest_s) == pytest.approx((20.0, 20.0))
    assert (found.peak_before_w, found.peak_w) == pytest.approx((580.0, 180.0))
    assert found.less_j == pytest.approx(400.0 * 20.0)
    assert found.more_after_j == pytest.approx(400.0 * 20.0 + 180.0 * 20.0)


def test_a_cap_in_a_window_leaves_the_others():
    """The series goes on as before after the window, and a cap that was lower stays."""
    instance = ronda.load("probe-cap-rises")
    series = with_cap(instance, 40.0, 20.0, 500.0).budget.power_cap_w
    assert [series.at(t) for t in (0.0, 39.0, 45.0, 55.0, 60.0, 99.0)] == [
        400.0,
        400.0,
        400.0,
        500.0,
        600.0,
        600.0,
    ]
    free = with_cap(ronda.load("one-gpu"), 1.0, 2.0, 100.0).budget.power_cap_w
    assert free.at(2.0) == 100.0
    assert min(free.at(0.0), free.at(3.0)) > 1e5
