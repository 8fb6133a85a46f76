"""Options that another one of the same group beats."""

import numpy as np

from ronda.formulations.options.dominance import unbeaten


def test_unbeaten_keeps_one_of_equal_options():
    """An option goes if another of its group is worth as much and costs no more of anything."""
    group = np.array([0, 0, 0, 1, 1])
    value = np.array([3.0, 3.0, 2.0, 1.0, 2.0])
    costs = np.array([[2.0, 2.0, 3.0, 1.0, 1.0], [5.0, 5.0, 1.0, 1.0, 2.0]])
    # 1 equals 0; 2 costs less of the second resource; 3 costs less of the second than 4
    assert unbeaten(group, value, costs).tolist() == [True, False, True, True, True]
    assert unbeaten(group, value, costs[:1]).tolist() == [True, False, False, False, True]
