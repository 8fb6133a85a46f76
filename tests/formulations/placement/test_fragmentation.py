"""The bound on how many jobs can be placed: sound on small pools, and sharp where it must be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.placement.fragmentation import at_most, node_weights
from ronda.formulations.placement.requests import PoolRequest


def fillings(room, largest):
    """Yield all lists of pieces, descending, that fit into so many GPUs."""
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


def jobs(*gpus):
    """Return jobs of so many GPUs, the most important first."""
    return [PoolRequest(order=k, gpus=n) for k, n in enumerate(gpus)]


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
    assert at_most(jobs(*gpus), 2, 8) == count


def test_jobs_that_stay_where_they_are_count_nothing():
    """What is pinned, or lies across nodes in other pieces, need not be cut as others are."""
    pinned = PoolRequest(order=0, gpus=5, held=((0, 5),), pinned=True)
    across = PoolRequest(order=1, gpus=5, held=((0, 3), (1, 2)))
    assert at_most([pinned, across, *jobs(5, 5)], 2, 8) == 4


def packs(blocks, free):
    """Tell whether blocks fit into nodes with so much room, by trying all ways."""
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
    count = at_most(jobs(*sizes), nodes, whole)
    if count < len(sizes):
        assert not packs(sorted(sizes[: count + 1], reverse=True), [whole] * nodes)
