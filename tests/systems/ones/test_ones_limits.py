"""ONES's batch limits and knowledge of speed, by the rules of its artifact."""

import pytest

from ronda.systems.ones.limits import grown, halved, shrunk
from ronda.systems.ones.scoring import speeds


@pytest.mark.parametrize(
    ("limit", "gpus", "most", "expected"),
    [
        (1, 1, 64, 2),  # all of R is in use: doubled
        (8, 4, 64, 8),  # not yet
        (8, 8, 8, 8),  # 4 x 2 requested GPUs
        (32, 32, 48, 48),  # no further than the most
        (64, 3, 16, 16),  # nor may R be above it
    ],
)
def test_growth(limit, gpus, most, expected):
    """R doubles only when the job runs on R GPUs, up to the cap."""
    assert grown(limit, gpus, most) == expected


@pytest.mark.parametrize(
    ("gpus", "ran_s", "median_s", "expected"),
    [
        (32, 100.0, 100.0, 32),  # 64 / 2
        (32, 300.0, 100.0, 16),  # 64 / 4
        (40, 200.0, 100.0, 26),  # floor(80 / 3) = 26
        (36, 200.0, 100.0, 24),  # 72 / 3
        (34, 250.0, 100.0, 20),  # floor(68 / 3.5) = 19, rounded up to even
        (2, 900.0, 100.0, 2),  # max(1, floor(0.4)) = 1, rounded up
    ],
)
def test_the_dominant_job_gives_way(gpus, ran_s, median_s, expected):
    """max(1, floor(2 c / (T / T_med + 1))), even."""
    assert shrunk(gpus, ran_s, median_s) == expected


def test_waiting_halves_the_limit_down_to_one():
    """13, 6, 3, 1, 1."""
    limit, seen = 13, []
    for _ in range(4):
        limit = halved(limit)
        seen.append(limit)
    assert seen == [6, 3, 1, 1]


def test_speed_is_linear_until_sizes_are_tried():
    """One size seen: proportional. 1: 100 and 4: 250 seen: 150 and 200 between, 300 at 5.

    Beyond the largest the last line goes on: 50 a GPU.
    """
    assert speeds({2: [90.0, 110.0]}, 4).tolist() == [0, 50, 100, 150, 200]
    assert speeds({1: [100.0], 4: [250.0]}, 5).tolist() == [0, 100, 150, 200, 250, 300]


def test_a_falling_line_stays_above_nothing():
    """1: 100, 2: 50 would be 0 at 3: a thousandth of the slowest measurement instead."""
    assert speeds({1: [100.0], 2: [50.0]}, 4).tolist() == pytest.approx([0, 100, 50, 0.05, 0.05])
