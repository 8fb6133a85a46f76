"""Memory of one GPU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.models.memory import max_local_batch, memory_gib
from ronda.instances.profile import Memory

MEMORY = Memory(base_gib=2.0, model_gib=1.5, sample_gib=0.25)


def test_memory_by_hand():
    """One model with 10 samples: 2 + 1.5 + 2.5; three of them: 2 + 3 * 4."""
    np.testing.assert_allclose(memory_gib(MEMORY, 10.0, [1, 3]), [6.0, 14.0])


@pytest.mark.parametrize(
    ("gib", "width", "largest"),
    [(16.0, 1, 50.0), (16.0, 2, 22.0), (3.0, 1, 0.0)],  # 12.5/0.25; 11/0.5; does not fit
)
def test_largest_local_batch_by_hand(gib, width, largest):
    """What is left beside base and models, shared by the samples of all models."""
    assert max_local_batch(MEMORY, gib, width) == pytest.approx(largest)


def test_samples_without_memory_are_free():
    """If samples take nothing, any batch fits as soon as the model does."""
    assert max_local_batch(Memory(base_gib=4.0), 16.0) == float("inf")
    assert max_local_batch(Memory(base_gib=20.0), 16.0) == 0.0


@given(
    base=st.floats(0, 8),
    model=st.floats(0, 8),
    sample=st.floats(1e-3, 1),
    gib=st.floats(1, 80),
    width=st.integers(1, 8),
)
def test_the_largest_batch_just_fits(base, model, sample, gib, width):
    """The largest batch needs all of the memory, unless not even the models fit."""
    memory = Memory(base_gib=base, model_gib=model, sample_gib=sample)
    batch = max_local_batch(memory, gib, width)
    need = memory_gib(memory, batch, width)
    assert need == pytest.approx(gib) if batch > 0 else need >= gib * (1 - 1e-12)
