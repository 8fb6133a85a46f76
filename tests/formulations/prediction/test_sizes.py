"""Sizes from complete jobs and from the progress of live ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import lognorm

from ronda.formulations.prediction.sizes import (
    MOST,
    SHRINKAGE,
    VARIANCE,
    Sizes,
    likeness,
    pooled,
    sizes,
    within,
)


def of(complete: list[float], live: list[float]) -> Sizes:
    """Return the sizes told by complete jobs and by live ones."""
    work = np.array([*complete, *live], dtype=float)
    found = sizes(work, np.arange(len(work)) < len(complete), np.ones(len(work)))
    assert found is not None
    return found


def test_complete_jobs_count_alike() -> None:
    """Complete jobs count alike."""
    known = of([10.0, 30.0, 20.0], [])
    assert known.work.tolist() == [10.0, 20.0, 30.0]
    assert known.mass == pytest.approx([1 / 3] * 3)
    assert known.left() == pytest.approx((20.0, np.std([10.0, 20.0, 30.0])))


def test_a_job_that_has_outlived_some_sizes_has_one_of_the_others() -> None:
    """A job that has outlived some sizes has one of the others."""
    assert of([10.0, 30.0, 20.0], []).left(12.0) == pytest.approx((13.0, 5.0))


def test_a_job_that_has_outlived_all_has_as_much_left_as_it_has_done() -> None:
    """That is as unsure as a size of which nothing is known: its logarithm has `VARIANCE`."""
    mean, sd = of([10.0], []).left(25.0)
    assert mean == 25.0
    assert np.log1p((sd / mean) ** 2) == pytest.approx(VARIANCE)


def test_before_any_is_complete_a_job_has_twice_the_greatest_progress() -> None:
    """Before any is complete a job has twice the greatest progress."""
    known = of([], [3.0, 8.0])
    assert known.left(3.0)[0] == pytest.approx(13.0)
    assert known.left(8.0)[0] == pytest.approx(8.0)


def test_live_jobs_take_mass_from_the_sizes_that_they_have_outlived() -> None:
    """Kaplan and Meier by hand: P(size > 10) = 2/3, and P(size > 20) = 0 of what is left."""
    known = of([10.0, 20.0], [15.0])
    assert known.work.tolist() == [10.0, 20.0]
    assert known.mass == pytest.approx([1 / 3, 2 / 3])


def test_nothing_is_known_before_anyone_has_done_anything() -> None:
    """Nothing is known before anyone has done anything."""
    assert sizes(np.zeros(2), np.zeros(2, dtype=bool), np.ones(2)) is None
    assert sizes(np.ones(2), np.ones(2, dtype=bool), np.zeros(2)) is None


@pytest.mark.parametrize("done", [0.0, 5.0, 12.0, 40.0])
def test_what_is_left_by_integration(done: float) -> None:
    """Two sizes, each a lognormal: the mean and the variance of what lies beyond."""
    known = Sizes(np.array([10.0, 20.0]), np.array([0.25, 0.75]), spread=0.7)
    middle = known.work * np.exp(-(0.7**2) / 2)

    def density(x: float, power: int = 0) -> float:
        return float(known.mass @ lognorm.pdf(x, 0.7, scale=middle)) * x**power

    total, first, second = (quad(density, done, 2000.0, k, limit=200)[0] for k in range(3))
    mean = first / total
    found = known.left(done)
    assert found == pytest.approx((mean - done, np.sqrt(second / total - mean**2)), rel=1e-4)
    between = quad(density, done, done + 9.0)[0]
    assert known.share(done + 9.0, done) == pytest.approx(between / total, rel=1e-6)


def test_few_jobs_tell_little() -> None:
    """Just before the size of the only complete job little is left if sizes are alike, else not."""
    work, complete = np.array([10.0, 9.9]), np.array([True, False])
    alike, apart = (sizes(work, complete, np.ones(2), v) for v in (1e-8, 2.0))
    assert alike is not None
    assert apart is not None
    assert alike.left(9.9)[0] == pytest.approx(0.1, rel=0.05)
    assert apart.left(9.9)[0] > 9.9
    many = sizes(np.full(32, 10.0), np.ones(32, dtype=bool), np.ones(32), 2.0)
    assert many is not None
    assert many.spread == pytest.approx(np.sqrt(2.0) / 2.0)


def test_sizes_of_one_application_differ_as_they_did() -> None:
    """Log sizes 0 and 2 of one, 5 and 5 of another: 2 beside `VARIANCE`, with 2 + 1 degrees."""
    seen = [within(np.exp([0.0, 2.0]).tolist()), within(np.exp([5.0, 5.0]).tolist())]
    assert pooled(seen) == pytest.approx((VARIANCE + 2.0) / 3.0)
    assert pooled([within([]), within([4.0])]) == VARIANCE
    assert pooled([within([1e-300, 1e300])]) == MOST


def test_sizes_of_any_magnitude_have_a_mean_and_a_deviation() -> None:
    """No number overflows."""
    found = Sizes(np.array([1e-300, 1e300]), np.array([0.5, 0.5]), spread=5.0).left(1e-200)
    assert np.isfinite(found).all()
    assert found[0] > 0


@given(
    st.lists(st.floats(0.1, 1e6), min_size=1, max_size=20),
    st.lists(st.floats(0.0, 1e6), max_size=20),
    st.floats(0.0, 2e6),
)
def test_what_is_left_is_positive_and_sums_to_one(
    complete: list[float], live: list[float], done: float
) -> None:
    """What is left is positive and sums to one."""
    known = of(complete, live)
    assert known.mass.sum() == pytest.approx(1.0)
    assert (np.diff(known.work) > 0).all()
    mean, sd = known.left(max(done, 1e-3))
    assert mean > 0
    assert sd >= 0


def test_jobs_of_the_same_user_weigh_more() -> None:
    """Two complete jobs of the user have 2 / (2 + SHRINKAGE) of the mass, all share the rest."""
    shared = np.array([[True, True], [True, True], [True, False], [True, False]])
    weight = likeness(shared, np.ones(4, dtype=bool))
    own = 2.0 / (2.0 + SHRINKAGE)
    assert weight == pytest.approx([own / 2 + (1 - own) / 4] * 2 + [(1 - own) / 4] * 2)


def test_other_applications_weigh_nothing() -> None:
    """Other applications weigh nothing."""
    shared = np.array([[False, False], [True, False]])
    assert likeness(shared, np.array([True, False])).tolist() == [0.0, 1.0]


def test_shares_count_half_of_equal_sizes() -> None:
    """Of two equal sizes and a larger one, a third lies below the equal ones."""
    known = of([10.0, 10.0, 20.0], [])
    assert [known.share(x) for x in (5.0, 10.0, 15.0, 20.0)] == pytest.approx(
        [0, 1 / 3, 2 / 3, 5 / 6]
    )
