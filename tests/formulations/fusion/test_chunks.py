"""How classes are cut into arrays."""

from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.fusion.chunks import balanced, first_fit
from ronda.formulations.fusion.classes import classes, key

configurations = st.lists(
    st.fixed_dictionaries(
        {
            "batch_size": st.sampled_from((8, 16, 32)),
            "transform": st.booleans(),
            "lr": st.floats(0, 1),
        }
    ),
    max_size=40,
)


@given(configurations, st.integers(1, 10))
def test_chunks(configs, most):
    """HFHT's invariants: each once, one value of what is not fusible, within the limit.

    And no fewer chunks are possible.
    """
    parts = classes(configs)
    chunks = [chunk for part in parts for chunk in first_fit(part, most)]
    assert sorted(i for chunk in chunks for i in chunk) == list(range(len(configs)))
    assert all(0 < len(chunk) <= most for chunk in chunks)
    assert all(len({key(configs[i]) for i in chunk}) == 1 for chunk in chunks)
    assert len(chunks) == sum(-(-len(part) // most) for part in parts)


@given(st.integers(1, 60), st.integers(1, 70))
def test_balanced_arrays(jobs, arrays):
    """Each once; sizes differ by one at most; as many arrays as asked for, if there are jobs."""
    found = balanced(range(jobs), arrays)
    sizes = [len(array) for array in found]
    assert [i for array in found for i in array] == list(range(jobs))
    assert len(found) == min(arrays, jobs)
    assert max(sizes) - min(sizes) <= 1
