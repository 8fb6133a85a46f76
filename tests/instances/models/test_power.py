"""Power of busy GPUs: the curve, the mix with synchronisation, whole jobs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.cluster import GpuType
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.power import gpu_power_w, job_power_w, mixed_power_w
from ronda.instances.profile import Parametric, PowerCurve, Profile, rigid_profile

V100 = GpuType(name="V100", memory_gib=16, idle_w=30.0)
# Our fit to Zeus' V100 ResNet-50 at batch 256.
RESNET = PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88)


def test_linear_below_and_cubic_above_the_voltage_floor():
    """26 + 140 * 0.5 = 96 W; at full speed 26 + 140 * 0.88 + 222 (1 - 0.88^3) = 219.92 W."""
    np.testing.assert_allclose(gpu_power_w(RESNET, [0.5, 1.0]), [96.0, 219.913216])


def test_energy_optimal_speed_of_the_zeus_fit():
    """Energy per unit of work is least near speed 0.85-0.88, at 0.77 of that at full speed."""
    speed = np.linspace(0.5, 1.0, 501)
    energy = gpu_power_w(RESNET, speed) / speed / gpu_power_w(RESNET, 1.0)
    best = speed[energy.argmin()]
    assert 0.84 <= best <= 0.89
    assert energy.min() == pytest.approx(0.77, abs=0.01)


def test_synchronisation_has_its_own_power():
    """A quarter of the time at 100 W, the rest at 96 W."""
    curve = PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88, sync_w=100)
    assert mixed_power_w(curve, 30.0, 0.5, 0.25) == pytest.approx(97.0)
    assert mixed_power_w(RESNET, 30.0, 0.5, 0.25) == pytest.approx(96.0)


def test_no_curve_draws_idle_power():
    """Without a power model a busy GPU counts as idle, in any shape."""
    np.testing.assert_array_equal(mixed_power_w(None, 30.0, 0.5, np.zeros((2, 3))), 30.0)
    assert job_power_w(rigid_profile("V100"), V100, Configuration(4, 1, 1.0)) == 120.0


def test_job_power_mixes_by_its_own_sync_share():
    """4 GPUs, T = 0.2 + 0.2 s: half the time at 100 W, half at 219.913216 W."""
    model = Parametric(alpha_c_s=0.2, beta_c_s=0.0, alpha_r_s=0.2)
    curve = PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88, sync_w=100)
    own = Profile(name="app", throughput={"V100": model}, power={"V100": curve})
    assert job_power_w(own, V100, Configuration(4, 1, 8.0)) == pytest.approx(
        4 * (100 + 219.913216) / 2
    )


@given(
    a=st.floats(0, 100),
    b=st.floats(0, 300),
    c=st.floats(0, 900),
    s0=st.floats(0.1, 1.0),
    low=st.floats(0.1, 1.0),
    high=st.floats(0.1, 1.0),
)
def test_power_rises_with_speed(a, b, c, s0, low, high):
    """No curve of this form draws more at a lower speed."""
    curve = PowerCurve(a_w=a, b_w=b, c_w=c, s0=s0)
    low, high = sorted((low, high))
    assert gpu_power_w(curve, low) <= gpu_power_w(curve, high) + 1e-9
