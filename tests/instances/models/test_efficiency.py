"""Statistical efficiency and stages of the noise scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.models.efficiency import efficiency, noise_at, scale_at, stages
from ronda.instances.profile import NoiseCurve, NoiseScale

CURVE = NoiseCurve(
    until=(100.0, 300.0), batches=(16.0, 64.0), scale=((10.0, 20.0), (1000.0, 2000.0))
)


def test_efficiency_by_hand():
    """Scale 100, base batch 20: (100 + 20) / (100 + 140) = 0.5 for a batch of 140."""
    np.testing.assert_allclose(efficiency(100.0, np.array([20.0, 140.0]), 20.0), [1.0, 0.5])


def test_pollux_gain_is_the_same_number():
    """(phi + B0)/(phi + B) = gain / s with gain = (var + sqr)/(var/s + sqr), s = B/B0.

    var = 6, sqr = 2, B0 = 10: phi = 30. B = 40: s = 4, gain = 8/3.5, gain/s = 40/70.
    """
    gain = (6 + 2) / (6 / 4 + 2)
    assert efficiency(30.0, 40.0, 10.0) == pytest.approx(gain / 4)


def test_scale_is_linear_inside_and_constant_outside():
    """Between 16 and 64 the scale rises linearly; beyond, it stays."""
    noise = NoiseScale(batches=(16.0, 64.0), scale=(10.0, 20.0))
    np.testing.assert_allclose(scale_at(noise, [1.0, 40.0, 100.0]), [10.0, 15.0, 20.0])


@pytest.mark.parametrize(
    ("done", "first"), [(0.0, 10.0), (99.99, 10.0), (100.0, 1000.0), (1e9, 1000.0)]
)
def test_noise_by_progress(done, first):
    """A stage begins where the last one ends; the last one lasts indefinitely."""
    assert noise_at(CURVE, done).scale[0] == first


def test_stages_cover_all_progress():
    """The last stage has no end, whatever `until` says, and stages are the same objects."""
    ends = [end for end, _ in stages(CURVE)]
    assert ends == [100.0, float("inf")]
    assert noise_at(CURVE, 5.0) is stages(CURVE)[0][1]
    assert noise_at(CURVE, 5.0) is noise_at(CURVE, 6.0)


@given(
    scale=st.floats(0, 1e6),
    base=st.floats(1, 1e4),
    factor=st.floats(1, 1e3),
    more=st.floats(1, 10),
)
def test_larger_batches_are_never_more_efficient(scale, base, factor, more):
    """Efficiency is at most 1 from the base batch up, falls with the batch, and stays positive."""
    small, large = efficiency(scale, np.array([base * factor, base * factor * more]), base)
    assert 0 < large <= small <= 1
