"""The page's charts and sentences, of runs whose numbers are given."""

import math

import pytest

from ronda.bench.report.charts import distributions, profiles, quality
from ronda.bench.report.folder import Reported
from ronda.bench.report.words import cells, summary
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.variant import UNCHANGED, Resample, Variant
from ronda.instances.tables.table import Table

DRAWN = Variant(resample=Resample())


def run(label, jct_s=100.0, seed=0, bound_s=50.0, variant=UNCHANGED, instance="x", **told):
    """Return a run; of a drawn workload a seed is another one."""
    status = told.pop("status", Status.OK)
    about = {"key": f"{label}{instance}{seed}", "policy": label.partition("(")[0], "label": label}
    figures = {"mean_jct_s": jct_s, "bound_mean_jct_s": bound_s, "median_solve_s": 0.01}
    figures |= {"p99_solve_s": 0.02, "gap_mean_jct": jct_s / bound_s - 1 if bound_s else None}
    return Result(
        instance=instance,
        fingerprint=f"{instance}{seed if variant.draws else ''}",
        seed=seed,
        variant=variant,
        status=status,
        metrics=figures | told if status is Status.OK else {},
        **about,
    )


def found(tmp_path, *runs):
    """Return a folder of a comparison."""
    return Reported(tmp_path, "comparison", {}, runs)


def test_bars_of_drawn_workloads_do_not_shrink(tmp_path):
    """Above the bound 2 and 2 e times, 50 times each: s = sqrt(100 / 99) / 2, t(99) = 1.984217.

    The middle is that of means, (100 + 100 e) / 2, and bars stand around it on a logarithmic scale.
    """
    runs = [run("a", 100.0 * math.exp(k % 2), k, variant=DRAWN) for k in range(100)]
    (chart,) = quality(found(tmp_path, *runs))
    (point,) = chart.traces
    middle, factor = 50 * (1 + math.e), math.exp(1.984217 * math.sqrt(100 / 99) / 2)
    assert point["y"] == pytest.approx([middle], rel=1e-4)
    assert point["error_y"]["array"] == pytest.approx([middle * (factor - 1)], rel=1e-3)
    assert point["error_y"]["arrayminus"] == pytest.approx([middle * (1 - 1 / factor)], rel=1e-3)
    assert "by their standard error" in chart.caption


def test_nothing_is_below_the_line(tmp_path):
    """Bounds 10 and 90 s: the line is at 50, above no marker, though one workload's is at 90."""
    runs = [run(p, 1.1 * s, k, s, DRAWN) for p in "ab" for k, s in enumerate((10.0, 90.0))]
    (chart,) = quality(found(tmp_path, *runs))
    assert chart.layout["shapes"][0]["y0"] == pytest.approx(50.0)
    assert [trace["y"][0] for trace in chart.traces] == pytest.approx([55.0, 55.0])
    given = run("c", 5.0, 0, 0.0, DRAWN, jobs=4, discarded_jobs=3)
    (chart,) = quality(found(tmp_path, *runs, given))
    assert "shapes" not in chart.layout


@pytest.mark.parametrize("bad", [{"status": Status.TIME}, {"violations": 1}])
def test_who_failed_is_not_best(tmp_path, bad):
    """Neither in sentences nor in the picture, nor within any factor of a profile."""
    runs = [run(p, s, instance=i) for i in "xy" for p, s in (("a", 200.0), ("b", 300.0))]
    runs += [run("bad", 60.0, instance="x"), run("bad", 60.0, instance="y", **bad)]
    shown = found(tmp_path, *runs)
    both, first, second = quality(shown)
    named = [trace["name"] for trace in both.traces if trace["name"]]
    assert named == ["a: 300 % at 10 ms", "b: 500 % at 10 ms"]
    assert [trace["name"] for trace in first.traces] == ["a", "b", "bad"]
    assert [trace["name"] for trace in second.traces] == ["a", "b"]
    assert "failed or broke a rule: bad" in second.caption
    (chart,) = profiles(shown)
    ends = {trace["name"]: trace["y"][-1] for trace in chart.traces}
    assert ends == {"a": 1.0, "b": 1.0, "bad": 0.5}


def test_jobs_of_a_failed_run_are_undone(tmp_path):
    """Two of two jobs within 5 s in one run, none of two in the one that failed: a half."""
    shown = found(tmp_path, run("a"), run("a", seed=1, status=Status.OOM))
    (chart,) = distributions(shown, "jct", {("x", "a"): [4.0, 5.0]}, {("x", "a"): 4})
    assert chart.traces[0]["y"] == [0.0, 0.25, 0.5]


def test_what_is_infinite_is_no_number_to_sort_by():
    """Nor is a dash, or what JSON could not hold; a plain text goes by its first number."""
    row = ("a", "∞", "–", "1,250 ± 3")
    header = ("policy", "mean JCT (s)", "energy", "jobs and more")
    table = Table("", header, (row,), (), ({"mean_jct_s": math.inf},))
    ((*_, jct, energy, more),) = cells(table)
    assert (jct[2], energy[2], more[2]) == (None, None, 1250.0)


def test_the_summary_says_how_sure_it_is_and_who_knows(tmp_path):
    """Twice and 8 times as long: 4 times, t(0.975, 1) = 12.7062 times ln(4) / sqrt(2) at both ends.

    A policy of the user's own is told wherever it stands, one that failed or gave up is not ranked.
    """
    runs = []
    for seed, jct_s in enumerate((100.0, 200.0)):
        runs.append(run("prices", jct_s, seed, 50.0, DRAWN, knowledge="oracle"))
        runs.append(run("fifo", jct_s * (2, 8)[seed], seed, 50.0, DRAWN, knowledge="none"))
        runs.append(run("mine.py:Mine(x=1)", 10 * jct_s, seed, 50.0, DRAWN, knowledge="history"))
        runs.append(run("last", 20 * jct_s, seed, 50.0, DRAWN))
        runs.append(run("gives", 1.0, seed, 0.0, DRAWN, jobs=9, discarded_jobs=8))
    runs.append(run("half", 1.0, 0, 50.0, DRAWN))
    (told,) = summary(found(tmp_path, *runs))
    assert told.startswith(
        "x, resampled: prices (knows true sizes) has the shortest mean JCT, 150 s, 200.0 % above"
    )
    low, high = (4 * math.exp(sign * 12.7062 * math.log(4) / math.sqrt(2)) for sign in (-1, 1))
    assert "fifo (looks at no sizes) is number 2 of 4 with 900 s, by pairs 4.000 [0.000, " in told
    assert low < 1 < high
    assert "times as long: they are not told apart. Your policy mine.py:Mine(x=1) (learns" in told
    assert "is number 3 of 4 with 1,500 s, by pairs 10.000 [10.000, 10.000] times as long. " in told
    assert told.endswith("Not ranked, as runs failed, gave jobs up or are missing: gives, half.")
    assert "last" not in told
    (one,) = summary(found(tmp_path, run("a", 1.0), run("b", 2.0)))
    assert one.endswith("by pairs 2.000 times as long, which of one pair may be chance.")


def test_long_names_stand_in_the_legend(tmp_path):
    """Beside markers they would lie over each other."""
    (chart,) = quality(found(tmp_path, run("a" * 60), run("b" * 60)))
    assert {trace["mode"] for trace in chart.traces} == {"markers"}
