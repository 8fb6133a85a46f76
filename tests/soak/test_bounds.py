"""What is proven of rounds whose numbers differ by ten orders, against all plans that there are."""

import pytest

from scaled_rounds import false_claims

pytestmark = pytest.mark.soak


@pytest.mark.seeds(40)
def test_no_plan_refutes_a_bound_or_an_optimum(seed):
    """By `prices`, `milp` and `cp-sat`."""
    assert false_claims(seed) == []
