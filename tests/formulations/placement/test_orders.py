"""The orders of free GPUs against a plain reading of their rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.placement.nodes import FreeList, consolidate, most_free

FREE = st.lists(st.integers(0, 8), min_size=1, max_size=12)


def free_list(free, size=8, nodes=None):
    """Return nodes of `size` GPUs, of which some are free."""
    made = FreeList([size] * len(free), nodes)
    made.take((node, size - gpus) for node, gpus in zip(made.nodes, free, strict=True))
    return made


def by_sorting(free, gpus, size=8):
    """Return the placement of `consolidate` by sorting all nodes, as the rules are worded."""
    if gpus <= size:
        fitting = [(f, n) for n, f in enumerate(free) if f >= gpus]
        return ((min(fitting)[1], gpus),) if fitting else None
    whole, rest = divmod(gpus, size)
    order = sorted(range(len(free)), key=lambda n: (-free[n], n))
    chosen = [(n, size) for n in order[:whole]]
    if len(chosen) < whole or any(free[n] < size for n, _ in chosen):
        return None
    if rest:
        if len(order) <= whole or free[order[whole]] < rest:
            return None
        chosen.append((order[whole], rest))
    return tuple(chosen)


@given(FREE, st.integers(1, 40))
def test_consolidate_is_what_the_rules_say(free, gpus):
    """Sets of nodes by free GPUs give the same nodes as sorting the nodes for every call."""
    assert consolidate(free_list(free), gpus) == by_sorting(free, gpus)


@given(FREE, st.integers(1, 40))
def test_most_free_is_a_sort_of_the_nodes(free, gpus):
    """The emptiest nodes are used up one by one; None only if the GPUs do not suffice."""
    expected, left = [], gpus
    for node in sorted(range(len(free)), key=lambda n: (-free[n], n)):
        piece = min(left, free[node])
        if piece:
            expected.append((node, piece))
        left -= piece
    assert most_free(free_list(free), gpus) == (None if left else tuple(sorted(expected)))


@given(
    st.integers(1, 6),
    st.sampled_from([1, 4, 8]),
    st.lists(st.tuples(st.integers(1, 24), st.booleans()), max_size=30),
)
def test_the_free_list_follows_what_is_taken_and_given_back(nodes, size, calls):
    """After any sequence of calls the counts equal an independent ledger."""
    free, ledger, live = FreeList([size] * nodes), [size] * nodes, []
    for gpus, release in calls:
        if release and live:
            gone = live.pop(0)
            free.take((node, -count) for node, count in gone)
            for node, count in gone:
                ledger[node] += count
        placement = consolidate(free, gpus)
        assert placement == by_sorting(ledger, gpus, size)
        if placement is not None:
            free.take(placement)
            live.append(placement)
            for node, count in placement:
                ledger[node] -= count
    assert free.free == ledger
    assert free.total == sum(ledger)


def test_small_job_takes_the_fullest_node_that_fits():
    """Best fit: of 8, 3, 2 and 3 free GPUs a job of 3 takes the first node with 3."""
    assert consolidate(free_list([8, 3, 2, 3]), 3) == ((1, 3),)


def test_small_job_is_never_split():
    """Four free GPUs on two nodes do not hold a job of three."""
    assert consolidate(free_list([2, 2]), 3) is None


def test_remainder_prefers_a_free_node_to_a_fitting_one():
    """12 = 8 + 4: the 4 go to the next free node, although node 0 has exactly 4 free."""
    assert consolidate(free_list([4, 8, 8]), 12) == ((1, 8), (2, 4))


def test_remainder_falls_back_to_the_emptiest_node():
    """With one free node only, the remainder of 12 goes where most GPUs are free."""
    assert consolidate(free_list([4, 6, 8]), 12) == ((2, 8), (1, 4))
    assert consolidate(free_list([3, 3, 8]), 12) is None


def test_whole_nodes_must_be_completely_free():
    """16 GPUs on nodes with 8, 7 and 7 free do not fit."""
    assert consolidate(free_list([8, 7, 7]), 16) is None


def test_the_emptiest_nodes_first_spread_if_they_must():
    """Free 2, 4, 4: three GPUs go to node 1; the next five to node 2 (4) and node 0 (1)."""
    nodes = FreeList([2, 4, 4])
    first = most_free(nodes, 3)
    assert first == ((1, 3),)
    nodes.take(first)
    assert most_free(nodes, 5) == ((0, 1), (2, 4))
    assert most_free(nodes, 8) is None


def test_nodes_of_a_pool_keep_their_cluster_index():
    """A list of some nodes of a cluster answers in the cluster's node numbers."""
    nodes = FreeList([4, 4], [7, 9])
    nodes.take(((7, 4),))
    assert consolidate(nodes, 2) == most_free(nodes, 2) == ((9, 2),)


def test_copy_is_independent():
    """Taking from the copy leaves the original as it was."""
    nodes = FreeList([2])
    twin = nodes.copy()
    twin.take(((0, 2),))
    assert (nodes.free, nodes.total, nodes.levels) == ([2], 2, [0, 0, 1])
    assert (twin.free, twin.total, twin.levels) == ([0], 0, [1, 0, 0])


@pytest.mark.parametrize(("change", "free"), [(-3, 2), (1, 8)])
def test_misuse_is_refused(change, free):
    """More GPUs than are free, or than a node holds, raise ValueError."""
    nodes = free_list([free])
    with pytest.raises(ValueError, match=f"node 0 has {free} of 8 GPUs free: cannot add {change}"):
        nodes.take(((0, -change),))
