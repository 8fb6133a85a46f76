"""Memory of k models on one GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.models.memory import most_models, need_gib
from ronda.instances.profile import Memory

TEN = Memory(base_gib=1.5, model_gib=1.0)


def test_need_by_mode():
    """Three models: 1.5 + 3 fused, 3 (1.5 + 1) in processes, 2.5 in each slice."""
    needs = {m: need_gib(TEN, m, 3) for m in ("fused", "packed", "turns", "slices")}
    assert needs == {"fused": 4.5, "packed": 7.5, "turns": 7.5, "slices": 2.5}


def test_samples_count_for_each_model():
    """0.1 GiB a sample, 10 of them: p is 2."""
    memory = Memory(base_gib=1.0, model_gib=1.0, sample_gib=0.1)
    assert need_gib(memory, "fused", 4, local_batch=10) == pytest.approx(9.0)


def test_most_models_by_mode():
    """On 10 GiB: 1.5 + 8 p, 4 (b + p); 3 slices have 2.5 each, 4 only 1.25; alone one."""
    most = {m: most_models(TEN, m, 10.0) for m in ("fused", "packed", "slices", "exclusive")}
    assert most == {"fused": 8, "packed": 4, "slices": 3, "exclusive": 1}
    assert most_models(TEN, "fused", 2.0) == 0


def test_seven_slices_are_the_limit():
    """However small the models."""
    assert most_models(Memory(base_gib=0.1), "slices", 40.0) == 7


@given(base=st.floats(0.1, 4), own=st.floats(0.1, 4), room=st.floats(1, 80), more=st.floats(0, 10))
def test_fusing_holds_more_than_packing_and_more_memory_never_less(base, own, room, more):
    """B is paid once; k_max is where m(k) <= M < m(k + 1)."""
    memory = Memory(base_gib=base, model_gib=own)
    fused, packed = (most_models(memory, mode, room) for mode in ("fused", "packed"))
    assert fused >= packed
    assert most_models(memory, "fused", room + more) >= fused
    assert fused == 0 or need_gib(memory, "fused", fused) <= room * (1 + 1e-9)
    assert need_gib(memory, "fused", fused + 1) > room
