"""Power curves that recipes make by stretching measured ones."""

import pytest

from ronda.instances.files.fits import find_fits
from ronda.instances.files.packaged import load
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import PowerCurve
from tools.recipes.made_power import CLOCKS, CURVES, power_curve, stretch


def test_stretching_by_hand():
    """All watts times the ratio; synchronising at half speed: 20 + 0.5 x 60."""
    made = stretch(PowerCurve(a_w=10.0, b_w=30.0, c_w=5.0, s0=0.8), 2.0)
    assert made == PowerCurve(a_w=20.0, b_w=60.0, c_w=10.0, s0=0.8, sync_w=50.0)


@pytest.mark.parametrize("application", CURVES)
def test_curves_are_those_of_the_packaged_fits(application):
    """Watts at every clock within 3 % of the fit that the curve was taken from."""
    name, curve = CURVES[application]
    (fit,) = find_fits(name)
    assert gpu_power_w(curve, CLOCKS) == pytest.approx(gpu_power_w(fit.power, CLOCKS), rel=0.03)


@pytest.mark.parametrize("name", ["pollux-1", "pollux-2", "pollux-3", "pollux-4"])
def test_pollux_has_clocks_and_curves_within_a_t4s_limits(name):
    """Between idling and 70 W at every level, higher for higher clocks, as made from the fits."""
    instance = load(name)
    assert [gpu.clocks for gpu in instance.cluster.gpu_types] == [CLOCKS]
    assert instance.budget.energy is None
    assert instance.budget.power_cap_w is None
    for application, profile in instance.profiles.items():
        curve = profile.power["T4"]
        assert curve == power_curve(application)
        watts = [
            curve.a_w + curve.b_w * min(s, curve.s0) + curve.c_w * max(s**3 - curve.s0**3, 0)
            for s in CLOCKS
        ]
        assert watts == sorted(watts)
        assert 10.0 < watts[0] <= watts[-1] <= 70.0
        assert 10.0 < curve.sync_w < 70.0
