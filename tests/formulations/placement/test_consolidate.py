"""The consolidate placer against a plain reading of its rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.placement.consolidate import Consolidate

FREE = st.lists(st.integers(0, 8), min_size=1, max_size=12)


def by_sorting(free, gpus, size=8):
    """Return the placement by sorting all nodes, as the rules are worded."""
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
def test_place_is_what_the_rules_say(free, gpus):
    """Bit masks give the same nodes as sorting the nodes for every call."""
    assert Consolidate(free, 8).place(gpus) == by_sorting(free, gpus)


@given(
    st.integers(1, 6),
    st.sampled_from([1, 4, 8]),
    st.lists(st.tuples(st.integers(1, 24), st.booleans()), max_size=30),
)
def test_state_follows_take_and_release(nodes, size, calls):
    """After any sequence of takes and releases the counts equal an independent ledger."""
    placer, ledger, live = Consolidate([size] * nodes, size), [size] * nodes, []
    for gpus, release in calls:
        if release and live:
            gone = live.pop(0)
            placer.release(gone)
            for node, count in gone:
                ledger[node] += count
        placement = placer.place(gpus)
        assert placement == by_sorting(ledger, gpus, size)
        if placement is not None:
            placer.take(placement)
            live.append(placement)
            for node, count in placement:
                ledger[node] -= count
    assert list(placer.free.values()) == ledger
    assert placer.total_free == sum(ledger)


def test_small_job_takes_the_fullest_node_that_fits():
    """Best fit: of 8, 3, 2 and 3 free GPUs a job of 3 takes the first node with 3."""
    assert Consolidate([8, 3, 2, 3], 8).place(3) == ((1, 3),)


def test_small_job_is_never_split():
    """Four free GPUs on two nodes do not hold a job of three."""
    assert Consolidate([2, 2], 8).place(3) is None


def test_remainder_prefers_a_free_node_to_a_fitting_one():
    """12 = 8 + 4: the 4 go to the next free node, although node 0 has exactly 4 free."""
    assert Consolidate([4, 8, 8], 8).place(12) == ((1, 8), (2, 4))


def test_remainder_falls_back_to_the_emptiest_node():
    """With one free node only, the remainder of 12 goes where most GPUs are free."""
    assert Consolidate([4, 6, 8], 8).place(12) == ((2, 8), (1, 4))
    assert Consolidate([3, 3, 8], 8).place(12) is None


def test_whole_nodes_must_be_completely_free():
    """16 GPUs on nodes with 8, 7 and 7 free do not fit."""
    assert Consolidate([8, 7, 7], 8).place(16) is None


def test_nodes_of_a_pool_keep_their_cluster_index():
    """A placer over some nodes of a cluster answers in the cluster's node numbers."""
    placer = Consolidate([4, 4], 4, nodes=[7, 9])
    placer.take(((7, 4),))
    assert placer.place(2) == ((9, 2),)
    assert placer.free == {7: 0, 9: 4}


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: Consolidate([2], 8).take(((0, 3),)),
        lambda: Consolidate([7], 8).release(((0, 2),)),
        lambda: Consolidate([9], 8),
        lambda: Consolidate([1, 1], 8, nodes=[3, 3]),
        lambda: Consolidate([1], 8).place(0),
    ],
)
def test_misuse_is_refused(misuse):
    """More GPUs than there are, than a node holds, or an ill-formed request raise ValueError."""
    with pytest.raises(ValueError):
        misuse()
