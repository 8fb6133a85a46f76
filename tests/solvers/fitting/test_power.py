"""Power curves: known ones come back, shapes are shared, what is no curve is said to be none."""

import numpy as np
import pandas as pd
import pytest

from ronda.instances.errors import InputError
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import PowerCurve
from ronda.solvers.fitting.fit import fit_measured, fit_table
from ronda.solvers.fitting.measurements import Measurements
from ronda.solvers.fitting.power import fit_power

CURVE = PowerCurve(a_w=25.0, b_w=140.0, c_w=220.0, s0=0.86)
SPEEDS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
FAMILY = {
    8: PowerCurve(a_w=60, b_w=70, c_w=110, s0=0.86),
    16: PowerCurve(a_w=40, b_w=140, c_w=220, s0=0.86),
    32: PowerCurve(a_w=20, b_w=210, c_w=330, s0=0.86),
}


def watts(curves, speeds=SPEEDS, power=None, noise=0.0, seed=0):
    """Return what curves say by batch size, with relative noise, or other watts."""
    speed = np.tile(np.array(speeds), len(curves))
    said = np.concatenate([gpu_power_w(curve, speeds) for curve in curves.values()])
    draw = np.exp(np.random.default_rng(seed).normal(0.0, noise, len(speed)))
    rows = pd.DataFrame(
        {
            "row": np.arange(len(speed)) + 2,
            "batch": np.repeat([float(batch) for batch in curves], len(speeds)),
            "speed": speed,
            "power_w": said * draw if power is None else np.array(power, dtype=float),
        }
    )
    return Measurements("watts.csv", "power", "app", "G", rows)


def codes(fit):
    """Return the names of a fit's warnings."""
    return {remark.code for remark in fit.remarks}


@pytest.mark.parametrize("seed", range(8))
def test_known_curves_come_back(seed):
    """A curve is found again from seven of its points."""
    rng = np.random.default_rng(seed)
    true = PowerCurve(
        a_w=rng.uniform(10, 80),
        b_w=rng.uniform(60, 160),
        c_w=rng.uniform(150, 500),
        s0=rng.uniform(0.72, 0.93),
    )
    found = fit_power(watts({0: true}), {})[0.0].model
    for name in ("a_w", "b_w", "c_w", "s0"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.01), name


def test_batch_sizes_share_the_knee():
    """Each gets its own level, all the same s0 and c/b; alone, noise gives each another knee."""
    table = watts(FAMILY, noise=0.02)
    shared = fit_measured(table)
    assert [fit.batch for fit in shared] == [8, 16, 32]
    assert len({fit.power.s0 for fit in shared}) == 1
    ratios = [fit.power.c_w / fit.power.b_w for fit in shared]
    assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-9)
    alone = fit_measured(table, shared=False)
    assert len({fit.power.s0 for fit in alone}) == 3


def test_a_shared_shape_predicts_better():
    """On a noisy table rows that were left out are nearer with a shared shape than without."""
    table = watts(FAMILY, noise=0.02)
    together, alone = (
        np.mean([fit.errors.held_out_mape for fit in fit_measured(table, shared=shared)])
        for shared in (True, False)
    )
    assert together < 0.8 * alone


def test_a_left_out_power_has_no_say():
    """The prediction of a left-out row does not change when its measurement does."""
    table = watts(FAMILY, noise=0.01)
    power = table.rows.power_w.to_numpy().copy()
    power[3] *= 1.02
    first = fit_measured(table)[0].residuals[3]
    second = fit_measured(watts(FAMILY, power=power))[0].residuals[3]
    assert second.held_out == pytest.approx(first.held_out, rel=1e-6)
    assert second.fitted != first.fitted


def test_power_that_does_not_depend_on_speed():
    """Within 5 % a constant of about 40 W; the other parameters are none."""
    flat = (39.5, 40.5, 40.0, 39.8, 40.2)
    (fit,) = fit_measured(watts({0: CURVE}, (0.97, 0.98, 1.0, 1.01, 1.02), flat))
    assert (fit.power.b_w, fit.power.c_w) == (0.0, 0.0)
    assert fit.power.a_w == pytest.approx(40.0, abs=0.1)
    assert [p.name for p in fit.parameters] == ["a_w"]
    assert codes(fit) == {"power-without-speed"}


def test_a_flat_curve_does_not_bend_the_others():
    """A batch size without a rise is a constant, and the knee of the others stays."""
    table = watts({**FAMILY, 4: PowerCurve(a_w=40.0)})
    flat, *others = fit_measured(table)
    assert "power-without-speed" in codes(flat)
    assert [fit.power.s0 for fit in others] == pytest.approx([0.86] * 3, abs=1e-3)


@pytest.mark.parametrize(
    ("curves", "speeds", "power", "known", "found"),
    [
        ({0: CURVE}, (0.5, 0.7, 0.9, 1.0), None, {}, "4 rows with 4 different speeds"),
        (FAMILY, (0.5, 1.0), None, {}, "2 rows of batch 8 with 2 different speeds"),
        ({0: CURVE}, (0.4, 0.5, 0.6, 0.8, 1.0), (200, 190, 160, 120, 80), {}, "falls from 200"),
        ({0: CURVE}, (0.4, 1.0), None, {"b_w": 1.0}, "'b_w'"),
        ({0: CURVE}, (0.4, 1.0), None, {"s0": 1.5}, "1.5"),
        ({0: CURVE}, (0.4, 1.0), None, {"a_w": -5.0}, "-5"),
    ],
)
def test_tables_that_give_no_curve(curves, speeds, power, known, found):
    """Too few speeds, power that falls, impossible values: one line."""
    with pytest.raises(InputError) as error:
        fit_measured(watts(curves, speeds, power), known)
    assert found in error.value.found
    assert "\n" not in str(error.value)


def test_few_speeds_suffice_if_the_knee_is_known():
    """Four speeds for a, b and c; the knee is given. A row left out, three are too few."""
    (fit,) = fit_measured(watts({0: CURVE}, (0.5, 0.7, 0.95, 1.0)), {"s0": 0.86})
    assert fit.power.c_w == pytest.approx(220.0, rel=1e-3)
    assert next(p for p in fit.parameters if p.name == "s0").state == "fixed"
    assert (fit.errors.held_out_rows, fit.errors.held_out_mape) == (0, None)


def test_a_known_level_stays():
    """Watts at speed 0 that the caller knows are not fitted."""
    fits = fit_measured(watts(FAMILY), {"a_w": 30.0})
    assert {fit.power.a_w for fit in fits} == {30.0}
    assert all(p.state == "fixed" for fit in fits for p in fit.parameters if p.name == "a_w")


def test_a_single_row_tells_a_constant(tmp_path):
    """Without it nothing is left to predict it from."""
    (tmp_path / "t.csv").write_text("speed,power_w\n1,300\n")
    (fit,) = fit_table(tmp_path / "t.csv").fits
    assert fit.power.a_w == pytest.approx(300)
    assert fit.residuals[0].held_out is None
