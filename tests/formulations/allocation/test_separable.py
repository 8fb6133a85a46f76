"""Units of their own: what fits goes on to fit, and no number is out of a solver's range."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable, normalise


def problem_of(seed):
    """Return a problem of twelve jobs and two kinds of blocks whose uses are no whole numbers.

    All jobs and blocks together use up both resources exactly.
    """
    rng = np.random.default_rng(seed)
    use, block_use = rng.uniform(1, 300, (2, 12)), np.array([[-40.0, 0.0], [7.3, 1000.0]])
    count = np.array([3.0, rng.uniform(0.1, 2)])
    return Separable(
        start=np.arange(13),
        value=rng.uniform(1, 2, 12),
        use=Uses.of(use),
        capacity=use.sum(axis=1) + block_use @ count,
        names=("a", "b"),
        must=np.zeros(12, dtype=bool),
        block_value=np.zeros(2),
        block_use=block_use,
        block_count=count,
        block_integer=np.array([True, False]),
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_just_fits_fits_in_other_units(seed):
    """Numbers keep 30 bits, and capacities grow by what that may take: less than 1e-8."""
    problem = problem_of(seed)
    own, units = normalise(problem)
    assert (own.excess(np.arange(12), problem.block_count) <= 0).all()
    np.testing.assert_allclose(own.capacity * units.use, problem.capacity, rtol=2e-8)


def test_whole_numbers_stay_exact():
    """GPUs are counted: a capacity of 8 is 8."""
    gpus = np.array([[1.0, 2.0, 4.0]])
    problem = Separable.without_blocks(np.arange(4), np.ones(3), gpus, np.array([8.0]), ("gpus",))
    assert normalise(problem)[0].capacity.tolist() == [8.0]


def test_numbers_that_do_not_matter_are_brought_into_range():
    """A capacity of 1e300 is twice what three jobs could use; a use of 1e-300 is none."""
    use = np.array([[1e-300, 3.0, 6.0]])
    problem = Separable.without_blocks(np.arange(4), np.ones(3), use, np.array([1e300]), ("watts",))
    own, _ = normalise(problem)
    assert own.use.dense().tolist() == [[0.0, 1.0, 2.0]]
    assert own.capacity.tolist() == [12.0]  # 2 x 3 x 6, by 3
    nothing = normalise(replace(problem, capacity=np.array([1e-300])))[0]
    assert nothing.capacity.tolist() == [0.0]
