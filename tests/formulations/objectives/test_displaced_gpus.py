"""How many GPUs a job takes from others."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.objectives.displaced_gpus import displaced, outdone


@pytest.mark.parametrize(
    ("gpus", "rigid", "elastic", "expected"),
    [
        (16, [8, 8, 10], [], {8: 8, 10: 16}),  # nothing fits beside the 10
        (16, [8, 16], [], {8: 16, 16: 16}),  # nor beside either of these
        (16, [8, 8, 10], [(1, 2, 4)], {8: 8, 10: 12}),  # the elastic job fills 4 of the 6
        (16, [10, 4, 2, 1], [], {10: 10, 4: 4, 2: 2, 1: 2}),  # with the 1, one GPU stays idle
        (72, [64, 8, 8], [], {64: 64, 8: 8}),
        (8, [2], [], {2: 2}),  # alone
    ],
)
def test_by_hand(gpus, rigid, elastic, expected):
    """Gangs among wide, narrow and elastic jobs."""
    assert displaced(gpus, rigid, elastic) == expected


def most(gpus, widths):
    """Return the most GPUs that one width each of some jobs fill, by trying all."""
    return max(n for n in map(sum, product(*[(0, *own) for own in widths])) if n <= gpus)


@given(
    st.integers(1, 20).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.integers(1, n), min_size=1, max_size=5),
            st.lists(st.sets(st.integers(1, n), min_size=1, max_size=3).map(tuple), max_size=2),
        )
    )
)
def test_equals_trying_all(case):
    """The most that fits, less the most that fits beside the job."""
    gpus, rigid, elastic = case
    every = [*((n,) for n in rigid), *elastic]
    for width, found in displaced(gpus, rigid, elastic).items():
        others = [*every]
        others.remove((width,))
        assert found == most(gpus, every) - most(gpus - width, others)
        assert width <= found <= gpus


@pytest.mark.parametrize(
    ("gpus", "jobs", "expected"),
    [
        (4, [(4, 4, 8), (1, 1, 13), (1, 1, 9), (1, 1, 7), (1, 1, 5)], {4: 0, 1: 2 / 9 + 4 / 9}),
        (16, [(16, 16, 5), (8, 8, 4), (8, 8, 1)], {16: 0, 8: 8 * 3 / 4}),  # the gang does not fit
        (16, [(10, 10, 4), (3, 3, 6), (4, 4, 2), (2, 2, 1)], {10: 1.5, 3: 5, 4: 1, 2: 0}),
        (16, [(10, 10, 4), (1, 8, 1), (4, 4, 2), (3, 3, 0.5)], {10: 3.5, 4: 1, 3: 0}),
        (16, [(8, 8, 5), (8, 8, 1)], {8: 0}),  # there is room for all
    ],
)
def test_outdone_by_hand(gpus, jobs, expected):
    """Others fill what a job leaves, best first: 2 GPUs beside the 4 of which it earns half."""
    found = outdone(gpus, *np.array(jobs, dtype=float).T)
    assert found == pytest.approx(expected)
