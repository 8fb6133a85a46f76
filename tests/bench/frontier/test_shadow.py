"""What one more kilowatt or GPU is worth, by differences and by prices."""

import pytest
from msgspec.structs import replace

from records import record
from ronda.bench.frontier.curves import Curve, FrontierPoint
from ronda.bench.frontier.shadow import gpu_saves, kilowatt_saves, worth
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.schedule import Schedule


def point(factor, jct_s):
    """Return a point at `factor` x 2 kW."""
    return FrontierPoint(factor, 2e3 * factor, 1.0, 0.0, jct_s, 0.0, 0.0, ())


def test_measured_by_hand():
    """From 1 to 2 kW 100 s are saved, from 2 to 4 kW 50 s: 100 and 25 s per kW."""
    some = (point(0.5, 200.0), point(1.0, 100.0), point(2.0, 50.0))
    assert kilowatt_saves(Curve("milp", "milp", some)) == {0.5: 100.0, 1.0: 25.0}
    assert kilowatt_saves(Curve("milp", "milp", some[:1])) == {}
    larger = Curve("milp", "milp", (point(1.0, 80.0),))
    # four more GPUs save 20 s: 5 s each
    assert gpu_saves(Curve("milp", "milp", some), larger, 4) == {1.0: 5.0}


def test_prices_by_hand(two_nodes):
    """Three jobs. For 1,800 s a GPU saves 0.6 s of flow a second, a watt 2e-7 x 3600 s.

    Per GPU-hour 0.6 x 3600 / 3 = 720 s of mean JCT, over half an hour 360 s. Per watt 7.2e-4 s of
    flow a second, per kWh 7.2e-4 x 3.6e6 / 3 = 864 s, a kilowatt for half an hour 432 s. Then
    nothing is short for another 1,800 s, so means over the run are half of that.
    """
    energy = EnergyBudget(joules=1.0, horizon_s=1.0, window_s=3600.0)
    instance = replace(two_nodes, budget=Budget(energy=energy))
    schedule = Schedule(
        instance="two-nodes",
        fingerprint="0" * 16,
        policy="milp",
        config={"objective": "rank"},
        jobs=(),
        rounds=(
            record(prices={"gpus[default/G]": 0.6, "energy_window": 2e-7, "power_cap": 0.0}),
            record(1800.0),
        ),
        end_s=3600.0,
    )
    said = worth(instance, schedule)
    assert said.gpu_hour_s.tolist() == pytest.approx([720.0, 0.0])
    assert said.kwh_s.tolist() == pytest.approx([864.0, 0.0])
    assert said.lasts_s.tolist() == [1800.0, 1800.0]
    expected = {"kw_priced_s": 432.0, "gpu_priced_s": 360.0, "gpu_hour_s": 360.0, "kwh_s": 432.0}
    assert said.of_run() == pytest.approx(expected)
    # other objectives have other units, and some policies no prices at all
    assert worth(instance, replace(schedule, config={"objective": "density"})) is None
    assert worth(instance, replace(schedule, rounds=(record(),))) is None
