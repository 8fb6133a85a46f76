"""Sizes from complete jobs and from the progress of live ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.prediction.sizes import SHRINKAGE, Sizes, likeness, sizes


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
    assert known.mean == pytest.approx(20.0)
    assert known.sd == pytest.approx(np.std([10.0, 20.0, 30.0]))


def test_a_job_that_has_outlived_some_sizes_has_one_of_the_others() -> None:
    """A job that has outlived some sizes has one of the others."""
    left = of([10.0, 30.0, 20.0], []).left(12.0)
    assert left.work.tolist() == [8.0, 18.0]
    assert left.mean == pytest.approx(13.0)


def test_a_job_that_has_outlived_all_has_as_much_left_as_it_has_done() -> None:
    """A job that has outlived all has as much left as it has done."""
    assert of([10.0], []).left(25.0).mean == 25.0


def test_before_any_is_complete_a_job_has_twice_the_greatest_progress() -> None:
    """Before any is complete a job has twice the greaprogress."""
    known = of([], [3.0, 8.0])
    assert known.left(3.0).mean == 13.0
    assert known.left(8.0).mean == 8.0


def test_live_jobs_take_mass_from_the_sizes_that_they_have_outlived() -> None:
    """Kaplan and Meier by hand: P(size > 10) = 2/3, and P(size > 20) = 0 of what is left."""
    known = of([10.0, 20.0], [15.0])
    assert known.work.tolist() == [10.0, 20.0]
    assert known.mass == pytest.approx([1 / 3, 2 / 3])


def test_nothing_is_known_before_anyone_has_done_anything() -> None:
    """Nothing is known before anyone has done anything."""
    assert sizes(np.zeros(2), np.zeros(2, dtype=bool), np.ones(2)) is None
    assert sizes(np.ones(2), np.ones(2, dtype=bool), np.zeros(2)) is None


def test_quantiles_are_sizes() -> None:
    """Quantiles are sizes."""
    known = of([10.0, 20.0, 30.0, 40.0], [])
    assert [known.quantile(q) for q in (0.0, 0.25, 0.26, 0.5, 1.0)] == [10, 10, 20, 20, 40]


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
    left = known.left(max(done, 1e-3))
    assert left.mass.sum() == pytest.approx(1.0)
    assert (left.work > 0).all()


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
