"""The placer of Pollux's artifact, by hand."""

import pytest

from ronda.formulations.placement.most_free import MostFree


def test_the_emptiest_nodes_first_spread_if_they_must():
    """Free 2, 4, 4: three GPUs go to node 1; the next five to node 2 (4) and node 0 (1)."""
    nodes = MostFree({0: 2, 1: 4, 2: 4})
    first = nodes.place(3)
    assert first == ((1, 3),)
    nodes.take(first)
    assert nodes.place(5) == ((0, 1), (2, 4))
    assert nodes.total_free == 7
    assert nodes.place(8) is None


def test_copy_is_independent():
    """Taking from the copy leaves the original as it was."""
    nodes = MostFree({0: 2})
    twin = nodes.copy()
    twin.take(((0, 2),))
    assert (nodes.free, twin.free) == ({0: 2}, {0: 0})


def test_taking_what_is_not_free_is_a_defect():
    """Not silently negative."""
    with pytest.raises(ValueError, match="node 0 has 2 GPUs free, not 3"):
        MostFree({0: 2}).take(((0, 3),))
