"""Power curves: known ones come back, shapes are shared, what is no curve is said to be none."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.models.power import gpu_power_w
from ronda.instances.errors import InputError
from ronda.instances.profile import PowerCurve
from ronda.solvers.fitting.curves import kendall
from ronda.solvers.fitting.data import Watts
from ronda.solvers.fitting.power import fit_power

CURVE = PowerCurve(a_w=25.0, b_w=140.0, c_w=220.0, s0=0.86)


def watts(curves, speeds=(0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)):
    """Return what curves say, by batch size."""
    speed = np.tile(np.array(speeds), len(curves))
    batch = np.repeat([float(b) for b in curves], len(speeds))
    power = np.concatenate([gpu_power_w(curve, speeds) for curve in curves.values()])
    row = np.arange(len(speed)) + 2
    return Watts("watts.csv", "app", "G", row, batch, speed, power)


def noisy(table, field, size, seed=0):
    """Return a table with relative noise."""
    draw = np.random.default_rng(seed).normal(0.0, size, len(table))
    return replace(table, **{field: getattr(table, field) * np.exp(draw)})


def codes(fit):
    """Return the names of a fit's warnings."""
    return {remark.code for remark in fit.remarks}


def message(fit, code):
    """Return the words of a warning."""
    return next(remark.message for remark in fit.remarks if remark.code == code)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_known_curves_come_back(seed):
    """A curve is found again from seven of its points."""
    rng = np.random.default_rng(seed)
    true = PowerCurve(
        a_w=rng.uniform(10, 80),
        b_w=rng.uniform(60, 160),
        c_w=rng.uniform(150, 500),
        s0=rng.uniform(0.72, 0.93),
    )
    (fit,) = fit_power(watts({0: true}), held_out=False)
    assert fit.errors.largest < 1e-4
    for name in ("a_w", "b_w", "c_w", "s0"):
        assert getattr(fit.power, name) == pytest.approx(getattr(true, name), rel=0.01), name


def family():
    """Return three batch sizes with one shape and levels of their own."""
    return {
        8: PowerCurve(a_w=60, b_w=70, c_w=110, s0=0.86),
        16: PowerCurve(a_w=40, b_w=140, c_w=220, s0=0.86),
        32: PowerCurve(a_w=20, b_w=210, c_w=330, s0=0.86),
    }


def test_batch_sizes_share_the_knee():
    """Each gets its own level, all the same s0 and c/b; alone, noise gives each another knee."""
    table = noisy(watts(family()), "power_w", 0.02)
    shared = fit_power(table, held_out=False)
    assert len({fit.power.s0 for fit in shared}) == 1
    ratios = [fit.power.c_w / fit.power.b_w for fit in shared]
    assert max(ratios) - min(ratios) < 1e-9
    assert [fit.batch for fit in shared] == [8, 16, 32]
    alone = fit_power(table, shared=False, held_out=False)
    assert len({fit.power.s0 for fit in alone}) == 3


def test_a_shared_shape_predicts_better():
    """Over 6 noisy tables rows that were left out are nearer with a shared shape than without."""
    errors = {True: [], False: []}
    for seed in range(6):
        table = noisy(watts(family()), "power_w", 0.02, seed)
        for shared, found in errors.items():
            fits = fit_power(table, shared=shared, starts=4)
            found.append(np.mean([fit.errors.held_out_mape for fit in fits]))
    assert np.mean(errors[True]) < np.mean(errors[False])


def test_a_left_out_power_has_no_say():
    """The prediction of a left-out row does not change when its measurement does."""
    table = noisy(watts(family()), "power_w", 0.01)
    power = table.power_w.copy()
    power[3] *= 1.02
    first = fit_power(table)[0].residuals[3]
    second = fit_power(replace(table, power_w=power))[0].residuals[3]
    assert second.held_out == pytest.approx(first.held_out, rel=1e-9)
    assert second.fitted != first.fitted


def test_power_that_does_not_depend_on_speed():
    """Within 5 %: a constant, the median 40 W, and b, c and s0 are no parameters."""
    table = watts({0: CURVE}, speeds=(0.97, 0.98, 1.0, 1.01, 1.02))
    flat = replace(table, power_w=np.array([39.5, 40.5, 40.0, 39.8, 40.2]))
    (fit,) = fit_power(flat)
    assert (fit.power.a_w, fit.power.b_w, fit.power.c_w) == (40.0, 0.0, 0.0)
    assert codes(fit) == {"constant-power"}
    # (0.5 + 0.5 + 0 + 0.2 + 0.2) over 39.5, 40.5, 40, 39.8, 40.2 W
    assert fit.errors.mape == pytest.approx((0.5 / 39.5 + 0.5 / 40.5 + 0.2 / 39.8 + 0.2 / 40.2) / 5)


def test_power_that_does_not_follow_speed():
    """It varies, but not with the speed: a constant and a warning, not a curve through noise."""
    table = watts({0: CURVE}, speeds=(0.98, 0.99, 1.0, 1.01, 1.02, 1.03))
    cloud = replace(table, power_w=np.array([120.0, 90.0, 118.0, 100.0, 121.0, 95.0]))
    (fit,) = fit_power(cloud)
    assert fit.power.b_w == 0.0
    assert "power-without-speed" in codes(fit)
    assert "90 to 121 W" in message(fit, "power-without-speed")


def test_dips_are_named():
    """A faster row that draws clearly less: both rows are in the warning."""
    table = watts({0: CURVE})
    power = table.power_w.copy()
    power[4] = power[3] * 0.9  # rows 5 and 6 of the file
    (fit,) = fit_power(replace(table, power_w=power), held_out=False)
    assert "row 6 is faster than row 5" in message(fit, "non-monotone")


def test_curves_that_are_not_monotone_borrow_the_shape():
    """The knee of the others does not move, and the odd one gets it too."""
    table = watts(family())
    power = table.power_w.copy()
    power[4] *= 0.7
    odd, *others = fit_power(replace(table, power_w=power), held_out=False)
    assert {"non-monotone", "borrowed-shape"} <= codes(odd)
    assert [fit.power.s0 for fit in others] == pytest.approx([0.86, 0.86], abs=1e-3)
    assert odd.power.s0 == others[0].power.s0
    assert next(p for p in odd.parameters if p.name == "s0").state == "fixed"


@pytest.mark.parametrize(
    ("curves", "speeds", "power", "fixed", "found"),
    [
        ({0: CURVE}, (0.5, 0.7, 0.9, 1.0), None, {}, "4 rows with 4 different speeds"),
        (family(), (0.5, 1.0), None, {}, "2 rows with 2 different speeds"),
        ({0: CURVE}, (1.0,), None, {}, "one row"),
        ({0: CURVE}, (0.4, 0.6, 0.8, 1.0), (200, 160, 120, 80), {}, "falls as speed rises (row 2"),
        ({0: CURVE}, (0.4, 1.0), None, {"b_w": 1.0}, "'b_w'"),
        ({0: CURVE}, (0.4, 1.0), None, {"s0": 1.5}, "1.5"),
        ({0: CURVE}, (0.4, 1.0), None, {"a_w": -5.0}, "-5"),
    ],
)
def test_tables_that_give_no_curve(curves, speeds, power, fixed, found):
    """Too few speeds, power that falls, impossible values: one line."""
    table = watts(curves, speeds)
    if power is not None:
        table = replace(table, power_w=np.array(power, dtype=float))
    with pytest.raises(InputError) as error:
        fit_power(table, fixed=fixed)
    assert found in error.value.found
    assert "\n" not in str(error.value)


def test_few_speeds_suffice_if_the_knee_is_known():
    """Four speeds for a, b and c; the knee is given."""
    table = watts({0: CURVE}, (0.5, 0.7, 0.95, 1.0))
    (fit,) = fit_power(table, fixed={"s0": 0.86}, held_out=False)
    assert fit.power.c_w == pytest.approx(220.0, rel=1e-3)
    assert next(p for p in fit.parameters if p.name == "s0").state == "fixed"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_kendall_is_scipys(pairs):
    """Tau-b with ties; 0 where it is not defined."""
    x, y = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    expected = scipy.stats.kendalltau(x, y).statistic
    assert kendall(x, y) == pytest.approx(0.0 if np.isnan(expected) else expected, abs=1e-12)
