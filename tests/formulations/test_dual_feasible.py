"""The bound on how many jobs can be placed: sound on small pools, and sharp where it must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.dual_feasible import at_most, node_shares, node_weights, tightening


def fillings(room, largest):
    """Yield all lists of pieces, descending, that fit into `room` GPUs."""
    yield ()
    for piece in range(min(room, largest), 0, -1):
        for others in fillings(room - piece, piece):
            yield (piece, *others)


@pytest.mark.parametrize("whole", [1, 2, 3, 4, 6, 7, 8, 12, 16])
def test_nothing_that_fits_weighs_more_than_a_node(whole):
    """Every filling of a node, under every weight; and a full node weighs all that it can."""
    weights, bounds = node_weights(whole)
    kinds = list(zip(weights, bounds, strict=True))
    for pieces in fillings(whole, whole):
        assert all(sum(weight[piece] for piece in pieces) <= bound for weight, bound in kinds)
    assert all(weight[0] == 0 and weight[whole] == bound for weight, bound in kinds)


@pytest.mark.parametrize(
    ("gpus", "count"),
    [
        ((5, 5, 5), 2),  # no two pieces of 5 share a node of 8, though 15 of 16 GPUs would do
        ((5, 3, 5, 3), 4),
        ((4, 4, 5, 4), 3),  # two of 4, one of 5: the third of 4 finds 3 GPUs
        ((3, 3, 3, 3, 3), 4),  # two of 3 a node
        ((13, 5), 1),  # a whole node and 5, then another 5
        ((16, 1), 1),
        ((), 0),
    ],
)
def test_by_hand(gpus, count):
    """Two nodes of 8 GPUs."""
    assert at_most(gpus, 2, 8) == count


def test_what_counts_nothing_does_not_shorten_the_list():
    """Jobs of 0 GPUs are passed over: two jobs of 5 GPUs still fit on two nodes of 8."""
    assert at_most([0, 0, 5, 5], 2, 8) == 4


@given(st.lists(st.integers(1, 8), max_size=8), st.integers(1, 7))
def test_pieces_of_one_node_take_one_node_at_most(sizes, k):
    """Pieces that fit in a node together take shares of it that sum to at most 1."""
    packed = [n for i, n in enumerate(sizes) if sum(sizes[: i + 1]) <= 8]
    assert node_shares(np.array(packed, dtype=int), 8, k).sum() <= 1 + 1e-12


def test_powers_of_two_are_counted_exactly():
    """Counting GPUs is exact for sizes that divide each other and the node."""
    assert tightening([1, 2, 4], 8) == ()
    assert tightening([1, 2, 4], 12) == ()
    assert 1 in tightening([5], 8)


def packs(blocks, free):
    """Tell whether blocks fit into nodes with these free GPUs, by trying all ways."""
    if not blocks:
        return True
    return any(
        packs(blocks[1:], [*free[:node], room - blocks[0], *free[node + 1 :]])
        for node, room in enumerate(free)
        if room >= blocks[0] and room not in free[:node]
    )


@given(st.lists(st.integers(1, 7), max_size=9), st.integers(1, 4), st.sampled_from((6, 7, 8)))
def test_no_longer_list_can_be_placed(gpus, nodes, whole):
    """Whatever is beyond the bound finds no room, in any of all the ways."""
    sizes = [min(n, whole) for n in gpus]
    count = at_most(sizes, nodes, whole)
    if count < len(sizes):
        assert not packs(sorted(sizes[: count + 1], reverse=True), [whole] * nodes)
