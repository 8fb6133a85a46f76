"""What changed between two folders of results, beyond noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.variant import Resample, Variant
from ronda.bench.suites.diff import JUDGED, change, difference


def run(seed=0, status=Status.OK, label="fifo", **fields):
    """Return a result in which all figures are 100, or as given."""
    about = {"instance": "x", "policy": label, "label": label, "fingerprint": "f", "key": "k"}
    figures = dict.fromkeys(JUDGED, 100.0) | {n: fields.pop(n) for n in [*fields] if n in JUDGED}
    about |= {"versions": {"ronda": "0.1"}, "host": {"cpu": "c"}} | fields
    metrics = figures | fields.pop("metrics", {}) if status is Status.OK else {}
    return Result(seed=seed, status=status, **about | {"metrics": metrics})


def verdicts(found):
    """Return the verdicts of the only row."""
    ((_, _, _, changes),) = found.rows
    return {name: each.verdict for name, each in changes.items() if each.verdict != "same"}


def test_equal_runs_are_the_same():
    """Nothing is worse."""
    found = difference([run(0), run(1)], [run(0), run(1)])
    assert verdicts(found) == {}
    assert not found.worse
    assert found.how == found.new == found.gone == ()


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        # Logarithms of 1.1, 1.11, 1.09: mean 0.0953, deviation 0.009: far from 0.
        ((110.0, 111.0, 109.0), "worse"),
        ((90.0, 91.0, 89.0), "better"),
        # Of 1.5, 0.9, 1.1: mean 0.132 -+ 4.303 x 0.258 / sqrt(3) = 0.64.
        ((150.0, 90.0, 110.0), "noise"),
    ],
)
def test_beyond_noise_is_where_the_interval_leaves_out_one(after, verdict):
    """Of three pairs."""
    new = [run(seed, mean_jct_s=value) for seed, value in enumerate(after)]
    found = difference([run(seed) for seed in range(3)], new)
    assert verdicts(found) == {"mean_jct_s": verdict}
    assert found.worse == (verdict == "worse")
    assert found.table().rows[0][3].endswith(f"] {verdict}") == (verdict != "noise")


def test_one_pair_counts_unless_it_is_of_times():
    """A schedule is the same each time; how long it took is not."""
    found = difference([run()], [run(mean_jct_s=101.0, median_solve_s=300.0)])
    assert verdicts(found) == {"mean_jct_s": "worse", "median_solve_s": "noise"}
    assert found.table().rows[0][3:] == ("1.010 worse", "same", "same", "same", "3.000")


def test_times_on_another_machine_tell_nothing():
    """However different they are; what is decided there does."""
    old = [run(seed) for seed in range(3)]
    slow = {"median_solve_s": 500.0, "energy_j": 50.0, "host": {"cpu": "d"}}
    found = difference(old, [run(seed, **slow) for seed in range(3)])
    assert verdicts(found) == {"median_solve_s": "noise", "energy_j": "better"}
    assert found.how == ("cpu: c before, d after",)


def test_failures_are_named_and_not_averaged_away():
    """New ones make it worse, whatever the figures; one that breaks rules fails as well."""
    old = [run(0), run(1, Status.OOM, message="too large"), run(2), run(3, Status.TIME)]
    new = [run(0, Status.TIME, message="late"), run(1), run(2, metrics={"violations": 2})]
    found = difference(old, [*new, run(3, Status.TIME)])
    assert found.new == ("x fifo seed 0: TIME late", "x fifo seed 2: 2 violations")
    assert found.gone == ("x fifo seed 1: OOM too large",)
    assert found.how == ("1 runs fail before and after",)
    assert found.rows == ()
    assert found.worse


def test_what_differs_in_how_runs_were_made_is_said():
    """Versions, limits, parameters, instances, and runs on one side only."""
    old = [run(config={"gap": 0.1}), run(1), run(label="las")]
    new = [run(config={"gap": 0.2}, versions={"ronda": "0.2"}, time_limit_s=5.0)]
    found = difference(old, [*new, run(1, fingerprint="g"), run(2)])
    assert found.how == (
        "ronda: 0.1 before, 0.1, 0.2 after",
        "time_limit_s: None before, 5.0, None after",
        "fifo, gap: 0.1 before, 0.2 after",
        "x: another instance by now, not compared",
        "1 runs only before, such as x las seed 0",
        "1 runs only after, such as x fifo seed 2",
    )


@pytest.mark.parametrize("turn", [1, -1])
def test_runs_that_differ_in_limits_alone_are_apart(turn):
    """Within 1 s it takes three times as long as before, within 9 s as long; in any order."""
    old = [run(time_limit_s=limit_s) for limit_s in (1.0, 9.0)]
    new = [run(time_limit_s=1.0, mean_jct_s=300.0), run(time_limit_s=9.0)][::turn]
    found = difference(old, new)
    assert found.worse
    told = {policy: changes["mean_jct_s"].text for _, policy, _, changes in found.rows}
    assert told == {"fifo (time_limit_s 1.0)": "3.000 worse", "fifo (time_limit_s 9.0)": "same"}


def test_of_runs_alike_parameters_decide_and_none_is_guessed():
    """Two versions in one folder: those with the same parameters are a pair, the third has none."""
    old = [run(config={"gap": 0.1}), run(config={"gap": 0.2}, mean_jct_s=50.0)]
    found = difference(old, [run(config={"gap": 0.1})])
    assert verdicts(found) == {}
    assert found.how[-1] == "1 runs only before, such as x fifo seed 0"
    found = difference(old, [run(config={"gap": 0.3})])
    assert found.rows == ()
    assert found.how[-1] == "several runs alike, not compared: x fifo seed 0"


def test_resampled_workloads_are_pairs_of_their_own():
    """A workload of seed 1 is no pair of the instance itself."""
    drawn = run(1, variant=Variant(resample=Resample(), seed=1))
    assert difference([run(1)], [drawn]).rows == ()
    (row,) = difference([drawn], [drawn]).rows
    assert row[:3] == ("x, resampled", "fifo", 1)


POSITIVE = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=6)


@given(POSITIVE, st.data())
def test_before_and_after_change_places(before, data):
    """What is better one way is worse the other way, by the inverse ratio."""
    after = data.draw(st.lists(st.floats(1.0, 1e6), min_size=len(before), max_size=len(before)))
    one, other = (
        change(np.array(before), np.array(after)),
        change(np.array(after), np.array(before)),
    )
    turned = {"better": "worse", "worse": "better"}
    assert other.verdict == turned.get(one.verdict, one.verdict)
    assert other.ratio.value == pytest.approx(1 / one.ratio.value)
