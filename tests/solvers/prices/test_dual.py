"""The dual: the least bound that prices prove, and how often the jobs are asked for it."""

import numpy as np
import pytest

from ronda.formulations.allocation.separable import Separable
from ronda.solvers.prices.dual import Jobs, Search, solve_dual


def auction():
    """Return one unit each of two goods: two jobs want one for 3 each, a third both for 1."""
    return Separable.without_blocks(
        start=np.arange(4),
        value=np.array([3.0, 3.0, 1.0]),
        use=np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
        capacity=np.ones(2),
        names=("a", "b"),
    )


@pytest.mark.parametrize("prices", [(2.0, 2.0), (0.5, 0.5), (0.9, 0.2), (2.9, 0.5)])
def test_prices_at_which_all_is_sold_are_the_best(prices):
    """What is taken is a plan that is worth the bound: asked at no price, and at these."""
    found = solve_dual(auction(), Jobs(auction()), Search(), start=np.array(prices))
    assert found.bound == pytest.approx(6.0)
    assert found.evaluations == 2
    assert tuple(found.prices) == prices


@pytest.mark.parametrize("prices", [(0.2, 0.2), (4.0, 1.0), (0.0, 5.0)])
def test_other_prices_are_only_a_start(prices):
    """More is wanted than there is, or something that has a price is left."""
    found = solve_dual(auction(), Jobs(auction()), Search(), start=np.array(prices))
    assert found.bound == pytest.approx(6.0)
    assert found.evaluations > 2
