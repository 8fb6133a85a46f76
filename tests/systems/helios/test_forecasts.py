"""Forecasts of demand: causal, ordered, calibrated, and the artifact's leak."""

import subprocess
import sys

import numpy as np
import pytest
from msgspec import structs

from ronda.instances import generate
from ronda.instances.demand import Demand
from ronda.instances.files.packaged import load_demand
from ronda.systems.helios.boosted import boosted, leaking
from ronda.systems.helios.forecasts import (
    DemandForecast,
    last_value,
    rises,
    seasonal,
    steps_ahead,
    usual,
)

SERIES = generate.demand(8, 40, 1, step_s=1800.0)
KEPT = 3 * 48 + 7
"""Steps whose needs stay where the future is another: it begins as forecasters have just learnt."""

FORECASTERS = {
    "last": last_value,
    "seasonal": seasonal,
    "boosted": lambda series, target: boosted(series, target, levels=(0.5, 0.9)),
}


def another_future(series, kept):
    """Return the series with other needs after some steps."""
    needed = (*series.needed[:kept], *(40 - n // 2 for n in series.needed[kept:]))
    return structs.replace(series, needed=needed)


@pytest.mark.parametrize("name", FORECASTERS)
def test_the_future_changes_no_forecast(name):
    """Whatever is needed later, what was foretold until then is the same to the last bit."""
    plain = FORECASTERS[name](SERIES, "peak").rise
    other = FORECASTERS[name](another_future(SERIES, KEPT), "peak").rise
    assert np.array_equal(plain[:KEPT], other[:KEPT])
    assert name == "last" or not np.array_equal(plain[KEPT:], other[KEPT:])


def test_the_leaking_forecast_sees_the_future():
    """What it says of a step has seen the needs until an hour before that step."""
    plain, other = leaking(SERIES), leaking(another_future(SERIES, KEPT))
    assert np.array_equal(plain[: KEPT + 2], other[: KEPT + 2])
    assert not np.array_equal(plain[KEPT + 2 : KEPT + 9], other[KEPT + 2 : KEPT + 9])


def test_the_same_series_gives_the_same_forecast():
    """One thread, fixed seeds."""
    made = [boosted(SERIES, "level", levels=(0.5,)).rise for _ in range(2)]
    assert np.array_equal(*made)


def test_history_gives_the_first_days_a_forecast():
    """With days before the series something is known after its first hour."""
    past = generate.demand(6, 40, 2, step_s=1800.0)
    without = boosted(SERIES, "peak", levels=(0.9,))
    with_it = boosted(SERIES, "peak", history=past, levels=(0.9,))
    assert (without.first, with_it.first) == (96, 2)
    assert with_it.rise[2:96].max() > 0 == without.rise[:96].max()


@pytest.mark.parametrize("name", ["seasonal", "boosted"])
def test_quantiles_do_not_cross(name):
    """Nor do peaks fall with the steps ahead."""
    made = FORECASTERS[name](SERIES, "peak")
    assert (np.diff(made.rise, axis=2) >= 0).all()
    assert (np.diff(made.rise, axis=1) >= 0).all()
    paths = made.paths(48)
    assert paths.shape == (len(made.levels), len(SERIES.needed), 48)
    assert np.allclose(paths[:, :, made.ahead - 1], np.moveaxis(made.rise, 2, 0))


def test_rises_by_hand():
    """Of 3 1 4 1 5: two steps ahead 4 - 3, 1 - 1, 5 - 4; the peak until then 1, 3, 1."""
    needed = np.array([3, 1, 4, 1, 5])
    assert rises(needed, 2, "level")[:3].tolist() == [1, 0, 1]
    assert rises(needed, 2, "peak")[:3].tolist() == [1, 3, 1]
    assert np.isnan(rises(needed, 2, "peak")[3:]).all()
    assert np.isnan(rises(needed, 7, "peak")).all()


def test_paths_are_straight_between_the_steps():
    """One step ahead 2, three ahead 6: two ahead 4; beyond the last it stays."""
    rise = np.array([[[2.0], [6.0]]])
    made = DemandForecast("level", (0.5,), np.array([1, 3]), rise, 0)
    assert made.paths(4).tolist() == [[[2, 4, 6, 6]]]
    assert made.quantile(0.4, 2).tolist() == made.quantile(0.9, 2).tolist() == [[2, 4]]


def kept(series, forecast, ahead):
    """Return (L,) the share of steps in which no more came `ahead` steps later than foretold."""
    came = rises(series.needed_nodes, ahead, forecast.target)[forecast.first :, None]
    foretold = forecast.rise[forecast.first :, forecast.ahead.tolist().index(ahead)]
    return (came <= foretold)[np.isfinite(came[:, 0])].mean(axis=0)


def test_what_stays_is_enough_where_the_need_does_not_rise():
    """Needs 0 1 3 3, foretold to stay: one step ahead they rise by 1, 2, 0."""
    series = structs.replace(SERIES, needed=(0, 1, 3, 3), total=(9,) * 4)
    assert kept(series, last_value(series, "level"), 1).tolist() == [pytest.approx(1 / 3)] * 6


def test_seasonal_quantiles_on_earth_are_calibrated():
    """Within six points of the level up to six hours ahead, learnt from Earth's own days."""
    earth = load_demand("earth-2020-09")
    made = seasonal(earth, "peak")
    hours = [h for h in steps_ahead(earth).tolist() if 6 <= h <= 36]
    shares = np.mean([kept(earth, made, h)[3:] for h in hours], axis=0)
    assert np.abs(shares - [0.9, 0.95, 0.975]).max() < 0.06


def test_lightgbm_is_loaded_when_it_is_used():
    """Neither the room nor its modules need it to be imported."""
    code = (
        "import sys, ronda.systems.helios.boosted; "
        "print({'lightgbm', 'pandas'} & {name for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_need_returns_to_what_is_usual():
    """Eight nodes by day, two by night; a day with four more loses them as the past tells."""
    profile = np.repeat([2, 8], 72)
    week = np.concatenate([profile, profile + 4] * 3)
    series = Demand(
        name="x",
        start="2020-01-01T00:00:00",
        step_s=600.0,
        needed=tuple(week.tolist()),
        total=(20,) * len(week),
    )
    known = usual(series, 36)
    assert known.need[36] == 4.0
    assert known.need[100] == 10.0
    assert known.foretell(100, 10.0)[:6] == pytest.approx([10.0] * 6)
    above = known.foretell(100, 16.0)[:12] - 10.0
    assert (np.diff(above) <= 0).all()
    assert 0 < above[-1] < above[0] < 6
