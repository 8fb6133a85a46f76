"""Arrays whose members end at different times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.fusion.lengths import array_s, cut_by_length
from ronda.instances.profile import AffineTime

LINE = AffineTime(alpha_s=2.0, beta_s=1.0)


def test_by_hand():
    """T(k) = 2 + k; lengths 1, 1 and 4: 4 T(3) = 20; re-sliced T(3) + 3 T(1) = 14."""
    assert array_s(LINE, [1, 4, 1], reslice=False) == 20.0
    assert array_s(LINE, [1, 4, 1], reslice=True) == 14.0


def test_short_jobs_leave_a_long_one():
    """Two at most: {1, 1} and {4}: 4 + 12 = 16, where {1, 4} and {1} take 16 + 3 = 19."""
    seconds, arrays = cut_by_length(LINE, [1, 4, 1], 2, reslice=False)
    assert seconds == 16.0
    assert arrays == ((0, 2), (1,))


def partitions(jobs):
    """Yield all partitions of a list."""
    if not jobs:
        yield []
        return
    first, *rest = jobs
    for part in partitions(rest):
        yield [[first], *part]
        for k in range(len(part)):
            yield [*part[:k], [first, *part[k]], *part[k + 1 :]]


lengths = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@given(
    lengths,
    st.integers(1, 4),
    st.sampled_from((0.5, 1.0, 3.0)),
    st.sampled_from((0.0, 1.0, 2.0)),
    st.booleans(),
)
def test_cuts_are_brute_force(steps, most, beta, alpha, reslice):
    """Over all partitions into arrays of at most `most`; each job is in one."""
    time = AffineTime(alpha_s=alpha, beta_s=beta)
    seconds, arrays = cut_by_length(time, steps, most, reslice=reslice)
    least = min(
        sum(array_s(time, [steps[j] for j in part], reslice=reslice) for part in parts)
        for parts in partitions(list(range(len(steps))))
        if all(len(part) <= most for part in parts)
    )
    assert seconds == pytest.approx(least)
    assert sorted(job for array in arrays for job in array) == list(range(len(steps)))
    assert all(len(array) <= most for array in arrays)


@given(lengths, st.floats(0, 5), st.floats(0.1, 5))
def test_reslicing_never_takes_longer(steps, alpha, beta):
    """And nothing changes if all members are as long."""
    time = AffineTime(alpha_s=alpha, beta_s=beta)
    kept, sliced = (array_s(time, steps, reslice=own) for own in (False, True))
    assert sliced <= kept * (1 + 1e-12)
    if len(set(steps)) == 1:
        assert sliced == pytest.approx(kept)
