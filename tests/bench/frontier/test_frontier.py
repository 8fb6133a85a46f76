"""Curves, equal energy and targets, from results written by hand."""

import pytest

from ronda.bench.frontier.curves import (
    TARGET,
    curves_of,
    level,
    levels_of,
    verdicts,
)
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.variant import Variant


def run(label, factor, energy_j, jct_s, *, seed=0, status=Status.OK, **more):
    """Return a result at a budget of `factor` kilowatts."""
    metrics = {"energy_j": energy_j, "mean_jct_s": jct_s, "bound_mean_jct_s": 10.0} | more
    return Result(
        key=f"{label}-{factor}-{seed}",
        instance="x",
        policy=label.partition("(")[0],
        label=label,
        seed=seed,
        status=status,
        variant=Variant(sustained_w=1e3 * factor, factor=factor),
        message="" if status is Status.OK else "why",
        metrics=metrics if status is Status.OK else {},
    )


def test_the_lower_envelope_by_hand():
    """(4, 80) is dominated by (3, 60): more energy for longer; linear between (1, 100), (3, 60)."""
    some = [run("milp", f, e, s) for f, e, s in ((3, 4.0, 80.0), (1, 1.0, 100.0), (2, 3.0, 60.0))]
    (curve,) = curves_of(some)
    assert [point.factor for point in curve.points] == [1, 2, 3]
    assert curve.envelope() == ((1.0, 100.0), (3.0, 60.0))
    assert curve.jct_at(0.99) is None
    assert curve.jct_at(1.0) == 100.0
    assert curve.jct_at(2.0) == 80.0
    assert curve.jct_at(5.0) == 60.0  # the rest need not be spent


def test_means_and_intervals_over_seeds():
    """Of 10, 12, 14: mean 12, deviation 2, half-width t(0.975, 2) = 4.3027 x 2 / sqrt 3."""
    (curve,) = curves_of(
        [run("genetic", 1, 5.0, s, seed=k) for k, s in enumerate((10.0, 12.0, 14.0))]
    )
    (point,) = curve.points
    assert point.mean_jct_s == 12.0
    assert point.mean_jct_half_s == pytest.approx(4.30265 * 2 / 3**0.5, rel=1e-5)
    assert (point.energy_j, point.energy_half_j) == (5.0, 0.0)
    assert len(point.runs) == 3


def test_runs_that_failed_or_broke_a_rule_are_no_points():
    """They are told; the point is the mean of the others."""
    some = [
        run("milp", 1, 5.0, 10.0),
        run("milp", 1, 5.0, 99.0, seed=1, violations=2),
        run("milp", 0.5, 0.0, 0.0, status=Status.ERROR),
    ]
    (curve,) = curves_of(some)
    assert [point.mean_jct_s for point in curve.points] == [10.0]
    assert curve.failures == (
        "x milp seed 0 (budget ×0.5): ERROR why",
        "x milp seed 1 (budget ×1): 2 violations",
    )


@pytest.fixture
def found():
    """Ronda's milp and prices, fifo+zeus, and srtf, as curves."""
    return curves_of(
        [
            run("milp", 1, 2.0, 50.0),
            run("milp", 2, 4.0, 20.0),
            run("prices", 1, 2.0, 40.0),
            run("fifo+zeus", 1, 3.0, 60.0),
            run("fifo+zeus", 2, 4.0, 30.0),
            run("srtf", 1, 3.0, 35.0),
        ]
    )


def test_equal_energy_by_hand(found):
    """With 3: milp 35, prices 40, so milp is best of ronda's own and fifo+zeus 60/35 times it."""
    at = level(found, 3.0)
    assert at.best == "milp"
    assert at.jct_s == {
        "milp": 35.0,
        "prices": 40.0,
        "fifo+zeus": 60.0,
        "srtf": 35.0,
    }
    assert {label: at.ratio(label) for label in at.jct_s} == pytest.approx(
        {"milp": 1.0, "prices": 40 / 35, "fifo+zeus": 60 / 35, "srtf": 1.0}
    )
    least = level(found, 2.0)
    assert least.best == "prices"
    assert least.ratio("fifo+zeus") is None


def test_targets_say_where_they_are_not_met(found):
    """60/35 = 1.71 is enough, 30/20 = 1.5 is not, and with 2 the comparator has no point."""
    (verdict,) = verdicts(found, [level(found, e) for e in (2.0, 3.0, 4.0)])
    assert verdict.target == TARGET == 1.57
    assert verdict.label == "fifo+zeus"
    assert verdict.met == ((3.0, pytest.approx(60 / 35)),)
    assert verdict.missed == ((4.0, pytest.approx(1.5)),)
    assert verdict.unreachable == (2.0,)


def test_without_a_policy_of_rondas_there_is_no_ratio():
    """Comparators among themselves have values only."""
    some = curves_of([run("fifo", 1, 2.0, 50.0), run("fifo+zeus", 1, 2.0, 40.0)])
    at = level(some, 2.0)
    assert at.best is None
    assert [at.ratio(label) for label in at.jct_s] == [None, None]
    (verdict,) = verdicts(some, [at])
    assert (verdict.met, verdict.missed, verdict.unreachable) == ((), (), ())


def test_comparators_are_an_argument():
    """Beside fifo+zeus alone, fifo counts as ronda's own."""
    some = curves_of([run("fifo", 1, 2.0, 40.0), run("fifo+zeus", 1, 2.0, 64.0)], {"fifo+zeus"})
    at = level(some, 2.0)
    assert at.best == "fifo"
    (verdict,) = verdicts(some, [at])
    assert verdict.met == ((2.0, 1.6),)


def test_energies_to_compare_at(found):
    """Evenly over all envelopes; nothing to compare without a point."""
    assert [each.energy_j for each in levels_of(found, 3)] == [2.0, 3.0, 4.0]
    assert levels_of((), 3) == ()
    (only,) = levels_of(curves_of([run("milp", 1, 2.0, 50.0)]), 4)
    assert only.energy_j == 2.0
