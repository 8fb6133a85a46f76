"""The belief about jobs of unknown size: one distribution, its mean and its comparisons."""

import numpy as np
import pytest
from scipy.integrate import quad

from ronda.formulations.objectives.rank import larger, outlasts


def test_as_much_is_expected_to_be_left_as_was_done():
    """The mean is the integral of P(R > x); half a chance that 0.414 s are left."""
    mean, _ = quad(lambda x: float(outlasts(3.0, x)), 0.0, np.inf)
    assert mean == pytest.approx(3.0)
    assert outlasts(1.0, np.sqrt(2.0) - 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.985, 0.995, 1.0, 1.009, 1.011, 3.0, 200.0])
def test_the_larger_of_two_by_integration(ratio):
    """P(R_1 > R_2) integrates P(R_1 > x) over the density 2 / (1 + x)^3 of the second."""
    chance, _ = quad(lambda x: 2.0 / (1.0 + x) ** 3 * float(outlasts(ratio, x)), 0.0, np.inf)
    assert larger(np.array([ratio]))[0] == pytest.approx(chance, abs=1e-6)
    assert larger(1.0 / np.array([ratio]))[0] == pytest.approx(1.0 - chance, abs=1e-6)
