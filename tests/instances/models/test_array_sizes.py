"""How classes are cut into arrays."""

from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.models.sharing import balanced, first_fit


@given(st.integers(0, 40), st.integers(1, 10))
def test_full_arrays(jobs, most):
    """HFHT's invariants: each once, in order, within the limit; and no fewer are possible."""
    found = first_fit(range(jobs), most)
    assert [i for array in found for i in array] == list(range(jobs))
    assert all(0 < len(array) <= most for array in found)
    assert len(found) == -(-jobs // most)


@given(st.integers(1, 60), st.integers(1, 70))
def test_balanced_arrays(jobs, arrays):
    """Each once; sizes differ by one at most; as many arrays as asked for, if there are jobs."""
    found = balanced(range(jobs), arrays)
    sizes = [len(array) for array in found]
    assert [i for array in found for i in array] == list(range(jobs))
    assert len(found) == min(arrays, jobs)
    assert max(sizes) - min(sizes) <= 1
