"""Options that another one of the same group beats."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.allocation.candidates import undominated


def test_undominated_keeps_one_of_equal_options():
    """An option goes if another of its group is worth as much and costs no more of anything."""
    group = np.array([0, 0, 0, 1, 1])
    value = np.array([3.0, 3.0, 2.0, 1.0, 2.0])
    costs = np.array([[2.0, 2.0, 3.0, 1.0, 1.0], [5.0, 5.0, 1.0, 1.0, 2.0]])
    # 1 equals 0; 2 costs less of the second resource; 3 costs less of the second than 4
    assert undominated(group, value, costs).tolist() == [True, False, True, True, True]
    assert undominated(group, value, costs[:1]).tolist() == [True, False, False, False, True]


@given(
    options=st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=30),
)
def test_undominated_at_one_cost_is_as_at_two_equal_ones(options):
    """The way for one resource finds what the way for several does."""
    group, value, cost = np.array(options, dtype=np.int64).reshape(-1, 3).T
    one = undominated(group, value.astype(float), cost[None].astype(float))
    two = undominated(group, value.astype(float), np.array([cost, cost], dtype=float))
    assert one.tolist() == two.tolist()
