"""Options that another one of the same group beats."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.options.dominance import unbeaten


def test_unbeaten_keeps_one_of_equal_options():
    """An option goes if another of its group is worth as much and costs no more of anything."""
    group = np.array([0, 0, 0, 1, 1])
    value = np.array([3.0, 3.0, 2.0, 1.0, 2.0])
    costs = np.array([[2.0, 2.0, 3.0, 1.0, 1.0], [5.0, 5.0, 1.0, 1.0, 2.0]])
    # 1 equals 0; 2 costs less of the second resource; 3 costs less of the second than 4
    assert unbeaten(group, value, costs).tolist() == [True, False, True, True, True]
    assert unbeaten(group, value, costs[:1]).tolist() == [True, False, False, False, True]


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)),
        max_size=40,
    )
)
def test_unbeaten_by_trying_all_pairs(rows):
    """Better or equal in all beats, unless equal in all: then the first of them does."""
    group, value, *costs = np.array(rows, dtype=int).reshape(-1, 4).T

    def beats(a, b):
        """Tell whether option a beats option b."""
        worse = value[a] < value[b] or any(cost[a] > cost[b] for cost in costs)
        same = value[a] == value[b] and all(cost[a] == cost[b] for cost in costs)
        return group[a] == group[b] and not worse and (a < b if same else a != b)

    expected = [not any(beats(a, b) for a in range(len(rows))) for b in range(len(rows))]
    assert unbeaten(group, value.astype(float), np.array(costs, dtype=float)).tolist() == expected
