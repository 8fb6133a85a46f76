"""One preemptive machine, and what it is supplied with."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.bounds.clairvoyant import srpt
from ronda.formulations.bounds.resources import Supply


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 15)), min_size=1, max_size=7),
    st.randoms(use_true_random=False),
)
def test_srpt_is_ahead_of_any_priority_rule(jobs, random):
    """The k-th completion under a random preemptive priority rule is never before SRPT's."""
    release, size = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    rank = list(range(len(jobs)))
    random.shuffle(rank)
    left, ends, now = size.copy(), np.zeros(len(jobs)), 0.0
    while (left > 0).any():  # integers: one second at a time is exact
        ready = [j for j in range(len(jobs)) if left[j] > 0 and release[j] <= now]
        if ready:
            first = min(ready, key=lambda j: rank[j])
            left[first] -= 1
            if left[first] == 0:
                ends[first] = now + 1
        now += 1
    assert (np.sort(srpt(release, size)) <= np.sort(ends) + 1e-9).all()


def test_srpt_by_hand():
    """Nothing to do before 5 s; B cuts A short at 6 s, C waits for both: 8, 15 and 25 s."""
    release, size = np.array([5.0, 6.0, 6.0]), np.array([8.0, 2.0, 10.0])
    assert srpt(release, size).tolist() == [15.0, 8.0, 25.0]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=5),
    st.integers(0, 4),
    st.lists(st.floats(0, 100), min_size=1, max_size=5),
)
def test_supply_times_and_amounts_are_inverse(steps, initial, amounts):
    """`when` is the first time by which `until` gives the amount."""
    times = np.concatenate([[0.0], np.cumsum([length for length, _ in steps])[:-1]])
    rates = np.array([rate for _, rate in steps], dtype=float)
    supply = Supply(times, rates, float(initial))
    wanted = np.array(amounts)
    when = supply.when(wanted)
    if rates[-1] == 0:
        assert (np.isinf(when) == (wanted > supply.until(times[-1:]))).all()
    there = np.isfinite(when)
    assert (supply.until(when[there]) >= wanted[there] - 1e-9).all()
    earlier = np.maximum(when[there] - 1e-3, 0.0)
    assert ((supply.until(earlier) <= wanted[there] + 1e-9) | (when[there] == 0)).all()
