"""The laws of a plan, over all policies and odd rounds."""

import pytest
from laws import broken_laws
from odd_rounds import odd_round

pytestmark = pytest.mark.soak


@pytest.mark.seeds(40)
def test_no_plan_for_an_odd_round_breaks_a_law(seed):
    """Whatever the limits, weights, nodes, arrays; some draws are no valid round."""
    round_ = odd_round(seed)
    if round_ is None:
        pytest.skip("not valid")
    assert broken_laws(round_, seed) == []
